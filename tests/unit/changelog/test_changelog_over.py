"""OVER, against DuckDB over everything that came, in the order of time and of all columns."""

from __future__ import annotations

import pickle
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from changelog_model import empty_state
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_model import Live, Played, actions, changes_table, key_hash, oracle, reopened, shuffled

from headwater.changelog.frames import Frame
from headwater.changelog.kinds import DELETE, INSERT, KIND
from headwater.changelog.operator import FINAL, Time
from headwater.changelog.ordered_values import ARRIVAL
from headwater.changelog.ordering import SortKey
from headwater.changelog.over import FrameCall, OverTableOperator
from headwater.changelog.over_time import OverTimeOperator

COLUMNS = pa.schema([("k", pa.string()), ("x", pa.int64()), ("f", pa.float64()), ("t", pa.timestamp("us"))])
START = datetime.fromisoformat("2024-01-01")
SECOND = 1_000_000
FRAMES = {
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW": Frame("rows"),
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW": Frame("rows", 2),
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW": Frame("range"),
    "RANGE BETWEEN INTERVAL 3 SECOND PRECEDING AND CURRENT ROW": Frame("range", 3 * SECOND),
}
BOTH_SIDES = {
    "ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING": Frame("rows", 3, -2),
    "ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING": Frame("rows", -2, 3),
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING": Frame("rows", None, -1),
    "RANGE BETWEEN INTERVAL 3 SECOND PRECEDING AND INTERVAL 1 SECOND PRECEDING": Frame("range", 3 * SECOND, -SECOND),
    "RANGE BETWEEN INTERVAL 1 SECOND FOLLOWING AND INTERVAL 3 SECOND FOLLOWING": Frame("range", -SECOND, 3 * SECOND),
    "ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING": Frame("rows", 1, 2),
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING": Frame("range", None, None),
    "RANGE BETWEEN INTERVAL 1 SECOND PRECEDING AND INTERVAL 2 SECOND FOLLOWING": Frame("range", SECOND, 2 * SECOND),
}


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def micros(second: int) -> int:
    return int((at(second) - datetime.fromisoformat("1970-01-01")).total_seconds()) * SECOND


def calls(frames: list[Frame], lead: bool = False) -> tuple[FrameCall, ...]:
    found = []
    for n, frame in enumerate(frames):
        found += [
            FrameCall(f"c{n}", pa.int64(), "COUNT", "", frame),
            FrameCall(f"v{n}", pa.int64(), "COUNT", "x", frame),
            FrameCall(f"s{n}", pa.int64(), "SUM", "x", frame),
            FrameCall(f"d{n}", pa.float64(), "SUM", "f", frame),
            FrameCall(f"lo{n}", pa.int64(), "MIN", "x", frame),
            FrameCall(f"hi{n}", pa.float64(), "MAX", "f", frame),
            FrameCall(f"fi{n}", pa.int64(), "FIRST_VALUE", "x", frame),
            FrameCall(f"la{n}", pa.int64(), "LAST_VALUE", "x", frame),
            FrameCall(f"av{n}", pa.float64(), "AVG", "f", frame),
        ]
    found += [
        FrameCall("lag", pa.int64(), "LAG", "x", offset=2),
        FrameCall("lagd", pa.int64(), "LAG", "x", default="x"),
    ]
    found.append(FrameCall("number", pa.int64(), "ROW_NUMBER"))
    if lead:
        found += [FrameCall("lead", pa.int64(), "LEAD", "x"), FrameCall("rank", pa.int64(), "RANK")]
        found.append(FrameCall("dense", pa.int64(), "DENSE_RANK"))
    return tuple(found)


