"""Headwater and Flink, side by side on the same topics: `make bench`.

1. Start the embedded broker and both engines.
2. For each workload: fill its topic, let each engine run it twice to warm up, then run them in turn. Every final table
   must equal the recount of the input, or the benchmark fails.
3. Measure latency at a steady 1,000 rows a second.
4. Print Flink's time divided by ours, and write RESULTS.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence

from generate import Table, expected, fill
from latency import Latency, measure_latency
from outputs import create_topic, drop_topic, read_outcome
from report import Measured, Report, summary, write_results
from side import Side
from stage import Sides, in_turn, staged
from workloads import WORKLOADS, Place, Workload

ROWS = 4_000_000
LATENCY = "latency"
NO_MINI_BATCH = {"table.exec.mini-batch.enabled": "false"}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    return staged(lambda servers, sides: _play(options, servers, sides))  # 1


def _play(options: argparse.Namespace, servers: str, sides: Sides) -> None:
    bench = Bench(servers, sides, options.rows, options.runs)
    workloads = {name: bench.compare(WORKLOADS[name]) for name in options.only if name != LATENCY}  # 2
    latencies = bench.latencies(options.seconds) if LATENCY in options.only else {}  # 3
    complete = options.only == _ALL and options.rows >= ROWS
    _conclude(Report(options.rows, options.runs, workloads, latencies), complete=complete)  # 4


_ALL = [*WORKLOADS, LATENCY]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Headwater and Flink, side by side on the same topics.",
        epilog="RESULTS.md is written by a run of everything with at least the default number of rows.",
    )
    parser.add_argument("--rows", type=int, default=ROWS, help=f"messages per topic (default: {ROWS:,})")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each engine (default: 3)")
    parser.add_argument("--only", nargs="+", choices=_ALL, default=_ALL, help="some of it instead of all")
    parser.add_argument("--seconds", type=float, default=30, help="how long latency is measured (default: 30)")
    return parser


class Bench:
    """One broker and both engines, ours first."""

    def __init__(self, servers: str, sides: Sides, rows: int, runs: int) -> None:
        self._servers = servers
        self._sides = sides
        self._rows = rows
        self._runs = runs

    def compare(self, workload: Workload) -> Measured:
        """Fill the topic and time both sides."""
        began = time.perf_counter()
        create_topic(self._servers, workload.name)
        fill(self._servers, workload.name, workload.name, self._rows)
        right = expected(workload.name, self._rows)
        print(f"{workload.name}: {self._rows:,} rows in {time.perf_counter() - began:.1f} s", flush=True)
        messages: dict[str, int] = {}
        measured = in_turn(self._sides, self._runs, lambda side: self._timed(workload, side, right, messages))
        measured.messages.update(messages)
        drop_topic(self._servers, workload.name)
        return measured

    def latencies(self, seconds: float) -> dict[str, Latency]:
        ours, theirs = self._sides
        found = {}
        cases: tuple[tuple[str, Side, Mapping[str, str]], ...] = (
            ("Headwater", ours, {}),
            ("Flink, mini-batch of 1 s", theirs, {}),
            ("Flink, no mini-batch", theirs, NO_MINI_BATCH),
        )
        for number, (name, side, settings) in enumerate(cases):
            place = Place(self._servers, f"latency-{number}", f"latency-{number}-results")
            found[name] = measure_latency(side, place, seconds, settings)
            print(f"latency    {name}: p50 {found[name].p50:.2f} s, p99 {found[name].p99:.2f} s", flush=True)
        return found

    def _timed(self, workload: Workload, side: Side, right: Table, messages: dict[str, int]) -> float:
        """Run once into a topic of its own, and check what came out."""
        sink = f"{workload.name}-{side.name}"
        create_topic(self._servers, sink)
        seconds = side.run(workload.statements(Place(self._servers, workload.name, sink), bounded=True))
        outcome = read_outcome(self._servers, sink, workload.sink_format)
        _check(side.name, outcome.table, right)
        messages[side.name] = outcome.messages
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


def _conclude(report: Report, *, complete: bool) -> None:
    print()
    for name, measured in report.workloads.items():
        print(summary(name, measured))
    if complete:
        print(f"Written: {write_results(report)}")


if __name__ == "__main__":
    sys.exit(main())
