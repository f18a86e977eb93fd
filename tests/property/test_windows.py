"""Every window function with every query that windows allow, over two logs that arrive out of order in several batches,
beside DuckDB over the same rows with windows of a plain reference.

The rows lie around the two days of 2024 on which clocks in Berlin were changed. `local` has them as what the clock
shows, which skips an hour in spring and has one twice in autumn; `moments` has instants, whose windows are those of the
clock in 'table.local-time-zone'. None is late, and the end of the input closes all windows.

A few of the pairs of a query and a function are part of every run and a quarter of them of a long one;
`HEADWATER_WINDOWS=all` plays all.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pytest

from headwater.session import Session, connect
from headwater.testing import CaseRunner
from headwater.testing.kafka import Kafka, Record

BERLIN = ZoneInfo("Europe/Berlin")
CHANGES = (datetime(2024, 3, 31, 1, tzinfo=timezone.utc), datetime(2024, 10, 27, 1, tzinfo=timezone.utc))
HOUR, DAY, GAP = timedelta(hours=1), timedelta(days=1), timedelta(minutes=90)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - what a clock shows has no zone
SIDES = ("bids", "asks")
ROWS, BATCH, PARTITIONS = 120, 50, 2
ALL_PAIRS = os.environ.get("HEADWATER_WINDOWS") == "all"

TABLES = """
CREATE TABLE {side} (id INT, who STRING, kind STRING, n INT, at_ms BIGINT, shown TIMESTAMP(3),
  ts AS {time}, WATERMARK FOR ts AS ts - INTERVAL '4' HOUR)
