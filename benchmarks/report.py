"""What was measured, as lines for the terminal and as RESULTS.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median

from flink_home import FLINK_VERSION
from latency import RATE, Latency
from workloads import WORKLOADS

from headwater.runtime.jars import bench_jars, broker_jars
from headwater.runtime.java import check_java

__all__ = ["Measured", "Report", "ratio", "seconds", "summary", "table", "versions", "write_results"]

RESULTS = Path(__file__).with_name("RESULTS.md")


@dataclass
class Measured:
    """One workload: seconds of every timed run, and how many result messages a run wrote."""

    headwater: list[float] = field(default_factory=list)
    flink: list[float] = field(default_factory=list)
    messages: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    rows: int
    runs: int
    workloads: Mapping[str, Measured]
    latencies: Mapping[str, Latency]


def ratio(measured: Measured) -> float:
    """Flink's median time divided by ours: above 1, we are faster."""
    return median(measured.flink) / median(measured.headwater)


def summary(name: str, measured: Measured) -> str:
    """One workload on one line, for the terminal."""
    ours, theirs = seconds(measured.headwater), seconds(measured.flink)
    return f"{name:<10} Headwater {ours} s   Flink {theirs} s   Flink/Headwater {ratio(measured):.2f}"


def write_results(report: Report) -> Path:
    RESULTS.write_text(_render(report), encoding="utf-8")
    return RESULTS


def _render(report: Report) -> str:
    parts = [
        "# Headwater beside Flink",
        _INTRODUCTION.format(rows=report.rows, runs=report.runs),
        _workload_table(report),
        "All timed runs, in seconds:",
        _runs_table(report),
        *([_LATENCY, _latency_table(report)] if report.latencies else []),
        _METHOD,
        versions(),
    ]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """\
{rows:,} rows per workload; {runs} timed runs of each engine in turn, after two warm-up runs; medians. The final table
of every run equalled a recount of the input."""

_LATENCY = f"""\
## Latency

The job of `totals` without an end, {RATE:,} rows a second: from sending a row to reading the result that counts it."""

_METHOD = """\
## How it was measured

`make bench` does it all again: it installs Flink in a venv of its own under `$HEADWATER_HOME/bench`, starts the
embedded broker, fills topics of two partitions from fixed seeds, and runs both engines on the same SQL
(`benchmarks/workloads.py`). `benchmarks/run.py --help` lists the options.

- Time is from submitting the SQL to the end of the bounded job, in a process that has already run the same job twice.
- Both engines: parallelism 2, a Java heap of 4 GB, checkpoints on the local disk, at-least-once sinks, the Kafka client
  settings they come with. While one works, the other is idle.
- Headwater: `local[2]`, a new checkpoint directory per run, a checkpoint with every batch.
- Flink: streaming mode on a session cluster in one JVM, connector jars in its lib directory, object reuse, heap state,
  mini-batch (1 s, 50,000 rows), a checkpoint every 5 s. It does not wait for a last checkpoint after its last result.
- `totals`: payments of 1,000 accounts, JSON in and out.
- `pageviews`: document 001's job, JSON in and Avro out. 1,000 regions and a user for every four views, each view from
  any region, so that nearly every view brings its region a new user.
- `regions`: accounts with 20 changes each, JSON in and out. One change in ten moves the account to another region, one
  in a hundred deletes it."""


def _workload_table(report: Report) -> str:
    rows = [
        (
            f"`{name}`: {WORKLOADS[name].title}",
            f"{median(measured.headwater):.1f} s",
            f"{median(measured.flink):.1f} s",
            f"**{ratio(measured):.2f}**",
            f"{WORKLOADS[name].goal}",
        )
        for name, measured in report.workloads.items()
    ]
    return table(("workload", "Headwater", "Flink", "Flink / Headwater", "goal"), rows)


def _runs_table(report: Report) -> str:
    rows = [
        (name, seconds(m.headwater), seconds(m.flink), f"{m.messages['headwater']:,}", f"{m.messages['flink']:,}")
        for name, m in report.workloads.items()
    ]
    header = ("workload", "Headwater", "Flink", "messages written by Headwater", "by Flink")
    return table(header, rows)


def _latency_table(report: Report) -> str:
    rows = [(name, f"{m.p50:.2f} s", f"{m.p99:.2f} s", f"{m.rows:,}") for name, m in report.latencies.items()]
    return table(("engine", "p50", "p99", "rows"), rows)


def versions() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} cores ({_processor()}), {memory:.0f} GB of memory, {platform.system()}"
    rows = [
        ("machine", f"{machine}; broker, generator and engines share it"),
        ("Headwater", f"{version('headwater')} on PySpark {version('pyspark')}, Python {platform.python_version()}"),
        ("Flink", f"{FLINK_VERSION}, {', '.join(jar.stem for jar in bench_jars())}"),
        ("Kafka broker", next(jar.stem for jar in broker_jars() if jar.name.startswith("kafka_"))),
        ("Java", check_java().version),
    ]
    return table(("what", "which"), rows)


def _processor() -> str:
    """The processor's name where the system tells it, else its architecture."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def seconds(times: list[float]) -> str:
    return " / ".join(f"{seconds:.1f}" for seconds in times)