def query(frames: list[str], lead: bool = False) -> str:
    """Rows with one time are in the order of their columns, NULLs first."""
    rows, time = "PARTITION BY k ORDER BY t, k NULLS FIRST, x NULLS FIRST, f NULLS FIRST", "PARTITION BY k ORDER BY t"
    items = []
    for frame in frames:
        over = f"OVER ({rows if frame.startswith('ROWS') else time} {frame})"
        ends = f"OVER ({rows} {frame})" if frame.startswith("ROWS") else None
        items += [f"COUNT(*) {over}", f"COUNT(x) {over}", f"SUM(x) {over}", f"SUM(f) {over}", f"MIN(x) {over}"]
        items.append(f"MAX(f) {over}")
        if ends is not None:
            items += [f"FIRST_VALUE(x IGNORE NULLS) {ends}", f"LAST_VALUE(x IGNORE NULLS) {ends}"]
        else:
            items += ["-1", "-1"]
        items.append(f"AVG(f) {over}")
    items += [f"LAG(x, 2) OVER ({rows})", f"LAG(x, 1, x) OVER ({rows})", f"ROW_NUMBER() OVER ({rows})"]
    if lead:
        items += [f"LEAD(x) OVER ({rows})", f"RANK() OVER ({time})", f"DENSE_RANK() OVER ({time})"]
    return f"SELECT *, {', '.join(items)} FROM r"


def comparable(rows: Counter[Any], frames: list[str]) -> Counter[Any]:
    """Without the ends of ranges, which DuckDB takes in any order of peers."""
    dropped = {4 + 9 * n + place for n, frame in enumerate(frames) if frame.startswith("RANGE") for place in (6, 7)}
    counted: Counter[Any] = Counter()
    for row, times in rows.items():
        counted[tuple(v for place, v in enumerate(row) if place not in dropped)] += times
    return counted


rows = st.tuples(
    st.none() | st.sampled_from("ab"),
    st.none() | st.integers(-2, 2),
    st.none() | st.sampled_from([0.5, 0.25, -0.75, 2.5]),
    st.integers(0, 12),
)


