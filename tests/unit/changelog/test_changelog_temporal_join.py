"""FOR SYSTEM_TIME AS OF, against a plain search through sorted versions."""

from __future__ import annotations

import pickle
from collections import Counter
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_model import Played, key_hash

from headwater.changelog.conditions import ColumnRef, Compare
from headwater.changelog.join import JoinInput
from headwater.changelog.kinds import DELETE, INSERT, UPDATE_AFTER
from headwater.changelog.operator import FINAL, Time
from headwater.changelog.temporal_join import LookupJoinOperator, TemporalJoinOperator

LEFT = pa.schema([("o", pa.int64()), ("k", pa.string()), ("ts", pa.timestamp("us"))])
RIGHT = pa.schema([("c", pa.string()), ("rate", pa.int64()), ("at", pa.timestamp("us"))])
LARGER = Compare("<", ColumnRef("o"), ColumnRef("rate"))
START = datetime.fromisoformat("2024-01-01")


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def micros(second: int) -> int:
    return int((at(second) - datetime.fromisoformat("1970-01-01")).total_seconds()) * 1_000_000


def joined(kind: Any, condition: Any = None) -> TemporalJoinOperator:
    return TemporalJoinOperator(JoinInput(LEFT, ("k",)), JoinInput(RIGHT, ("c",)), kind, condition, "ts", "at")


def played(operator: TemporalJoinOperator | LookupJoinOperator, spread: int = 1 << 20) -> Played:
    return Played(operator, [key_hash([1], spread), key_hash([0], spread)], [LEFT, RIGHT])


# The whole history: rows of the left and versions (rate None: deleted) with the second of their time.
lefts = st.tuples(st.just(0), st.integers(0, 9), st.none() | st.sampled_from("ab"), st.integers(0, 20))
rights = st.tuples(st.just(1), st.none() | st.integers(0, 9), st.sampled_from("ab"), st.integers(0, 20))


def expected(history: list[Any], kind: str, condition: bool) -> Counter[Any]:
    """Of versions with one time the one that came last counts."""
    versions: dict[str, dict[int, Any]] = {"a": {}, "b": {}}
    for side, rate, key, second in history:
        if side:
            versions[key][second] = rate
    result: Counter[Any] = Counter()
    for side, order, key, second in history:
        if side:
            continue
        valid = [s for s in versions.get(key, {}) if s <= second]
        rate = versions[key][max(valid)] if valid else None
        if condition and rate is not None and not order < rate:
            rate = None
        if rate is not None:
            result[order, key, at(second), key, rate, at(max(valid))] += 1
        elif kind == "left":
            result[order, key, at(second), None, None, None] += 1
    return result


@pytest.mark.parametrize("kind", ["inner", "left"])
@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    st.lists(lefts | rights, max_size=25),
    st.integers(0, 5),
    st.booleans(),
    st.sampled_from([1, 1 << 20]),
    st.randoms(use_true_random=False),
)
def test_rows_get_the_version_of_their_time(
    kind: str, history: list[Any], disorder: int, condition: bool, spread: int, random: Random
) -> None:
    """Rows come in any order within the disorder that the watermark allows for, cut into batches in any way."""
    history = sorted(history, key=lambda row: row[3] + random.random() * disorder)
    fed = played(joined(kind, LARGER if condition else None), spread)
    before, cut = None, 0
    while cut < len(history):
        size = random.randrange(1, 8)
        batch, cut = history[cut : cut + size], cut + size
        rest = [row[3] for row in history[cut:]]
        watermark = micros(min(rest) - 1) if rest and random.random() < 0.7 else before
        watermark = max(watermark, before) if watermark is not None and before is not None else watermark
        feed(fed, batch, Time(before, watermark))
        before = watermark
        if random.random() < 0.3:
            fed.restart()
    feed(fed, [], Time(before, FINAL))
    assert fed.result.rows == expected(history, kind, condition)
    assert all(change[0] == INSERT for change in fed.result.read)
    alive = {key for side, _, key, _ in history if side and newest(history, key) is not None}
    assert fed.stored == len(alive), "only the newest version of each key is kept"


def newest(history: list[Any], key: str) -> Any:
    versions = {row[3]: row[1] for row in history if row[0] and row[2] == key}
    return versions[max(versions)] if versions else None


def feed(fed: Played, batch: list[Any], time: Time) -> list[Any]:
    left = [(INSERT, (order, key, at(second))) for side, order, key, second in batch if not side]
    right = [
        (DELETE if rate is None else UPDATE_AFTER, (key, rate, at(second))) for side, rate, key, second in batch if side
    ]
    return fed.feed(left, right, time=time)


def test_rows_wait_for_the_watermark() -> None:
    fed = played(joined("left"))
    assert feed(fed, [(0, 1, "a", 10)], Time(None, micros(5))) == []
    assert feed(fed, [(1, 7, "a", 9)], Time(micros(5), micros(9))) == []
    assert feed(fed, [], Time(micros(9), micros(10))) == [(INSERT, (1, "a", at(10), "a", 7, at(9)))]
    assert feed(fed, [(0, 2, "a", 3)], Time(micros(10), micros(10))) == [], "it is late: its version may be gone"


def test_a_delete_without_a_time_ends_the_newest_version() -> None:
    fed = played(joined("left"))
    fed.feed([], [(INSERT, ("a", 1, at(1))), (INSERT, ("a", 2, at(5)))], time=Time(None, micros(0)))
    fed.feed([], [(DELETE, ("a", None, None)), (DELETE, ("b", None, None))], time=Time(micros(0), micros(0)))
    rows = [(INSERT, (n, "a", at(second))) for n, second in enumerate([3, 6])]
    fed.feed(rows, [], time=Time(micros(0), micros(9)))
    assert [row[1][3:] for row in fed.result.read] == [("a", 1, at(1)), (None, None, None)]


def test_rows_without_a_time_have_no_version() -> None:
    fed = played(joined("left"))
    assert fed.feed([(INSERT, (1, "a", None))], [], time=Time()) == [(INSERT, (1, "a", None, None, None, None))]


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_by_processing_time_the_newest_version_counts(kind: Any) -> None:
    join = LookupJoinOperator(JoinInput(LEFT, ("k",)), JoinInput(RIGHT, ("c",)), kind)
    fed = played(join)
    fed.feed([], [(INSERT, ("a", 1, None)), (INSERT, ("b", 1, None))])
    rows = [(INSERT, (n, key, None)) for n, key in enumerate(["a", "b", "c", None])]
    fed.restart()
    fed.feed(rows, [(UPDATE_AFTER, ("a", 2, None)), (DELETE, ("b", 1, None))])
    answers = {row[0]: row[4] for _, row in fed.result.read}
    assert answers == ({0: 2} if kind == "inner" else {0: 2, 1: None, 2: None, 3: None})
    assert pickle.loads(pickle.dumps(join)) == join
