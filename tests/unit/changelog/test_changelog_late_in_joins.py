"""Late rows in interval and temporal joins: the result does not depend on how histories are cut into batches, nor on
how far one partition is read before another.

A history is a list of messages per partition. It is played in several ways: any order of the partitions, any batches.
The reference knows of each row the watermark that its partition had before it, and of nothing else.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, Literal

import pyarrow as pa
import pytest
from changelog_model import empty_state, small_hash, table
from operator_model import reopened

from headwater.changelog.interval_join import IntervalJoinOperator
from headwater.changelog.join import JoinInput
from headwater.changelog.kinds import DELETE, HASH, KIND, KIND_TYPE, UPDATE_AFTER
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION
from headwater.changelog.operator import FINAL, OWN_WATERMARK, Time
from headwater.changelog.temporal_join import TemporalJoinOperator

LEFT = pa.schema([("a", pa.int64()), ("k", pa.string()), ("s", pa.timestamp("us"))])
RIGHT = pa.schema([("c", pa.string()), ("b", pa.int64()), ("t", pa.timestamp("us"))])
START = datetime.fromisoformat("2024-01-01")
SECOND = 1_000_000
ZERO = int((START - datetime.fromisoformat("1970-01-01")).total_seconds()) * SECOND
PLACES = [("left", 0), ("left", 1), ("right", 0), ("right", 1)]


def at(second: int | None) -> datetime | None:
    return None if second is None else START + timedelta(seconds=second)


@dataclass(frozen=True)
class Message:
    """`second` is its time, `own` the watermark of its partition before it, both in seconds; None: there is none."""

    side: str
    partition: int
    offset: int
    number: int | None
    key: str
    second: int | None
    own: int | None

    def late_by(self, allowed: int) -> bool:
        return self.own is not None and self.second is not None and self.second + allowed <= self.own

    def sees(self, end: int) -> bool:
        """Whether it came before the watermark of its partition had passed the end of another row's interval."""
        return self.own is None or end > self.own


def histories(random: Random, tombstones: float) -> dict[tuple[str, int], list[Message]]:
    """Times go forward with leaps, and back by more than the watermark allows for. A key of the right is in one
    partition, as those of upsert tables are."""
    found = {}
    for side, partition in PLACES:
        messages: list[Message] = []
        own, clock = None, random.randrange(10)
        for offset in range(random.randrange(1, 8)):
            clock += random.choice([0, 1, 1, 2, 9])
            second: int | None = max(clock - random.choice([0, 0, 1, 3, 8]), 0)
            key = random.choice("xy") if side == "left" else "xy"[partition]
            number: int | None = random.randrange(3)
            if side == "right" and random.random() < tombstones:
                number, second = None, random.choice([None, second])
            messages.append(Message(side, partition, offset, number, key, second, own))
            if second is not None:
                own = second - 1 if own is None else max(own, second - 1)
        found[side, partition] = messages
    return found


def play(
    operator: Any, history: dict[tuple[str, int], list[Message]], random: Random
) -> tuple[Counter[Any], Counter[Any]]:
    """The result and the late rows."""
    state, done = empty_state(operator), dict.fromkeys(history, 0)
    result: Counter[Any] = Counter()
    late: Counter[Any] = Counter()
    reached, number, finished = None, 0, False
    while not finished:
        finished = all(done[p] == len(history[p]) for p in history)
        now = FINAL if finished else committed(history, done, reached)
        batch: list[Message] = []
        for place in random.sample(PLACES, len(PLACES)):
            size = random.choice([0, 0, 1, 2, 7])
            batch += history[place][done[place] : done[place] + size]
            done[place] = min(done[place] + size, len(history[place]))
        number += 1
        inputs = tuple(rows([m for m in batch if m.side == side], side, number) for side in ("left", "right"))
        changes, dropped = operator.step_with_late(state, inputs, Time(reached, now, batch=number))
        for row in changes.to_pylist():
            result[tuple(row[name] for name in (*LEFT.names, *RIGHT.names))] += 1
        for side in dropped:
            late.update(tuple(row[n] for n in row if n not in (HASH, KIND)) for row in side.to_pylist())
        reached = now
        if random.random() < 0.3:
            state = reopened(state)
    return result, late


def committed(history: dict[tuple[str, int], list[Message]], done: dict[tuple[str, int], int], before: Any) -> Any:
    """The watermark of the operator: that of the slowest partition as of what was read. A partition that was read to
    its end holds nothing back."""
    open_ = [place for place in history if done[place] < len(history[place])]
    known = [history[place][done[place]].own for place in open_]
    if None in known:
        return before
    return max([ZERO + min(k for k in known if k is not None) * SECOND, *([] if before is None else [before])])


def rows(messages: list[Message], side: str, number: int) -> pa.Table:
    """As the host makes them. Message times of one partition are in no order: only offsets are."""
    columns = LEFT if side == "left" else RIGHT
    placed = [(ORDER, pa.int64()), (PARTITION, pa.int64()), (OFFSET, pa.int64())] if side == "right" else []
    schema = pa.schema([(HASH, pa.int64()), *columns, (KIND, KIND_TYPE), (OWN_WATERMARK, pa.timestamp("us")), *placed])
    made = []
    for m in messages:
        values = (m.number, m.key, at(m.second)) if side == "left" else (m.key, m.number, at(m.second))
        hashed = small_hash(m.key, 4) << 32 | (small_hash(values, 1 << 20) & 0xFFFFFFFF if side == "left" else 0)
        kind = DELETE if m.number is None else UPDATE_AFTER if side == "right" and number % 2 else 0
        order = [(m.offset * 7 + 3) % 5, m.partition, m.offset] if side == "right" else []
        made.append((hashed, *values, kind, at(m.own), *order))
    return table(schema, made)


