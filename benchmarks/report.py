"""What was measured, as lines for the terminal and as RESULTS.md, with the goals beside the figures."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import geometric_mean, median

import numpy as np
from flink_home import FLINK_VERSION
from jobs import JOBS
from latency import LATENCIES, RATE, Latency, LatencyJob
from nexmark_scripts import NEXMARK, NEXMARK_GOAL, NEXMARK_LEAST

from headwater.install.jars import bench_jars, broker_jars
from headwater.install.java import check_java

__all__ = [
    "HEADWATER",
    "Measured",
    "Report",
    "against_goal",
    "flink_version",
    "latency_summary",
    "nexmark_summary",
    "ratio",
    "seconds",
    "summary",
    "table",
    "versions",
    "write_results",
]

RESULTS = Path(__file__).with_name("RESULTS.md")
HEADWATER = "Headwater"
DRIVER_MILLIS = 60  # the goal for the driver's time per batch, beside Spark's own job


@dataclass
class Measured:
    """One workload: seconds of every timed run, and how many result messages a run wrote."""

    headwater: list[float] = field(default_factory=list)
    flink: list[float] = field(default_factory=list)
    messages: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """`latencies` by the name of the job and of the engine."""

    rows: int
    runs: int
    workloads: Mapping[str, Measured]
    latencies: Mapping[str, Mapping[str, Latency]]


def ratio(measured: Measured) -> float:
    """Flink's median time divided by ours: above 1, we are faster."""
    return median(measured.flink) / median(measured.headwater)


def against_goal(met: bool, goal: str) -> str:
    return f"{goal} ({'met' if met else 'missed'})"


def summary(name: str, measured: Measured) -> str:
    """One workload on one line, for the terminal."""
    ours, theirs, found = seconds(measured.headwater), seconds(measured.flink), ratio(measured)
    goal = against_goal(round(found, 2) >= JOBS[name].goal, f"{JOBS[name].goal}")
    return f"{name:<17} Headwater {ours} s   Flink {theirs} s   Flink/Headwater {found:.2f}   goal {goal}"


def nexmark_summary(report: Report) -> str:
    """What Nexmark's queries come to together; empty if none was measured."""
    ratios = [ratio(measured) for name, measured in report.workloads.items() if name in NEXMARK]
    if not ratios:
        return ""
    mean, least = geometric_mean(ratios), min(ratios)
    goals = (
        against_goal(round(mean, 2) >= NEXMARK_GOAL, f"≥ {NEXMARK_GOAL}"),
        against_goal(round(least, 2) >= NEXMARK_LEAST, f"≥ {NEXMARK_LEAST}"),
    )
    return (
        f"Nexmark, {len(ratios)} of {len(NEXMARK)} queries: geometric mean **{mean:.2f}**, goal {goals[0]}; "
        f"least {least:.2f}, goal {goals[1]}"
    )


def latency_summary(job: LatencyJob, engine: str, found: Latency) -> str:
    line = f"latency, {job.title:<20} {engine}: p50 {found.p50:.2f} s, p99 {found.p99:.2f} s"
    if not found.batches:
        return line
    whole, spark, driver = _batch_times(found)
    return f"{line}; a batch {whole:.0f} ms, Spark's job {spark:.0f} ms, driver {driver:.0f} ms"


def write_results(report: Report) -> Path:
    RESULTS.write_text(_render(report), encoding="utf-8")
    return RESULTS


def _render(report: Report) -> str:
    parts = [
        "# Headwater beside Flink",
        _INTRODUCTION.format(rows=report.rows, runs=report.runs) + _missing(report),
        _workload_table(report, [name for name in report.workloads if name not in NEXMARK]),
        *_nexmark(report),
        "All timed runs, in seconds:",
        _runs_table(report),
        *([_LATENCY, _latency_table(report), _DRIVER, _driver_table(report)] if report.latencies else []),
        _METHOD,
        versions(flink_version()),
    ]
    return "\n\n".join(parts) + "\n"


def _missing(report: Report) -> str:
    parts = [name for name in JOBS if name not in report.workloads]
    parts += [f"latency of {job.title}" for name, job in LATENCIES.items() if name not in report.latencies]
    return f"\n\nNot measured this time: {', '.join(parts)}." if parts else ""


def _nexmark(report: Report) -> list[str]:
    names = [name for name in report.workloads if name in NEXMARK]
    return [_NEXMARK, nexmark_summary(report) + ".", _workload_table(report, names)] if names else []


_INTRODUCTION = """\
{rows:,} rows per workload; timed runs of each engine in turn: {runs}, after two warm-up runs; medians. The result of
every run equalled a recount of the input: tables and logs row by row, the log of `copy` byte for byte."""

_NEXMARK = """\
## Nexmark

The queries of `tests/nexmark` over one topic of events, half as many as the rows above, one in a millisecond and up to
three seconds out of order; one timed run after one that is not counted. Final tables of upsert topics and all rows of
logs equalled DuckDB's answers. `benchmarks/nexmark_scripts.py` says where Flink runs another text (q13) or less can be
compared (q12)."""

_LATENCY = f"""\
## Latency

Jobs without an end, {RATE:,} rows a second: from sending a row to reading the result that includes it. One aggregation
is the job of `totals`; upsert → aggregation is the job of `regions`, where every row retracts an earlier one. Goals are
Headwater's."""