@settings(deadline=None, derandomize=True, max_examples=120)
@given(
    st.lists(rows, max_size=20),
    st.lists(st.sampled_from(list(FRAMES)), min_size=1, max_size=2, unique=True),
    st.integers(0, 4),
    st.sampled_from([1, 1 << 20]),
    st.randoms(use_true_random=False),
)
def test_by_event_time_results_are_final(
    history: list[Any], frames: list[str], disorder: int, spread: int, random: Random
) -> None:
    """Rows come in any order within the disorder that the watermark allows for, cut into batches in any way."""
    history = sorted(history, key=lambda row: row[3] + random.random() * disorder)
    operator = OverTimeOperator(COLUMNS, ("k",), calls([FRAMES[f] for f in frames]), "t")
    fed = Played(operator, [key_hash([0], spread)], [COLUMNS])
    before, cut = None, 0
    while cut < len(history):
        size = random.randrange(1, 8)
        batch, cut = history[cut : cut + size], cut + size
        rest = [row[3] for row in history[cut:]]
        watermark = micros(min(rest) - 1) if rest and random.random() < 0.7 else before
        watermark = max(watermark, before) if watermark is not None and before is not None else watermark
        fed.feed(shuffled([(INSERT, (*row[:3], at(row[3]))) for row in batch], random), time=Time(before, watermark))
        before = watermark
        if random.random() < 0.3:
            fed.restart()
    fed.feed([], time=Time(before, FINAL))
    table = (COLUMNS, [(*row[:3], at(row[3])) for row in history])
    assert comparable(fed.result.rows, frames) == comparable(oracle(query(frames), r=table), frames)
    assert all(change[0] == INSERT for change in fed.result.read)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    st.lists(st.lists(actions(rows), min_size=1, max_size=5), max_size=5),
    st.lists(st.sampled_from([*FRAMES, *BOTH_SIDES]), min_size=1, max_size=2, unique=True),
    st.sampled_from([1, 1 << 20]),
    st.randoms(use_true_random=False),
)
def test_over_updates_results_follow(history: list[list[Any]], frames: list[str], spread: int, random: Random) -> None:
    known = {**FRAMES, **BOTH_SIDES}
    operator = OverTableOperator(COLUMNS, ("k",), calls([known[f] for f in frames], lead=True), (SortKey("t"),))
    fed, live = Played(operator, [key_hash([0], spread)], [COLUMNS]), Live()
    for batch in history:
        changes = [c for kind, row, n in batch for c in live.change(kind, (*row[:3], at(row[3])), n)]
        fed.feed(shuffled(changes, random))
        expected = oracle(query(frames, lead=True), r=(COLUMNS, live.rows))
        assert comparable(fed.result.rows, frames) == comparable(expected, frames)
        if random.random() < 0.3:
            fed.restart()
    fed.feed([(DELETE, row) for row in live.rows])
    assert not fed.result.rows
    assert fed.stored == 0, "nothing is left of rows that are gone"


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(rows, max_size=20), st.sampled_from(list(FRAMES)), st.integers(0, 3), st.randoms(use_true_random=False))
def test_a_row_is_late_by_its_own_partition_however_batches_are_cut(
    history: list[Any], frame: str, delay: int, random: Random
) -> None:
    operator = OverTimeOperator(COLUMNS, ("k",), calls([FRAMES[frame]]), "t", own_watermark="w")
    fed = Played(operator, [key_hash([0])], [COLUMNS])
    stamped, on_time, own = [], [], None
    for row in history:
        stamped.append((row, own))
        on_time += [row] if own is None or row[3] > own else []
        own = max(row[3] - delay, own if own is not None else -99)
    before, cut, late = None, 0, 0
    while cut < len(stamped):
        size = random.randrange(1, 8)
        batch, cut = stamped[cut : cut + size], cut + size
        now = micros(max(max(row[3] for row, _ in stamped[:cut]) - delay, -99))
        given_ = changes_table(COLUMNS, [(INSERT, (*row[:3], at(row[3]))) for row, _ in batch], key_hash([0]))
        marks = [None if w is None else micros(w) for _, w in batch]
        given_ = given_.append_column("w", pa.array(marks, pa.int64()).cast(pa.timestamp("us")))
        changes, (dropped,) = operator.step_with_late(fed.state, (given_,), fed.timed(Time(before, before)))
        fed.result.apply(changes.cast(operator.output))
        before, late = now, late + dropped.num_rows
        assert "w" in dropped.column_names, "late rows have all columns"
        fed.feed_time(Time(None, before))
    fed.feed_time(Time(before, FINAL))
    table = (COLUMNS, [(*row[:3], at(row[3])) for row in on_time])
    assert comparable(fed.result.rows, [frame]) == comparable(oracle(query([frame]), r=table), [frame])
    assert late == len(history) - len(on_time)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.lists(st.lists(rows, min_size=1, max_size=6), max_size=6),
    st.lists(st.sampled_from(list(FRAMES)), min_size=1, max_size=2, unique=True),
    st.randoms(use_true_random=False),
)
def test_by_processing_time(history: list[list[Any]], frames: list[str], random: Random) -> None:
    """The rows of a batch have one time, in which they stand as they came."""
    operator = OverTimeOperator(COLUMNS, ("k",), calls([FRAMES[f] for f in frames]), "t", waits=False)
    fed, everything, second = Played(operator, [key_hash([0])], [COLUMNS]), [], 0
    for batch in history:
        second += random.randrange(1, 3)
        made = [(*row[:3], at(second)) for row in batch]
        everything += [(*row, len(everything) + n) for n, row in enumerate(made)]
        given_ = changes_table(COLUMNS, [(INSERT, row) for row in made], key_hash([0]))
        order = random.sample(range(len(made)), len(made))
        given_ = given_.append_column(ARRIVAL, pa.array(range(len(made)))).take(order)
        fed.result.apply(operator.step(fed.state, (given_,), Time()).cast(operator.output))
        if random.random() < 0.3:
            fed.restart()
    numbered = pa.schema([*COLUMNS, ("came", pa.int64())])
    text = query(frames).replace("t, k NULLS FIRST, x NULLS FIRST, f NULLS FIRST", "t, came")
    expected = oracle(text.replace("SELECT *,", "SELECT * EXCLUDE (came),"), r=(numbered, everything))
    assert comparable(fed.result.rows, frames) == comparable(expected, frames)


