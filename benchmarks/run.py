"""Headwater and Flink, side by side on the same topics: `make bench`.

1. Start the embedded broker and both engines.
2. For each job: fill its topics, let each engine run it to warm up, then run them in turn. Every result must equal the
   recount of the input, or the benchmark fails.
3. Measure latency at a steady 1,000 rows a second, and the driver's time per batch beside Spark's own job.
4. Print Flink's time divided by ours, and write RESULTS.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from collected import collect
from engines import EngineProcess
from generate import GENERATORS, Table, expected, fill
from harness import WARM_UPS, Engines, in_turn, with_engines
from jobs import GROUPS, PARTS, SCRIPTS, parts_of
from latency import LATENCIES, Latency, LatencyJob, measure_latency
from outputs import create_topic, drop_topic, read_outcome
from report import HEADWATER, Measured, Report, latency_summary, nexmark_summary, summary, write_results
from script_bench import Runs, ScriptBench
from workloads import WORKLOADS, Place, Workload

ROWS = 4_000_000
NO_MINI_BATCH = {"table.exec.mini-batch.enabled": "false"}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    return with_engines(lambda servers, engines: _measure(options, servers, engines))  # 1


def _measure(options: argparse.Namespace, servers: str, engines: Engines) -> None:
    runs = Runs(options.runs, options.warm_ups)
    bench, scripts = Bench(servers, engines, options.rows, runs), ScriptBench(servers, engines, options.rows, runs)
    parts = parts_of(options.only)
    workloads = {name: bench.compare(WORKLOADS[name]) for name in parts if name in WORKLOADS}  # 2
    workloads |= scripts.compare(SCRIPTS[name] for name in parts if name in SCRIPTS)
    latencies = {
        name: bench.latencies(job, options.seconds)  # 3
        for name, job in LATENCIES.items()
        if f"latency-{name}" in parts
    }
    report = Report(options.rows, options.runs, workloads, latencies)
    print("\n" + "\n".join([*(summary(name, measured) for name, measured in workloads.items())]))  # 4
    print(nexmark_summary(report))
    missing = [name for name in parts if name in SCRIPTS and name not in workloads]
    if options.collect is not None:
        report = collect(options.collect, report)
    complete = len(report.workloads) + len(report.latencies) == len(PARTS)
    if options.rows >= ROWS and (complete or options.collect is not None):
        print(f"Written: {write_results(report)}")
    if missing:
        raise RuntimeError(f"Failed: {', '.join(missing)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Headwater and Flink, side by side on the same topics.",
        epilog="RESULTS.md is written if everything was measured, or with --collect, with at least the default number "
        "of rows; it names what is missing. "
        "A quick look: --rows 100000 --runs 1 --warm-ups 1 --only joins",
    )
    parser.add_argument("--rows", type=int, default=ROWS, help=f"messages per topic (default: {ROWS:,})")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each engine (default: 3)")
    parser.add_argument("--warm-ups", type=int, default=WARM_UPS, help=f"runs before those (default: {WARM_UPS})")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[*GROUPS, *PARTS],
        default=list(PARTS),
        metavar="PART",
        help=f"these parts, not all; groups: {', '.join(GROUPS)}; single parts: {', '.join(PARTS)}",
    )
    parser.add_argument("--collect", type=Path, help="a file that adds up the parts of several runs with --only")
    parser.add_argument("--seconds", type=float, default=30, help="how long latency is measured (default: 30)")
    return parser


class Bench:
    """One broker and both engines, ours first."""

    def __init__(self, servers: str, engines: Engines, rows: int, runs: Runs) -> None:
        self._servers = servers
        self._engines = engines
        self._rows = rows
        self._runs = runs

    def compare(self, workload: Workload) -> Measured:
        """Fill the topic and time both engines."""
        began = time.perf_counter()
        create_topic(self._servers, workload.name)
        fill(self._servers, workload.name, GENERATORS[workload.name], self._rows)
        right = expected(workload.name, self._rows)
        print(f"{workload.name}: {self._rows:,} rows in {time.perf_counter() - began:.1f} s", flush=True)
        messages: dict[str, int] = {}
        measured = in_turn(
            self._engines,
            self._runs.timed,
            lambda engine: self._timed(workload, engine, right, messages),
            self._runs.warm_ups,
        )
        measured.messages.update(messages)
        drop_topic(self._servers, workload.name)
        return measured

    def latencies(self, job: LatencyJob, seconds: float) -> dict[str, Latency]:
        ours, theirs = self._engines
        cases: tuple[tuple[str, EngineProcess, Mapping[str, str]], ...] = (
            (HEADWATER, ours, {}),
            ("Flink, mini-batch of 1 s", theirs, {}),
            ("Flink, no mini-batch", theirs, NO_MINI_BATCH),
        )
        found = {}
        for number, (name, engine, settings) in enumerate(cases):
            topic = f"latency-{job.name}-{number}"
            place = Place(self._servers, topic, f"{topic}-results")
            found[name] = measure_latency(job, engine, place, seconds, settings)
            print(latency_summary(job, name, found[name]), flush=True)
        return found

    def _timed(self, workload: Workload, engine: EngineProcess, right: Table, messages: dict[str, int]) -> float:
        """Run once into a topic of its own, and check what came out."""
        sink = f"{workload.name}-{engine.name}"
        create_topic(self._servers, sink)
        seconds = engine.run(workload.statements(Place(self._servers, workload.name, sink), bounded=True))
        outcome = read_outcome(self._servers, sink, workload.result)
        _check(engine.name, outcome.table, right)
        messages[engine.name] = outcome.messages
        drop_topic(self._servers, sink)
        return seconds


def _check(name: str, table: Table, right: Table) -> None:
    if table != right:
        wrong = [key for key in table.keys() | right.keys() if table.get(key) != right.get(key)]
        key = min(wrong)
        raise RuntimeError(
            f"{name}'s results are wrong for {len(wrong)} of {len(right)} keys: "
            f"'{key}' has {table.get(key)}, the input says {right.get(key)}."
        )


if __name__ == "__main__":
    sys.exit(main())