def plays(operator: Any, seed: int, tombstones: float = 0.0) -> tuple[list[Message], list[tuple[Counter[Any], Any]]]:
    random = Random(seed)
    history = histories(random, tombstones)
    answers = [play(operator, history, random) for _ in range(3)]
    return [m for place in PLACES for m in history[place]], answers


# interval joins

INTERVALS = [(-2, 2), (0, 5), (-5, -1), (1, 3), (0, 0), (-1, 4)]


@pytest.mark.parametrize("kind", ["inner", "left", "right", "full"])
@pytest.mark.parametrize("low_high", INTERVALS)
def test_interval_joins_do_not_depend_on_batches(kind: Any, low_high: tuple[int, int]) -> None:
    low, high = low_high
    sides = JoinInput(LEFT, ("k",), own=True), JoinInput(RIGHT, ("c",), own=True)
    operator = IntervalJoinOperator(*sides, "s", "t", low * SECOND, high * SECOND, kind)
    lateness = 0
    for seed in range(4):
        messages, answers = plays(operator, seed)
        expected = interval_reference(messages, kind, low, high)
        assert [a[0] for a in answers] == [expected[0]] * len(answers), seed
        assert [sum(a[1].values()) for a in answers] == [expected[1]] * len(answers), seed
        lateness += expected[1]
    assert lateness or kind != "inner", "histories have late rows"


def interval_reference(messages: list[Message], kind: str, low: int, high: int) -> tuple[Counter[Any], int]:
    """All pairs of rows that came before the watermark of their partition had passed the interval of the other."""
    allowed = min(max(high, -low, 0), high - low)
    late = [m for m in messages if m.late_by(allowed)]
    pairs = [
        (one, other)
        for one in messages
        for other in messages
        if (one.side, other.side) == ("left", "right") and one not in late and other not in late
        if one.key == other.key and low <= _second(other) - _second(one) <= high
        if other.sees(_second(one) + high) and one.sees(_second(other) - low)
    ]
    result = Counter(shown(one, other) for one, other in pairs)
    preserved = {"inner": (), "left": ("left",), "right": ("right",), "full": ("left", "right")}[kind]
    matched = [m for pair in pairs for m in pair]
    for m in messages:
        if m.side in preserved and m not in matched:
            result[shown(m, None) if m.side == "left" else shown(None, m)] += 1
    return result, len([m for m in late if m.side not in preserved])


def _second(message: Message) -> int:
    assert message.second is not None
    return message.second


def shown(left: Message | None, right: Message | None) -> tuple[Any, ...]:
    mine = (None, None, None) if left is None else (left.number, left.key, at(left.second))
    theirs = (None, None, None) if right is None else (right.key, right.number, at(right.second))
    return (*mine, *theirs)


def test_a_late_row_that_is_emitted_alone_says_so() -> None:
    """What comes behind the join drops it by the watermark of its partition, and not by that of the batch."""
    sides = JoinInput(LEFT, ("k",), own=True), JoinInput(RIGHT, ("c",), own=True)
    operator = IntervalJoinOperator(*sides, "s", "t", 0, 5 * SECOND, "left")
    late = rows([Message("left", 0, 1, 1, "x", 10, 30)], "left", 1)
    changes, dropped = operator.step_with_late(empty_state(operator), (late, rows([], "right", 1)), Time())
    assert changes.column(OWN_WATERMARK).to_pylist() == [at(25)]
    assert [side.num_rows for side in dropped] == [0, 0]


# temporal joins


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_temporal_joins_do_not_depend_on_batches(kind: Literal["inner", "left"]) -> None:
    sides = JoinInput(LEFT, ("k",), own=True), JoinInput(RIGHT, ("c",), own=True)
    operator = TemporalJoinOperator(*sides, kind, None, "s", "t")
    lateness = 0
    for seed in range(30):
        messages, answers = plays(operator, seed, tombstones=0.3)
        expected = temporal_reference(messages, kind)
        assert [a[0] for a in answers] == [expected[0]] * len(answers), seed
        assert [sum(a[1].values()) for a in answers] == [expected[1]] * len(answers), seed
        lateness += expected[1]
    assert lateness, "histories have late rows"


def temporal_reference(messages: list[Message], kind: str) -> tuple[Counter[Any], int]:
    """For each row of the left that is on time, one walk through the versions of its key."""
    left = [m for m in messages if m.side == "left"]
    result: Counter[Any] = Counter()
    for row in left:
        if row.late_by(0):
            continue
        version = version_at(_second(row), [m for m in messages if m.side == "right" and m.key == row.key])
        if version is not None or kind == "left":
            result[shown(row, version)] += 1
    return result, sum(m.late_by(0) for m in left)


def version_at(second: int, versions: list[Message]) -> Message | None:
    """`versions` are in the order of their partition. Those that came when its watermark had reached the second are not
    seen. What a version, or a delete, is seen after and is not earlier than, it ends."""
    timed: list[tuple[int, float, int, Message]] = []
    newest: int | None = None
    for number, m in enumerate(versions):
        valid = newest if m.second is None else m.second
        if valid is None:
            continue
        newest = valid if newest is None else max(newest, valid)
        seen = valid if m.own is None or valid > m.own else m.own + 0.5
        timed.append((valid, seen, number, m))
    alive: list[tuple[int, Message]] = []
    for valid, seen, _, m in sorted(timed, key=lambda v: (v[1], v[2])):
        if seen <= second:
            alive = [(v, old) for v, old in alive if v > valid] + [(valid, m)]
    return next((m for _, m in sorted(alive, key=lambda v: -v[0]) if m.number is not None), None)