def test_state_is_no_more_than_frames_reach_back_to() -> None:
    frames = [Frame("rows", 2), Frame("range"), Frame("range", 3 * SECOND)]
    operator = OverTimeOperator(COLUMNS, ("k",), calls(frames), "t")
    fed = Played(operator, [key_hash([0])], [COLUMNS])
    for second in range(60):
        before = micros(second - 1) if second else None
        fed.feed([(INSERT, ("a", second, 0.5, at(second)))], time=Time(before, micros(second)))
        assert fed.stored <= 1 + 2 * 4, "what is carried, four rows and their times"
    assert fed.feed([(INSERT, ("a", 1, 1.0, at(3)))], time=Time(micros(59), micros(60))) == [], "it is late"
    only_carried = OverTimeOperator(COLUMNS, ("k",), (FrameCall("s", pa.int64(), "SUM", "x", Frame("rows")),), "t")
    fed = Played(only_carried, [key_hash([0])], [COLUMNS])
    for second in range(10):
        fed.feed([(INSERT, ("a", 1, None, at(second)))], time=Time(None, micros(second)))
    assert fed.stored == 1
    assert max(row[4] for row in fed.result.rows) == 10


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_by_processing_time_rows_are_taken_as_they_come(cut: int) -> None:
    columns = pa.schema([("k", pa.string()), ("x", pa.int64()), ("p", pa.timestamp("us", "UTC"))])
    made = (
        FrameCall("s", pa.int64(), "SUM", "x", Frame("rows", 1)),
        FrameCall("n", pa.int64(), "ROW_NUMBER"),
        FrameCall("l", pa.int64(), "LAG", "x"),
        FrameCall("a", pa.int64(), "LAST_VALUE", "x", Frame("rows")),
    )
    operator = OverTimeOperator(columns, ("k",), made, "p", waits=False)
    state, results = empty_state(operator), {}
    values = [5, 3, 9, 1, 7, 2]
    for start in range(0, len(values), cut):
        batch = [(INSERT, ("a", v, at(start))) for v in values[start : start + cut]]
        given_ = changes_table(columns, batch, key_hash([0])).append_column(ARRIVAL, pa.array(range(len(batch))))
        for row in operator.step(state, (given_.take(list(range(len(batch)))[::-1]),), Time()).to_pylist():
            results[row["n"]] = (row["x"], row["s"], row["l"], row["a"])
        state = reopened(state)
    assert results == {
        n + 1: (v, v + (values[n - 1] if n else 0), values[n - 1] if n else None, v) for n, v in enumerate(values)
    }


def test_sums_of_decimals_and_of_large_numbers() -> None:
    columns = pa.schema(
        [("x", pa.decimal128(10, 2)), ("n", pa.int64()), ("f", pa.float64()), ("t", pa.timestamp("us"))]
    )
    made = (
        FrameCall("s", pa.decimal128(38, 2), "SUM", "x", Frame("rows", 1)),
        FrameCall("a", pa.decimal128(38, 6), "AVG", "x", Frame("rows")),
        FrameCall("m", pa.int64(), "SUM", "n", Frame("rows", 0)),
        FrameCall("g", pa.float64(), "SUM", "f", Frame("rows", 1)),
    )
    fed = Played(OverTableOperator(columns, (), made, (SortKey("t"),)), [key_hash([])], [columns])
    large = 1 << 62
    fed.feed([(INSERT, (Decimal(f"{n}.10"), large, 1e300 if n == 1 else 1.0, at(n))) for n in range(4)])
    found = sorted((row[3], *row[4:]) for row in fed.result.rows)
    assert [row[1] for row in found] == [Decimal(v) for v in ("0.10", "1.20", "3.20", "5.20")]
    assert [row[2] for row in found] == [Decimal(v) for v in ("0.100000", "0.600000", "1.100000", "1.600000")]
    assert [row[3] for row in found] == [large] * 4
    assert [row[4] for row in found] == [1.0, 1e300, 1e300, 2.0]


def test_it_can_be_sent_to_another_process() -> None:
    operator = OverTimeOperator(COLUMNS, ("k",), calls([Frame("rows", 2)]), "t")
    assert pickle.loads(pickle.dumps(operator)) == operator
    assert KIND in operator.output.names
