"""The join of streams within an interval, against DuckDB over everything that came."""

from __future__ import annotations

import pickle
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_model import Played, key_hash, oracle

from headwater.changelog.conditions import ColumnRef, Compare
from headwater.changelog.interval_join import IntervalJoinOperator, IntervalKind
from headwater.changelog.join import JoinInput
from headwater.changelog.kinds import INSERT
from headwater.changelog.operator import FINAL, Time

LEFT = pa.schema([("a", pa.int64()), ("k", pa.string()), ("s", pa.timestamp("us"))])
RIGHT = pa.schema([("b", pa.int64()), ("c", pa.string()), ("t", pa.timestamp("us"))])
KINDS: list[IntervalKind] = ["inner", "left", "right", "full"]
START = datetime.fromisoformat("2024-01-01")
SECOND = 1_000_000


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def micros(second: int) -> int:
    return _micros(at(second))


def _micros(time: datetime) -> int:
    return int((time - datetime.fromisoformat("1970-01-01")).total_seconds()) * SECOND


def operator(kind: IntervalKind, low: int, high: int, condition: bool = False) -> IntervalJoinOperator:
    extra = Compare("<", ColumnRef("a"), ColumnRef("b")) if condition else None
    sides = JoinInput(LEFT, ("k",)), JoinInput(RIGHT, ("c",))
    return IntervalJoinOperator(*sides, "s", "t", low * SECOND, high * SECOND, kind, extra)


def played(join: IntervalJoinOperator, spread: int = 1 << 20) -> Played:
    return Played(join, [key_hash([1], spread), key_hash([1], spread)], [LEFT, RIGHT])


rows = st.tuples(st.integers(0, 1), st.integers(0, 2), st.none() | st.sampled_from("xy"), st.integers(0, 20))


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.lists(rows, max_size=25),
    st.sampled_from([(-2, 2), (0, 5), (-5, -1), (1, 3), (0, 0)]),
    st.integers(0, 5),
    st.booleans(),
    st.sampled_from([1, 1 << 20]),
    st.randoms(use_true_random=False),
)
def test_every_pair_is_found_once(
    kind: IntervalKind,
    history: list[Any],
    interval: tuple[int, int],
    disorder: int,
    condition: bool,
    spread: int,
    random: Random,
) -> None:
    """Rows come in any order within the disorder that the watermark allows for, cut into batches in any way."""
    history = sorted(history, key=lambda row: row[3] + random.random() * disorder)
    fed = played(operator(kind, *interval, condition), spread)
    before, cut = None, 0
    while cut < len(history):
        size = random.randrange(1, 8)
        batch, cut = history[cut : cut + size], cut + size
        rest = [row[3] for row in history[cut:]]
        watermark = micros(min(rest) - 1) if rest and random.random() < 0.7 else before
        watermark = max(watermark, before) if watermark is not None and before is not None else watermark
        emitted = fed.feed(*(changes(batch, side) for side in (0, 1)), time=Time(before, watermark))
        # What comes behind waits so much longer: no row is late there.
        reached = micros(-1) if before is None else before - max(interval[1], -interval[0], 0) * SECOND
        assert all(_micros(row[place]) > reached for _, row in emitted for place in (2, 5) if row[place] is not None)
        before = watermark
        if random.random() < 0.3:
            fed.restart()
    fed.feed([], [], time=Time(before, FINAL))
    low, high = interval
    on = f"k = c AND t BETWEEN s + INTERVAL ({low}) SECOND AND s + INTERVAL ({high}) SECOND"
    query = f"SELECT a, k, s, b, c, t FROM l {kind} JOIN r ON {on}{' AND a < b' if condition else ''}"
    tables = {
        "l": (LEFT, [row for _, row in changes(history, 0)]),
        "r": (RIGHT, [row for _, row in changes(history, 1)]),
    }
    assert fed.result.rows == oracle(query, **tables)
    assert all(change[0] == INSERT for change in fed.result.read)
    assert fed.stored == 0, "nothing is kept when all is over"


def changes(history: list[Any], side: int) -> list[Any]:
    return [(INSERT, (number, key, at(second))) for s, number, key, second in history if s == side]


def test_a_row_without_a_match_waits_for_the_end_of_its_interval() -> None:
    fed = played(operator("left", 0, 5))
    row = (1, "x", at(10))
    assert fed.feed([(INSERT, row)], [], time=Time(None, micros(12))) == []
    assert fed.feed([], [], time=Time(micros(12), micros(14))) == []
    assert fed.feed([], [], time=Time(micros(14), micros(15))) == [(INSERT, (*row, None, None, None))]
    assert fed.stored == 0


def test_state_is_removed_as_the_watermark_passes() -> None:
    fed = played(operator("inner", -2, 2))
    for second in range(100):
        passed = micros(second - 1) if second else None
        rows = [[(INSERT, (1, "x", at(second)))]] * 2
        fed.feed(*rows, time=Time(passed, micros(second)))
        assert fed.stored <= 2 * 2 * 3, "two rows and as many index entries for each of three seconds"


def test_it_can_be_sent_to_another_process() -> None:
    join = operator("full", 0, 1, condition=True)
    assert pickle.loads(pickle.dumps(join)) == join
