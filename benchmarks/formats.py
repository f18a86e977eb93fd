"""Formats, each beside Flink's own of the same name: `make bench-formats`.

1. Start the embedded broker and both engines, and fill a topic with JSON.
2. Encode: copy that topic into one of the format. Both engines must write the same messages, byte for byte.
3. Decode: read a topic of the format (the one Flink wrote) into `blackhole`, all columns.
4. Headwater alone: decode JSON with 'scan.bad-records' = 'dead-letter', with nothing bad in the topic.
5. Print rows per second and Flink's time divided by ours, and write FORMATS.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from statistics import median

from engines import EngineProcess
from generate import GENERATORS, fill
from harness import Engines, in_turn, with_engines
from outputs import create_topic, drop_topic, fingerprint
from report import Measured, against_goal, flink_version, ratio, table, versions

ROWS = 2_000_000
GOAL = 1.0  # of Flink's time divided by ours, for every line
FORMATS = ("json", "csv", "avro", "debezium-json")
PAGE = Path(__file__).with_name("FORMATS.md")
INPUT = "payments"
DEAD_LETTERS = {"scan.bad-records": "dead-letter", "scan.dead-letter.topic": "dead-letters"}
_COLUMNS = "(payment_id BIGINT, account STRING, amount BIGINT, paid_at TIMESTAMP(3))"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Formats, each beside Flink's own of the same name.",
        epilog="FORMATS.md is written by a run of all formats with at least the default number of rows.",
    )
    parser.add_argument("--rows", type=int, default=ROWS, help=f"messages per topic (default: {ROWS:,})")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each engine (default: 3)")
    parser.add_argument("--only", nargs="+", choices=FORMATS, default=list(FORMATS), help="some of the formats")
    options = parser.parse_args(arguments)
    return with_engines(lambda servers, engines: _measure(options, servers, engines))


def _measure(options: argparse.Namespace, servers: str, engines: Engines) -> None:
    bench = Bench(servers, engines, options.rows, options.runs)  # 1
    found: dict[str, Measured] = {}
    for name in options.only:
        found[f"{name}, encode"] = bench.encode(name)  # 2
        found[f"{name}, decode"] = bench.decode(name)  # 3
    dead_letters = bench.dead_letters()  # 4
    page = _render(options, found, dead_letters)  # 5
    print(f"\n{page}")
    if options.only == list(FORMATS) and options.rows >= ROWS:
        PAGE.write_text(page, encoding="utf-8")


class Bench:
    """A topic of JSON, and one of each format that was written."""

    def __init__(self, servers: str, engines: Engines, rows: int, runs: int) -> None:
        self._servers = servers
        self._engines = engines
        self._rows = rows
        self._runs = runs
        create_topic(servers, INPUT)
        fill(servers, INPUT, GENERATORS["totals"], rows)
        self._written = {"json": fingerprint(servers, INPUT)}
        self._topics: dict[tuple[str, str], str] = {}
        self._numbers = count()

    def encode(self, name: str) -> Measured:
        """JSON → the format. What Flink wrote last stays, to be decoded."""
        print(f"{name}, encode", flush=True)
        return in_turn(self._engines, self._runs, lambda engine: self._encoded(name, engine))

    def decode(self, name: str) -> Measured:
        print(f"{name}, decode", flush=True)
        job = self._reading(name, self._topics[name, "flink"], {})
        return in_turn(self._engines, self._runs, lambda engine: engine.run(job))

    def dead_letters(self) -> Mapping[str, list[float]]:
        """Seconds of Headwater alone, without and with a topic for bad messages."""
        print("json, decode, without and with 'dead-letter'", flush=True)
        create_topic(self._servers, DEAD_LETTERS["scan.dead-letter.topic"])
        found: dict[str, list[float]] = {"plain": [], "dead-letter": []}
        for number in range(self._runs + 1):
            for mode, options in (("plain", {}), ("dead-letter", DEAD_LETTERS)):
                seconds = self._engines[0].run(self._reading("json", INPUT, options))
                print(f"  {mode:<12} {seconds:6.2f} s{'' if number else '  (warm-up)'}", flush=True)
                if number:
                    found[mode].append(seconds)
        return found

    def _encoded(self, name: str, engine: EngineProcess) -> float:
        """Write a new topic, and compare it with the input or with what was written first."""
        topic = f"{name}-{engine.name}-{next(self._numbers)}"
        create_topic(self._servers, topic)
        target = f"CREATE TABLE copied {_COLUMNS} {self._options(topic, name, {})}"
        seconds = engine.run([self._source("json", INPUT, {}), target, "INSERT INTO copied SELECT * FROM payments"])
        written = fingerprint(self._servers, topic)
        expected = self._written.setdefault(name, written)
        if written != expected or written[0] != self._rows:
            raise RuntimeError(f"{engine.name} wrote {written[0]:,} messages as {name}, and other ones than expected.")
        previous, self._topics[name, engine.name] = self._topics.get((name, engine.name)), topic
        if previous is not None:
            drop_topic(self._servers, previous)
        return seconds

    def _reading(self, name: str, topic: str, options: Mapping[str, str]) -> list[str]:
        target = f"CREATE TABLE nowhere {_COLUMNS} WITH ('connector' = 'blackhole')"
        return [self._source(name, topic, options), target, "INSERT INTO nowhere SELECT * FROM payments"]

    def _source(self, name: str, topic: str, options: Mapping[str, str]) -> str:
        bounds = {"scan.startup.mode": "earliest-offset", "scan.bounded.mode": "latest-offset"}
        return f"CREATE TABLE payments {_COLUMNS} {self._options(topic, name, {**bounds, **options})}"

    def _options(self, topic: str, name: str, more: Mapping[str, str]) -> str:
        servers = {"properties.bootstrap.servers": self._servers}
        options = {"connector": "kafka", "topic": topic, "format": name, **servers, **more}
        pairs = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        return f"WITH ({pairs})"


def _render(options: argparse.Namespace, found: Mapping[str, Measured], dead_letters: Mapping[str, list[float]]) -> str:
    def speed(times: list[float]) -> str:
        return f"{options.rows / median(times):,.0f}"

    rows = [
        (
            what,
            speed(m.headwater),
            speed(m.flink),
            f"**{ratio(m):.2f}**",
            against_goal(round(ratio(m), 2) >= GOAL, f"≥ {GOAL}"),
        )
        for what, m in found.items()
    ]
    cost = median(dead_letters["dead-letter"]) / median(dead_letters["plain"])
    modes = [(mode, speed(times)) for mode, times in dead_letters.items()]
    parts = [
        "# Formats beside Flink's",
        _INTRODUCTION.format(rows=options.rows, runs=options.runs),
        table(("format", "Headwater, rows/s", "Flink, rows/s", "Flink's time / Headwater's", "goal"), rows),
        _DEAD_LETTERS.format(cost=cost),
        table(("'scan.bad-records'", "rows/s"), modes),
        _METHOD,
        versions(flink_version()),
    ]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """\
{rows:,} rows; timed runs of each engine in turn: {runs}, after two warm-up runs; medians. Both engines wrote the same
messages in every run, byte for byte."""

_DEAD_LETTERS = """\
Headwater alone, decoding JSON without anything bad in it, with and without a topic for bad messages (time with it
divided by time without: **{cost:.2f}**):"""

_METHOD = """\
`make bench-formats` does it all again. Rows are payments of four columns (two BIGINT, a STRING, a TIMESTAMP(3)). Encode
copies a JSON topic into a topic of the format, so it includes reading JSON. Decode reads all columns of a topic into
`blackhole`. Time is from submitting the SQL to the end of the bounded job; see [RESULTS.md](RESULTS.md) for the
settings of both engines."""


if __name__ == "__main__":
    sys.exit(main())
