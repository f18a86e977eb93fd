"""Windows over rows that come late: for the first of their windows, for some, or for all of them.

A row counts in a window unless the window was over by the watermark of its own partition before the row, however
batches are cut. Some messages are spelled in ways that column readers leave to Spark's expressions, in the middle of
others: their time counts as well.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from headwater.session import connect
from headwater.testing import CaseRunner
from headwater.testing.kafka import Kafka, Record

EPOCH = datetime(2024, 5, 1)  # noqa: DTZ001 - what a clock shows has no zone
ROWS, PARTITIONS, DELAY = 240, 2, 1000
Windows = Callable[[int], Iterator[tuple[int, int]]]

TABLE = """CREATE TABLE clicks (who STRING, n INT, x DOUBLE, ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
WITH ('connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');"""


@dataclass(frozen=True)
class Click:
    """`at` is in milliseconds from EPOCH; None: it has no time."""

    who: str | None
    n: int
    x: float
    at: int | None
    odd: bool

    @property
    def message(self) -> bytes:
        time = None if self.at is None else _text(self.at)
        text = json.dumps({"who": self.who, "n": self.n, "x": self.x, "ts": time})
        # A key that stands twice: column readers refuse it, and the last one counts.
        return (f'{{"n":0,{text[1:]}' if self.odd else text).encode()


def _text(millis: int) -> str:
    return (EPOCH + timedelta(milliseconds=millis)).isoformat(" ", "milliseconds")


def _clicks(seed: int, odd: float) -> list[list[Click]]:
    """Of each partition, in order. Time goes on by about a second a row, and single rows come up to ten late."""
    random = Random(seed)
    found: list[list[Click]] = [[] for _ in range(PARTITIONS)]
    for number in range(ROWS):
        late = random.choice((0, 0, 0, random.randrange(2000), random.randrange(10_000)))
        at = None if random.random() < 0.03 else max(0, number * 500 - late)
        x = random.choice((0.1, 1e16, -1e16, 2.5))
        click = Click(random.choice(("a", "b", None)), random.randrange(9), x, at, random.random() < odd)
        found[random.randrange(PARTITIONS)].append(click)
    return found


def tumble(at: int) -> Iterator[tuple[int, int]]:
    yield at // 4000 * 4000, at // 4000 * 4000 + 4000


def hop(at: int) -> Iterator[tuple[int, int]]:
    for back in range(3):
        start = at // 2000 * 2000 - back * 2000
        yield start, start + 6000


def cumulate(at: int) -> Iterator[tuple[int, int]]:
    start = at // 6000 * 6000
    yield from ((start, start + step) for step in (2000, 4000, 6000) if start + step > at)


FUNCTIONS: dict[str, tuple[Windows, str]] = {
    "TUMBLE": (tumble, "INTERVAL '4' SECOND"),
    "HOP": (hop, "INTERVAL '2' SECOND, INTERVAL '6' SECOND"),
    "CUMULATE": (cumulate, "INTERVAL '2' SECOND, INTERVAL '6' SECOND"),
}


def _expected(partitions: list[list[Click]], windows: Windows) -> dict[Any, list[Click]]:
    found = defaultdict(list)
    for clicks in partitions:
        watermark = None
        for click in clicks:
            if click.at is None:
                continue
            for start, end in windows(click.at):
                if watermark is None or end - 1 > watermark:
                    found[click.who, _text(start), _text(end)].append(click)
            watermark = max(click.at - DELAY, click.at - DELAY if watermark is None else watermark)
    return found


CALLS: dict[str, tuple[str, Callable[[list[Click]], tuple[Any, ...]]]] = {
    "sums": ("COUNT(*), SUM(n), MAX(n)", lambda c: (len(c), sum(k.n for k in c), max(k.n for k in c))),
    "doubles": ("SUM(x), COUNT(n)", lambda c: (_exact(k.x for k in c), len(c))),
    "distinct": ("COUNT(DISTINCT n), SUM(n)", lambda c: (len({k.n for k in c}), sum(k.n for k in c))),
}


def _exact(values: Iterator[float]) -> float:
    return float(sum(map(Fraction, values)))


@pytest.mark.parametrize("odd", [pytest.param(0.0, marks=pytest.mark.long), 0.02], ids=["plain", "odd"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_late_rows(function: str, odd: float, case_runner: CaseRunner, unique_topic: Callable[[str], str]) -> None:
    kafka: Kafka = case_runner.kafka()
    topic = unique_topic("late")
    partitions = _clicks(FUNCTIONS[function][1].count(",") * 7 + len(function) + (odd > 0), odd)
    kafka.create({topic: PARTITIONS})
    kafka.produce(Record(topic, None, c.message, p) for p, clicks in enumerate(partitions) for c in clicks)
    windows, sizes = FUNCTIONS[function]
    groups = _expected(partitions, windows)
    assert sum(map(len, groups.values())) < sum(
        len(list(windows(c.at))) for p in partitions for c in p if c.at is not None
    )
    with connect(case_runner.spark()) as session:
        session.sql(TABLE.format(topic=topic, servers=kafka.bootstrap_servers))
        for rows in (60, 1000):
            session.sql(f"SET 'headwater.batch.max-rows' = '{rows}';")
            for calls, result in CALLS.values():
                got = session.sql(
                    f"SELECT who, CAST(window_start AS STRING), CAST(window_end AS STRING), {calls} FROM "
                    f"TABLE({function}(TABLE clicks, DESCRIPTOR(ts), {sizes})) GROUP BY who, window_start, window_end"
                ).rows()
                assert sorted(got, key=repr) == sorted(((*k, *result(c)) for k, c in groups.items()), key=repr)