WITH ('connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
"""
TIMES = {"local": "shown", "moments": "TO_TIMESTAMP_LTZ(at_ms, 3)"}

_INSTANT = re.compile(r"INSTANT\[(.*?)\]")
Windows = Callable[[datetime], list[tuple[datetime, datetime]]]


def tumble(size: timedelta, offset: timedelta = timedelta(0)) -> Windows:
    return hop(size, size, offset)


def hop(slide: timedelta, size: timedelta, offset: timedelta = timedelta(0)) -> Windows:
    def windows(t: datetime) -> list[tuple[datetime, datetime]]:
        start, found = _floor(t, slide, offset), []
        while start + size > t:
            found.append((start, start + size))
            start -= slide
        return found

    return windows


def cumulate(step: timedelta, size: timedelta, offset: timedelta = timedelta(0)) -> Windows:
    def windows(t: datetime) -> list[tuple[datetime, datetime]]:
        start = _floor(t, size, offset)
        ends = [start + step * k for k in range(1, size // step + 1)]
        return [(start, end) for end in ends if end > t]

    return windows


def _floor(t: datetime, unit: timedelta, offset: timedelta) -> datetime:
    return t - (t - EPOCH - offset) % unit


@dataclass(frozen=True)
class Function:
    """A window function: its name and further arguments, and which windows a time is in."""

    text: str
    windows: Windows

    def over(self, side: str) -> str:
        name, _, arguments = self.text.partition(" ")
        return f"TABLE({name}(TABLE {side}, DESCRIPTOR(ts), {arguments}))"


FUNCTIONS = {
    "tumble_day": Function("TUMBLE INTERVAL '1' DAY", tumble(DAY)),
    "tumble_offset": Function("TUMBLE INTERVAL '1' DAY, INTERVAL '3' HOUR", tumble(DAY, 3 * HOUR)),
    "tumble_hour": Function("TUMBLE INTERVAL '1' HOUR", tumble(HOUR)),
    "hop": Function("HOP INTERVAL '1' HOUR, INTERVAL '3' HOUR", hop(HOUR, 3 * HOUR)),
    "hop_uneven": Function(
        "HOP INTERVAL '5' HOUR, INTERVAL '12' HOUR, INTERVAL '-1' HOUR", hop(5 * HOUR, 12 * HOUR, -HOUR)
    ),
    "hop_with_gaps": Function("HOP INTERVAL '5' HOUR, INTERVAL '2' HOUR", hop(5 * HOUR, 2 * HOUR)),
    "cumulate": Function("CUMULATE INTERVAL '6' HOUR, INTERVAL '1' DAY", cumulate(6 * HOUR, DAY)),
}
_SAME = "b.who = a.who AND b.window_start = a.window_start AND b.window_end = a.window_end"
_JOIN = f"SELECT b.id, a.id FROM (SELECT * FROM <bids>) b %s JOIN (SELECT * FROM <asks>) a ON {_SAME} AND b.n >= a.n"
_WITH = (
    "SELECT b.id, b.window_start FROM (SELECT * FROM <bids>) b WHERE %s "
    f"(SELECT * FROM <asks> a WHERE {_SAME} AND a.n > b.n + 20)"
)
_BEST = (
    "SELECT id, window_start, place FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end%s "
    "ORDER BY %s) AS place FROM <bids>) WHERE place %s"
)
_PER_WHO = "SELECT who, window_start, window_end, SUM(n) AS total FROM <bids> GROUP BY who, window_start, window_end"
QUERIES = {
    "group": "SELECT who, window_start, window_end, INSTANT[window_time], COUNT(*), SUM(n), MIN(n), "
    "COUNT(DISTINCT kind) FROM <bids> GROUP BY who, window_start, window_end, window_time",
    "having": "SELECT window_end, MAX(n) FROM <bids> WHERE kind <> 'x' GROUP BY window_start, window_end "
    "HAVING COUNT(*) > 2",
    "start_alone": "SELECT window_start, COUNT(*), SUM(n) FROM <bids> GROUP BY window_start",
    "grouping_sets": "SELECT window_start, window_end, who, kind, GROUPING(who), SUM(n) FROM <bids> "
    "GROUP BY GROUPING SETS ((window_start, window_end, who), (window_start, window_end, kind), "
    "(window_start, window_end))",
    "rollup": "SELECT window_start, window_end, who, kind, COUNT(*) FROM <bids> "
    "GROUP BY window_start, window_end, ROLLUP(who, kind)",
    "cube": "SELECT window_start, window_end, who, kind, COUNT(DISTINCT n) FROM <bids> "
    "GROUP BY window_start, window_end, CUBE(who, kind)",
    "best": _BEST % ("", "n DESC, id", "<= 2"),
    "best_each": _BEST % (", who", "n, id", "BETWEEN 2 AND 3"),
    "first": _BEST % (", who", "ts", "= 1"),
    "last": _BEST % ("", "ts DESC", "= 1"),
    "best_of_sums": "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end "
    f"ORDER BY total DESC, who) AS place FROM ({_PER_WHO})) WHERE place <= 2",
    "join": _JOIN % ("INNER"),
    "left_join": _JOIN % ("LEFT"),
    "right_join": _JOIN % ("RIGHT"),
    "full_join": _JOIN % ("FULL"),
    "exists": _WITH % ("EXISTS"),
    "not_exists": _WITH % ("NOT EXISTS"),
    "in": "SELECT b.id, b.window_start FROM (SELECT * FROM <bids>) b WHERE b.who IN (SELECT a.who FROM <asks> a "
    "WHERE b.window_start = a.window_start AND b.window_end = a.window_end AND a.kind = 'x')",
    "join_of_sums": "SELECT b.who, b.window_start, b.total, a.c FROM "
    f"({_PER_WHO}) b JOIN (SELECT who, window_start, window_end, COUNT(*) AS c FROM <asks> "
    f"GROUP BY who, window_start, window_end) a ON {_SAME}",
}


def events(side: str) -> list[dict[str, Any]]:
    """Up to three hours out of order in their partition; no two at the same time, on the clock neither."""
    random = Random(side)
    minutes = random.sample(
        [m for m in range(-36 * 60, 36 * 60) if not 0 <= m + 60 < 120 or m % 2 == (m < 0)], ROWS // 2
    )
    late = {m: m + random.randrange(110) for m in minutes}
    times = [change + timedelta(minutes=m) for change in CHANGES for m in sorted(minutes, key=lambda m: late[m])]
    return [
        {
            "id": number,
            "who": random.choice("abc"),
            "kind": random.choice("xy"),
            "n": random.randrange(50),
            "at_ms": int(time.timestamp() * 1000),
            "shown": time.astimezone(BERLIN).strftime("%Y-%m-%d %H:%M:%S"),
        }
        for number, time in enumerate(times)
    ]


@pytest.fixture(scope="module")
def topics(case_runner: CaseRunner, unique_topic: Callable[[str], str]) -> dict[str, str]:
    kafka: Kafka = case_runner.kafka()
    names = {side: unique_topic(f"windows-{side}") for side in SIDES}
    kafka.create(dict.fromkeys(names.values(), PARTITIONS))
    for side in SIDES:
        rows = enumerate(json.dumps(event).encode() for event in events(side))
        kafka.produce(Record(names[side], None, row, number % PARTITIONS) for number, row in rows)
    return names


@dataclass(frozen=True)
class Both:
    headwater: Session
    duckdb: duckdb.DuckDBPyConnection
    of_instants: bool


@pytest.fixture(scope="module", params=list(TIMES))
def both(request: pytest.FixtureRequest, case_runner: CaseRunner, topics: dict[str, str]) -> Iterator[Both]:
    servers, clock = case_runner.kafka().bootstrap_servers, Clock(BERLIN if request.param == "moments" else None)
    with connect(case_runner.spark()) as session, duckdb.connect() as database:
        session.sql(f"SET 'table.local-time-zone' = '{BERLIN.key}'; SET 'headwater.batch.max-rows' = '{BATCH}';")
        for side, topic in topics.items():
            session.sql(TABLES.format(side=side, time=TIMES[request.param], topic=topic, servers=servers))
            for name, function in FUNCTIONS.items():
                _windowed(database, f"{name}_{side}", _rows(side, clock, function.windows))
            _windowed(database, f"session_{side}", _session_rows(side, clock))
        yield Both(session, database, request.param == "moments")


def _windowed(database: duckdb.DuckDBPyConnection, name: str, rows: list[tuple[Any, ...]]) -> None:
    """A table of rows and their windows."""
    database.execute(
        f"CREATE TABLE {name} (id INT, who TEXT, kind TEXT, n INT, ts TIMESTAMP, "
        "window_start TIMESTAMP, window_end TIMESTAMP, window_time TIMESTAMP, shown TIMESTAMP)"
    )
    database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _rows(side: str, clock: Clock, windows: Windows) -> list[tuple[Any, ...]]:
    return [
        (*_of(event), clock.time(event), *window, *clock.last(window[1]))
        for event in events(side)
        for window in windows(datetime.fromisoformat(event["shown"]))
    ]


def _session_rows(side: str, clock: Clock) -> list[tuple[Any, ...]]:
    """Rows with the sessions of who is in them."""
    found = []
    for who in "abc":
        mine = sorted((e for e in events(side) if e["who"] == who), key=clock.time)
        session: list[dict[str, Any]] = []
        for event in [*mine, None]:
            if session and (event is None or clock.time(event) > clock.time(session[-1]) + GAP):
                first, end = clock.time(session[0]), clock.time(session[-1]) + GAP
                window = (clock.shown(first), clock.shown(end))
                found += [(*_of(e), clock.time(e), *window, *clock.last(window[1])) for e in session]
                session = []
            session += [event] if event is not None else []
    return found


def _of(event: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(event[name] for name in ("id", "who", "kind", "n"))


@dataclass(frozen=True)
class Clock:
    """How the rows have their time: as what the clock shows, or as an instant in `zone`, here without one: in UTC."""

    zone: ZoneInfo | None

    def time(self, event: dict[str, Any]) -> datetime:
        if self.zone is None:
            return datetime.fromisoformat(event["shown"])
        return EPOCH + timedelta(milliseconds=event["at_ms"])

    def shown(self, time: datetime) -> datetime:
        return _shown(time, self.zone) if self.zone is not None else time

    def last(self, end: datetime) -> tuple[datetime, datetime]:
        """The time of a window that ends then, and what the clock shows at it: the later one of two such times; and if
        the clock skips it, as much behind the skipped hour as it is in it."""
        shown = end - timedelta(milliseconds=1)
        if self.zone is None:
            return shown, shown
        early, late = (shown.replace(tzinfo=self.zone, fold=fold).astimezone(timezone.utc) for fold in (0, 1))
        instant = (late if _shown(late.replace(tzinfo=None), self.zone) == shown else early).replace(tzinfo=None)
        return instant, _shown(instant, self.zone)


def _shown(instant: datetime, zone: ZoneInfo) -> datetime:
    return instant.replace(tzinfo=timezone.utc).astimezone(zone).replace(tzinfo=None)


def _compared(both: Both, query: str, over: Callable[[str], str], name: str, answer: str = "") -> None:
    """In both texts, INSTANT[t] is a time as it is, or of an instant the seconds since 1970."""
    here, there = ("EXTRACT(EPOCH FROM {})", "CAST(floor(epoch({})) AS BIGINT)") if both.of_instants else ("{}", "{}")
    got = both.headwater.sql(_over(_INSTANT.sub(lambda t: here.format(t[1]), query), over)).rows()
    text = _INSTANT.sub(lambda t: there.format(t[1]), answer or query)
    expected = both.duckdb.execute(_over(text, lambda side: f"{name}_{side}")).fetchall()
    assert expected, "a query without an answer shows nothing"
    assert Counter(got) == Counter(expected)


IN_EVERY_RUN = {
    ("group", "tumble_hour"),
    ("grouping_sets", "cumulate"),
    ("best_of_sums", "tumble_offset"),
    ("full_join", "hop"),
    ("not_exists", "hop_with_gaps"),
}


PAIRS = [
    (query, function)
    for number, query in enumerate(QUERIES)
    for place, function in enumerate(FUNCTIONS)
    if ALL_PAIRS or (query, function) in IN_EVERY_RUN or (number + place) % 4 == 0
]


def _unless_long(kept: bool, *values: str) -> object:
    return pytest.param(*values, id="-".join(values), marks=[] if kept else [pytest.mark.long])


@pytest.mark.parametrize(
    ("query", "function"),
    [_unless_long(pair in IN_EVERY_RUN, *pair) for pair in PAIRS],
)
def test_windows(query: str, function: str, both: Both) -> None:
    _compared(both, QUERIES[query], FUNCTIONS[function].over, function)


@pytest.mark.parametrize("function", [_unless_long(f == "hop", f) for f in FUNCTIONS])
def test_windows_of_windows(function: str, both: Both) -> None:
    inner = (
        "SELECT who, SUM(n) AS total, window_time AS t FROM <bids> GROUP BY who, window_start, window_end, window_time"
    )
    both.headwater.sql(f"CREATE OR REPLACE VIEW inner_{function} AS {_over(inner, FUNCTIONS[function].over)}")
    query = (
        f"SELECT window_start, window_end, MAX(total), COUNT(*) FROM TABLE(TUMBLE(TABLE inner_{function}, "
        "DESCRIPTOR(t), INTERVAL '1' DAY)) GROUP BY window_start, window_end"
    )
    answer = (
        "SELECT day, day + INTERVAL 1 DAY, MAX(total), COUNT(*) FROM (SELECT who, SUM(n) AS total, "
        "date_trunc('day', shown)::TIMESTAMP AS day FROM <bids> GROUP BY who, window_start, window_end, shown) "
        "GROUP BY day"
    )
    _compared(both, query, str, function, answer)


@pytest.mark.parametrize("function", [_unless_long(f == "tumble_day", f) for f in ("tumble_day", "tumble_hour", "hop")])
def test_group_by_a_window_function(function: str, both: Both) -> None:
    name, _, sizes = FUNCTIONS[function].text.partition(" ")
    start, end, time = (f"{name}_{part}(ts, {sizes})" for part in ("START", "END", "ROWTIME"))
    query = f"SELECT who, {start}, {end}, INSTANT[{time}], COUNT(*), SUM(n) FROM bids GROUP BY who, {name}(ts, {sizes})"
    answer = "SELECT who, window_start, window_end, INSTANT[window_time], COUNT(*), SUM(n) FROM <bids> GROUP BY ALL"
    _compared(both, query, str, function, answer)


SESSION = "TABLE(SESSION(TABLE {} PARTITION BY who, DESCRIPTOR(ts), INTERVAL '90' MINUTE))"
_SESSIONS = "SELECT who, window_start, window_end, SUM(n) AS total FROM <bids> GROUP BY who, window_start, window_end"
SESSIONS = {
    "group": "SELECT who, window_start, window_end, INSTANT[window_time], COUNT(*), SUM(n), COUNT(DISTINCT kind) "
    "FROM <bids> GROUP BY who, window_start, window_end, window_time",
    "best": "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY total DESC) "
    f"AS place FROM ({_SESSIONS})) WHERE place <= 1",
    "long": f"SELECT who, total FROM ({_SESSIONS}) WHERE window_end > window_start + INTERVAL '2' HOUR",
}


@pytest.mark.parametrize("query", [_unless_long(q == "group", q) for q in SESSIONS])
def test_sessions(query: str, both: Both) -> None:
    _compared(both, SESSIONS[query], SESSION.format, "session")


def test_group_by_a_session(both: Both) -> None:
    gap = "INTERVAL '90' MINUTE"
    start, end, time = (f"SESSION_{part}(ts, {gap})" for part in ("START", "END", "ROWTIME"))
    query = f"SELECT who, {start}, {end}, INSTANT[{time}], COUNT(*) FROM bids GROUP BY who, SESSION(ts, {gap})"
    answer = "SELECT who, window_start, window_end, INSTANT[window_time], COUNT(*) FROM <bids> GROUP BY ALL"
    _compared(both, query, str, "session", answer)


def _over(text: str, table: Callable[[str], str]) -> str:
    for side in SIDES:
        text = text.replace(f"<{side}>", table(side))
    return text
