"""What exactly-once costs: the same jobs with each delivery guarantee, on one broker and one Spark.

`make bench-delivery` does this:

1. Start the embedded broker and Spark, and fill a topic with payments.
2. For each job, from topic to topic and into an upsert topic: run it once with each guarantee to warm up, then in turn,
   so that a machine that is busy for a while is busy for both. A run is timed from the start of the job to its end.
3. Every result is compared with the recount of the input, by a reader that takes only what is committed.
4. Print the ratio of the medians, and write DELIVERY.md.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from statistics import median

from generate import GENERATORS, expected, fill
from outputs import create_topic, drop_topic, read_outcome
from report import against_goal, seconds, table, versions
from workloads import WORKLOADS, Place, Workload

import headwater
from headwater.broker import Broker

ROWS = 2_000_000
GOAL = 0.9  # of the throughput of exactly-once divided by that of at-least-once
GUARANTEES = ("at-least-once", "exactly-once")
JOBS = {"copy": "topic → topic, with a WHERE and expressions", "totals": "topic → COUNT, SUM by key → upsert topic"}
PAGE = Path(__file__).with_name("DELIVERY.md")

Found = Mapping[str, Mapping[str, list[float]]]
"""Job → guarantee → seconds of each timed run."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    try:
        with Broker.start(directory / "broker", port=0, die_with_parent=True) as broker:  # 1
            bench = Bench(broker.bootstrap_servers, directory / "checkpoints", options.rows)
            found = {name: bench.compare(WORKLOADS[name], options.runs) for name in options.only}
            bench.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    page = _render(found, options.rows, options.runs)  # 4
    print(f"\n{page}")
    if options.only == list(JOBS) and options.rows >= ROWS:
        PAGE.write_text(page, encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Throughput of exactly-once beside at-least-once.",
        epilog="DELIVERY.md is written by a run of both jobs with at least the default number of rows.",
    )
    parser.add_argument("--rows", type=int, default=ROWS, help=f"messages per topic (default: {ROWS:,})")
    parser.add_argument("--runs", type=int, default=5, help="timed runs with each guarantee (default: 5)")
    parser.add_argument("--only", nargs="+", choices=list(JOBS), default=list(JOBS), help="one job, not both")
    return parser


class Bench:
    """One broker, one Spark, and a topic of payments."""

    def __init__(self, servers: str, checkpoints: Path, rows: int) -> None:
        self._servers = servers
        self._checkpoints = checkpoints
        self._rows = rows
        self._numbers = count()
        self._home = headwater.connect(master="local[2]", conf={"spark.driver.memory": "4g"})
        create_topic(servers, "payments")
        fill(servers, "payments", GENERATORS["totals"], rows)

    def compare(self, workload: Workload, runs: int) -> dict[str, list[float]]:
        right = expected(workload.name, self._rows)
        found: dict[str, list[float]] = {guarantee: [] for guarantee in GUARANTEES}
        for number in range(runs + 1):
            for guarantee in GUARANTEES if number % 2 else GUARANTEES[::-1]:  # 2
                topic = f"results-{next(self._numbers)}"
                took = self._timed(workload, guarantee, topic)
                if read_outcome(self._servers, topic, workload.result).table != right:  # 3
                    raise RuntimeError(f"{workload.name}, {guarantee}: the result is not the recount of the input.")
                drop_topic(self._servers, topic)
                print(
                    f"  {workload.name:<8} {guarantee:<14} {took:6.2f} s{'' if number else '  (warm-up)'}", flush=True
                )
                if number:
                    found[guarantee].append(took)
        return found

    def close(self) -> None:
        self._home.close()

    def _timed(self, workload: Workload, guarantee: str, topic: str) -> float:
        create_topic(self._servers, topic)
        source, sink, insert = workload.statements(Place(self._servers, "payments", topic), bounded=True)
        sink = sink.removesuffix(")") + f", 'sink.delivery-guarantee' = '{guarantee}')"
        began = time.perf_counter()
        with headwater.connect(self._home.spark, checkpoint=str(self._checkpoints / topic)) as session:
            session.sql(f"{source};\n{sink};\n{insert};")
            session.wait()
            return time.perf_counter() - began


def _render(found: Found, rows: int, runs: int) -> str:
    lines = []
    for name, guarantees in found.items():
        middle = {guarantee: median(times) for guarantee, times in guarantees.items()}
        ratio = round(middle["at-least-once"] / middle["exactly-once"], 2)
        speeds = [f"{rows / middle[guarantee]:,.0f}" for guarantee in GUARANTEES]
        lines.append((JOBS[name], *speeds, f"**{ratio:.2f}**", against_goal(ratio >= GOAL, f"≥ {GOAL}")))
    timed = [(JOBS[name], *(seconds(times) for times in guarantees.values())) for name, guarantees in found.items()]
    header = ("job", "at-least-once, rows/s", "exactly-once, rows/s", "exactly-once / at-least-once", "goal")
    parts = [
        "# Exactly-once beside at-least-once",
        _INTRODUCTION.format(rows=rows, runs=runs),
        table(header, lines),
        "All timed runs, in seconds:",
        table(("job", *GUARANTEES), timed),
        "`make bench-delivery` does it all again.",
        versions(),
    ]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """\
{rows:,} rows; timed runs with each guarantee in turn: {runs}, after one warm-up run; medians. A reader that takes only
what is committed found the recount of the input in every run. Both jobs are those of [RESULTS.md](RESULTS.md)."""


if __name__ == "__main__":
    sys.exit(main())