_DRIVER = """\
The same runs of Headwater, batch by batch: how long a batch takes, how much of that is Spark's own job, and how much
the driver takes beside it (deciding what to read, intent, setting up Spark's job, commit, garbage, progress). Medians,
and the 99th percentile in brackets."""

_METHOD = """\
## How it was measured

`make bench` does it all again: it installs Flink in a venv of its own under `$HEADWATER_HOME/bench`, starts the
embedded broker, fills topics of two partitions from fixed seeds, and runs both engines on the same SQL
(`benchmarks/workloads.py`, `changelog_scripts.py`, `nexmark_scripts.py`). `benchmarks/run.py --help` lists the options;
`--only` runs single parts or groups of them.

- Time is from submitting the SQL to the end of the bounded job, in a process that has run the same job before.
- Both engines: parallelism 2, a Java heap of 4 GB, checkpoints on the local disk, at-least-once sinks, the Kafka client
  settings they come with. While one works, the other is idle.
- Headwater: `local[2]`, a new checkpoint directory per run, a checkpoint with every batch.
- Flink: streaming mode on a session cluster in one JVM, connector jars in its lib directory, object reuse, heap state,
  mini-batch (1 s, 50,000 rows), a checkpoint every 5 s. It does not wait for a last checkpoint after its last result.
- `totals`: payments of 1,000 accounts, JSON in and out.
- `pageviews`: document 001's job, JSON in and Avro out. 1,000 regions and a user for every four views, each view from
  any region, so that nearly every view brings its region a new user. `pageviews-where`: the same with
  `WHERE page_id < 900 AND user_region <> 'r0'`, which nine rows of ten pass.
- `regions`: accounts with 20 changes each, JSON in and out. One change in ten moves the account to another region, one
  in a hundred deletes it.
- `copy`: payments, JSON in and out, with a WHERE that nine rows of ten pass, UPPER, arithmetic and a CASE.
- `join`: orders and customers, two upsert topics with a key for every four of the rows each; a fifth of the keys is
  written twice, and one order in fifty is deleted. Every order has any customer.
- `temporal-join`: nine rows of ten are sales, one is a rate of one of 1,000 currencies; 20 minutes of event time.
- `top-3`: players with four scores each, in teams of 100; one message in fifty deletes its player.
- `deduplicate`: two readings of every id, the earlier one by event time is kept.
- `tumble`: clicks of 10,000 accounts in 20 minutes, up to three seconds out of order."""


def _workload_table(report: Report, names: Sequence[str]) -> str:
    rows = []
    for name in names:
        workload, measured = JOBS[name], report.workloads[name]
        found = round(ratio(measured), 2)
        ours, theirs = (f"{median(times):.1f} s" for times in (measured.headwater, measured.flink))
        goal = against_goal(found >= workload.goal, f"≥ {workload.goal}")
        rows.append((f"`{name}`: {workload.title}", ours, theirs, f"**{found:.2f}**", goal))
    return table(("workload", "Headwater", "Flink", "Flink / Headwater", "goal"), rows)


def _runs_table(report: Report) -> str:
    rows = [
        (name, seconds(m.headwater), seconds(m.flink), f"{m.messages['headwater']:,}", f"{m.messages['flink']:,}")
        for name, m in report.workloads.items()
    ]
    header = ("workload", "Headwater", "Flink", "messages written by Headwater", "by Flink")
    return table(header, rows)


def _latency_table(report: Report) -> str:
    rows = []
    for name, engines in report.latencies.items():
        job = LATENCIES[name]
        for engine, found in engines.items():
            met = round(found.p50, 2) <= job.p50 and round(found.p99, 2) <= job.p99
            goal = against_goal(met, f"≤ {job.p50} s, ≤ {job.p99} s") if engine == HEADWATER else ""
            rows.append((job.title, engine, f"{found.p50:.2f} s", f"{found.p99:.2f} s", f"{found.rows:,}", goal))
    return table(("job", "engine", "p50", "p99", "rows", "goal"), rows)


def _driver_table(report: Report) -> str:
    rows = []
    for name, engines in report.latencies.items():
        found = engines[HEADWATER]
        middle, worst = _batch_times(found), _batch_times(found, 99)
        times = [f"{one:.0f} ms ({other:.0f} ms)" for one, other in zip(middle, worst, strict=True)]
        goal = against_goal(middle[2] <= DRIVER_MILLIS, f"≤ {DRIVER_MILLIS} ms")
        rows.append((LATENCIES[name].title, f"{len(found.batches):,}", *times, goal))
    return table(("job", "batches", "a batch", "Spark's job", "driver beside it", "goal"), rows)


def _batch_times(found: Latency, percentile: float = 50) -> tuple[float, float, float]:
    """Of the whole batch, of Spark's job in it, and of the driver beside that, in milliseconds."""
    times = [[batch.seconds, batch.spark_seconds, batch.driver_seconds] for batch in found.batches]
    whole, spark, driver = (np.percentile(times, percentile, axis=0) * 1000).tolist()
    return whole, spark, driver


def flink_version() -> tuple[str, str]:
    return "Flink", f"{FLINK_VERSION}, {', '.join(jar.stem for jar in bench_jars())}"


def versions(*others: tuple[str, str]) -> str:
    """The machine and what ran on it, as a table."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} cores ({_processor()}), {memory:.0f} GB of memory, {platform.system()}"
    rows = [
        ("machine", f"{machine}; broker, generator and engines share it"),
        ("Headwater", f"{version('headwater')} on PySpark {version('pyspark')}, Python {platform.python_version()}"),
        *others,
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
