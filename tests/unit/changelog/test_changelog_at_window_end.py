"""Top-N of windows: each window once, when it closes, however batches are cut."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from changelog_model import empty_state, small_hash, table
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.changelog.at_window_end import AtWindowEnd, WindowInput
from headwater.changelog.join import JoinInput, JoinOperator
from headwater.changelog.kinds import DELETE, HASH, INSERT, KIND
from headwater.changelog.operator import FINAL, OWN_WATERMARK, Time
from headwater.changelog.ordering import SortKey
from headwater.changelog.rank import RankOperator

COLUMNS = pa.schema([("end", pa.timestamp("us")), ("who", pa.string()), ("n", pa.int64())])
START = datetime(2024, 1, 1)  # noqa: DTZ001 - windows have no zone
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
histories = st.lists(st.tuples(st.integers(0, 5), st.sampled_from("ab"), st.integers(0, 3), st.booleans()), max_size=25)


def end_of(window: int) -> datetime:
    return START + timedelta(minutes=10 * (window + 1))


def micros(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(histories, st.lists(st.integers(1, 6), max_size=6))
def test_the_first_rows_of_each_window_come_once(history: list[tuple[int, str, int, bool]], cuts: list[int]) -> None:
    rank = RankOperator(COLUMNS, ("end",), (SortKey("n", descending=True),), last=2, number="place")
    operator = AtWindowEnd(rank, (WindowInput("end", changelog=True),))
    state, found, expected = empty_state(operator), [], {}
    watermark: int | None = None
    rest, batch_number = [(w, who, n, add) for w, who, n, add in history], 0
    for size in [*cuts, len(history), 0]:
        batch, rest, batch_number = rest[:size], rest[size:], batch_number + 1
        rows: list[tuple[Any, ...]] = []
        for w, who, n, add in batch:
            row = (end_of(w), who, n)
            if watermark is not None and micros(row[0]) - 1000 <= watermark:
                continue  # late: dropped by the operator, too
            counts = expected.setdefault(row[0], {})
            counts[row] = counts.get(row, 0) + (1 if add else -1)
        rows = [
            (small_hash(end_of(w), 8) << 32 | small_hash((w, who, n), 1 << 20) & 0xFFFFFFFF, end_of(w), who, n, kind)
            for w, who, n, add in batch
            for kind in [INSERT if add else DELETE]
        ]
        after = (
            FINAL
            if not rest and size == 0
            else max([watermark or 0, *(micros(end_of(w)) - 600_000_001 for w, *_ in batch)])
        )
        time = Time(watermark, after, batch=batch_number)
        schema = pa.schema([(HASH, pa.int64()), *COLUMNS, (KIND, pa.int8())])
        changes = operator.step(state, (table(schema, rows),), time)
        found += [(r["end"], r["who"], r["n"], r["place"]) for r in changes.to_pylist()]
        assert {r[KIND] for r in changes.to_pylist()} <= {INSERT}
        watermark = after
    assert sorted(found) == sorted(top(expected))


def top(windows: dict[datetime, dict[tuple[datetime, str, int], int]]) -> list[tuple[Any, ...]]:
    result = []
    for rows in windows.values():
        there = sorted((r for r, c in rows.items() for _ in range(max(c, 0))), key=lambda r: (-r[2], r[1]))
        result += [(*row, place) for place, row in enumerate(there[:2], 1)]
    return result


def test_late_rows_of_both_sides_of_a_join_are_told() -> None:
    other = pa.schema([("end2", pa.timestamp("us")), ("who2", pa.string()), ("n2", pa.int64())])
    sides = JoinInput(COLUMNS, ("end", "who")), JoinInput(other, ("end2", "who2"))
    operator = AtWindowEnd(JoinOperator(*sides), (WindowInput("end", own=True), WindowInput("end2")))
    hidden = pa.schema([(OWN_WATERMARK, pa.timestamp("us"))])
    rows = [(0, end_of(w), "a", w, mark) for w, mark in ((0, None), (1, end_of(3)), (2, None))]
    left = table(pa.schema([(HASH, pa.int64()), *COLUMNS, *hidden]), rows)
    right = table(pa.schema([(HASH, pa.int64()), *other]), [(0, end_of(w), "a", w) for w in (0, 1, 2)])
    now = micros(end_of(0))
    changes, late = operator.step_with_late(empty_state(operator), (left, right), Time(now, FINAL))
    assert [rows.column(name).to_pylist() for rows, name in zip(late, ("n", "n2"), strict=True)] == [[0, 1], [0]]
    assert changes.column("n").to_pylist() == [2]
