"""Sessions of event time, against a plain reference."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from aggregate_model import Fed
from changelog_model import empty_state
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_model import Row, live_rows
from window_model import SECOND, Event, Windowed, events, grouped, histories

from headwater.changelog.kinds import INSERT
from headwater.changelog.operator import FINAL, Time
from headwater.changelog.session import SessionAggregate
from headwater.changelog.window_assigners import Intervals

GAP = 4


def windowed(retracting: bool = True) -> Windowed:
    return Windowed(lambda aggregate: SessionAggregate(aggregate, GAP * SECOND, "ts"), retracting=retracting)


def sessions(times: list[int]) -> list[tuple[int, int]]:
    """First and last time of each."""
    found: list[tuple[int, int]] = []
    for t in sorted(times):
        if found and t <= found[-1][1] + GAP:
            found[-1] = (found[-1][0], t)
        else:
            found.append((t, t))
    return found


class Reference:
    def __init__(self) -> None:
        self.live: list[Row] = []
        self.late: list[Any] = []
        self.emitted: dict[tuple[Any, int, int], list[Any]] = {}

    def feed(self, batch: list[Event], before: int | None, now: int) -> list[Event]:
        """Answers with what is to be fed: retractions of rows that were late are left out."""
        batch = [e for e in batch if e[0] > 0 or e[1] in self.live or (1, e[1]) in batch]
        kept = []
        for weight, row in batch:
            others = [r[2] for _, r in [*kept, (weight, row)] if r[0] == row[0]]
            others += [r[2] for r in self.live if r[0] == row[0]]
            last = next(last for start, last in sessions(others) if start <= row[2] <= last)
            if before is not None and closed(last, before):
                self.late.append(row[:2])
            else:
                kept.append((weight, row))
        self.live += [row for weight, row in kept if weight > 0]
        for row in (row for weight, row in kept if weight < 0):
            self.live.remove(row)
        for group in {row[0] for row in self.live}:
            for start, last in sessions([r[2] for r in self.live if r[0] == group]):
                if closed(last, now):
                    mine = [r for r in self.live if r[0] == group and start <= r[2] <= last]
                    self.emitted[group, start, last + GAP] = [r[1] for r in mine]
                    self.live = [r for r in self.live if r not in mine]
        return batch


def closed(last: int, watermark: int) -> bool:
    return (last + GAP) * SECOND - 1000 <= watermark


@settings(deadline=None, derandomize=True, max_examples=80)
@given(histories, st.booleans(), st.randoms(use_true_random=False))
def test_a_result_comes_once_when_its_session_has_ended(history: Any, retracting: bool, random: Random) -> None:
    fed, reference = windowed(retracting), Reference()
    for block in events(history, retracting):
        watermark = max([(row[2] - fed.delay) * SECOND for _, row in block] + [fed.watermark or 0, 0])
        batch = reference.feed(block, fed.watermark, watermark)
        changes = fed.feed(batch, watermark)
        assert all(kind == INSERT for kind, _ in changes)
        assert fed.result.rows == grouped(fed.fed, reference.emitted)
        assert sorted(map(repr, fed.late)) == sorted(map(repr, reference.late))
        if random.random() < 0.3:
            fed.restart()
    reference.feed([], fed.watermark, FINAL)
    fed.finish()
    assert fed.result.rows == grouped(fed.fed, reference.emitted)


def test_a_row_merges_two_sessions_and_its_retraction_splits_them() -> None:
    fed = windowed()
    fed.feed([(1, ("a", 1, 0)), (1, ("a", 1, 6))], 0)
    fed.feed([(1, ("a", 1, 3))], 0)
    assert live_rows({"sessions": fed.state["sessions"]}) == 1
    fed.feed([(-1, ("a", 1, 3))], 0)
    assert live_rows({"sessions": fed.state["sessions"]}) == 2
    fed.finish()
    assert [(row[2] - row[1]).seconds for row in fed.result.rows] == [GAP, GAP]


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (3,), (1, 2), (2, 3), (1, 2, 3)])
def test_what_comes_later_does_not_save_a_late_row(cuts: tuple[int, ...]) -> None:
    """13 has no session when it comes, and is late; 17 then joins that of 20, and 14, later still, joins both."""
    history = [(20, None), (13, 20), (17, 20), (14, 20)]  # the time of a row, and the watermark before it
    fed = windowed(retracting=False).fed
    operator = SessionAggregate(fed.operator, GAP * SECOND, "ts", own_watermark="own")
    state, late = empty_state(operator), []

    def step(part: list[tuple[int, int | None]], time: Time) -> list[dict[str, Any]]:
        rows = fed._input([(1, ("a", at)) for at, _ in part])
        for name, values in (("ts", [at for at, _ in part]), ("own", [own for _, own in part])):
            micros = [None if value is None else value * SECOND for value in values]
            rows = rows.append_column(name, pa.array(micros, pa.timestamp("us")))
        changes, (dropped,) = operator.step_with_late(state, (rows,), time)
        late.extend(dropped.column("x").to_pylist())
        return changes.to_pylist()

    for begin, end in pairwise([0, *cuts, len(history)]):
        assert step(history[begin:end], Time(None, None)) == []
    (session,) = step([], Time(None, FINAL))
    assert late == [13]
    assert (session["window_end"] - session["window_start"]).seconds == 20 - 14 + GAP


def test_a_retraction_of_a_row_that_never_came_leaves_no_state() -> None:
    fed = windowed()
    fed.feed([(-1, ("a", 1, 5)), (1, ("b", 1, 5))], 0)
    fed.finish()
    assert Counter(row[0] for row in fed.result.rows) == Counter(["b"])


def test_sums_of_doubles_are_exact() -> None:
    fed = Fed(pa.float64())
    operator = SessionAggregate(fed.operator, GAP * SECOND, "ts")
    state = empty_state(operator)
    values = [0.1] * 10 + [1e300, -1e300]
    rows = fed._input([(1, ("a", value)) for value in values])
    rows = rows.append_column("ts", pa.array([n * SECOND for n in range(len(values))], pa.timestamp("us")))
    (row,) = operator.step(state, (rows,), Time(None, FINAL)).to_pylist()
    assert row["sum"] == 1.0
    assert row["dsum"] == 0.1


def test_intervals_merge_per_key() -> None:
    keys, starts, lasts = (np.array(a, dtype=np.int64) for a in ([1, 0, 1, 1, 0], [5, 0, 0, 20, 9], [6, 8, 30, 21, 9]))
    merged, of_each = Intervals(keys, starts, lasts).merged(0)
    assert merged.starts.tolist() == [0, 9, 0]
    assert merged.lasts.tolist() == [8, 9, 30]
    assert of_each.tolist() == [2, 0, 2, 2, 1]


def test_an_operator_can_be_sent_to_another_process() -> None:
    operator = windowed().operator
    assert pickle.loads(pickle.dumps(operator)) == operator
    assert operator.timed
    assert [t.name for t in operator.tables] == ["groups", "m", "sessions", "closing", "expiry"]
