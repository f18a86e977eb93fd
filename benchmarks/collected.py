"""What was measured so far, in a file: `make bench` takes an hour, and need not do everything in one run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from engines import Batch
from jobs import JOBS
from latency import LATENCIES, Latency
from report import Measured, Report

__all__ = ["collect"]


def collect(path: Path, report: Report) -> Report:
    """`report` together with what earlier runs with as many rows and runs have left in the file. What was measured
    twice counts as it was measured last."""
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if (earlier.get("rows"), earlier.get("runs")) != (report.rows, report.runs):
        earlier = {"workloads": {}, "latencies": {}}
    workloads = {name: Measured(**found) for name, found in earlier["workloads"].items()}
    latencies = {name: _latencies(found) for name, found in earlier["latencies"].items()}
    workloads |= report.workloads
    latencies |= report.latencies
    whole = Report(
        report.rows,
        report.runs,
        {name: workloads[name] for name in JOBS if name in workloads},
        {name: latencies[name] for name in LATENCIES if name in latencies},
    )
    path.write_text(json.dumps(asdict(whole)), encoding="utf-8")
    return whole


def _latencies(found: Mapping[str, dict[str, object]]) -> dict[str, Latency]:
    return {engine: _latency(**values) for engine, values in found.items()}  # type: ignore[arg-type]  # as written


def _latency(p50: float, p99: float, rows: int, batches: list[dict[str, float]]) -> Latency:
    return Latency(p50, p99, rows, tuple(Batch(**batch) for batch in batches))
