"""Windows of event time, against a plain reference over all rows that were not late."""

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from window_model import SECOND, Event, Windowed, events, grouped, histories

from headwater.changelog.columns import widen
from headwater.changelog.kinds import INSERT
from headwater.changelog.operator import FINAL, Time
from headwater.changelog.window import WindowAggregateOperator
from headwater.changelog.window_assigners import Cumulate, Hop, Tumble, from_local, to_local

KINDS: dict[str, tuple[Any, Any]] = {
    "tumble": (Tumble(10 * SECOND), lambda t: [(t // 10 * 10, t // 10 * 10 + 10)]),
    "tumble with offset": (
        Tumble(10 * SECOND, 3 * SECOND),
        lambda t: [((t - 3) // 10 * 10 + 3, (t - 3) // 10 * 10 + 13)],
    ),
    "hop": (Hop(5 * SECOND, 15 * SECOND), lambda t: [(s, s + 15) for s in range(-15, 50, 5) if s <= t < s + 15]),
    "hop with gaps": (Hop(10 * SECOND, 4 * SECOND), lambda t: [(s, s + 4) for s in range(0, 50, 10) if s <= t < s + 4]),
    "cumulate": (
        Cumulate(5 * SECOND, 15 * SECOND),
        lambda t: [(t // 15 * 15, e) for e in range(t // 15 * 15 + 5, t // 15 * 15 + 16, 5) if e > t],
    ),
}


def windowed(kind: str, retracting: bool = True, **more: Any) -> Windowed:
    assigner = KINDS[kind][0]
    return Windowed(lambda aggregate: WindowAggregateOperator(aggregate, assigner, "ts", **more), retracting=retracting)


class Reference:
    """What each window holds, as the operator should have it: a row counts unless its window is gone."""

    def __init__(self, kind: str, lateness: int = 0) -> None:
        self.windows_of, self.lateness = KINDS[kind][1], lateness
        self.open: dict[tuple[Any, int, int], list[Any]] = {}
        self.late: list[Any] = []

    def feed(self, batch: list[Event], before: int | None) -> None:
        for weight, (group, value, t) in batch:
            windows = [w for w in self.windows_of(t) if before is None or not self.closed(w[1] + self.lateness, before)]
            if not windows:
                self.late.append((group, value))
            for window in windows:
                values = self.open.setdefault((group, *window), [])
                values.append(value) if weight > 0 else values.remove(value)

    def closed(self, end: int, watermark: int) -> bool:
        return end * SECOND - 1000 <= watermark

    def shown(self, watermark: int) -> dict[Any, list[Any]]:
        return {key: values for key, values in self.open.items() if self.closed(key[2], watermark)}


kinds = st.sampled_from(list(KINDS))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(histories, kinds, st.booleans(), st.randoms(use_true_random=False))
def test_a_result_comes_once_when_its_window_closes(history: Any, kind: str, retracting: bool, random: Random) -> None:
    fed, reference = windowed(kind, retracting), Reference(kind)
    for batch in events(history, retracting):
        reference.feed(batch, fed.watermark)
        changes = fed.feed(batch)
        assert all(k == INSERT for k, _ in changes)
        assert fed.result.rows == grouped(fed.fed, reference.shown(fed.watermark))
        assert sorted(map(repr, fed.late)) == sorted(map(repr, reference.late))
        if random.random() < 0.3:
            fed.restart()
    fed.finish()
    assert fed.result.rows == grouped(fed.fed, reference.open)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(histories, kinds, st.booleans())
def test_early_results_are_updates_and_late_rows_correct_them(history: Any, kind: str, early: bool) -> None:
    lateness = 10
    fed, reference = windowed(kind, early=early, lateness=lateness * SECOND), Reference(kind, lateness)
    for batch in events(history, retracting=True):
        reference.feed(batch, fed.watermark)
        fed.feed(batch)
        shown = reference.open if early else reference.shown(fed.watermark)
        assert fed.result.rows == grouped(fed.fed, shown)
    fed.finish()
    assert fed.result.rows == grouped(fed.fed, reference.open)


@settings(deadline=None, derandomize=True, max_examples=15)
@given(histories, kinds)
def test_what_is_on_time_does_not_depend_on_the_batches(history: Any, kind: str) -> None:
    """With a watermark that stays behind, one batch or many: the same results."""
    batches = events(history, retracting=True)
    cut, whole = windowed(kind), windowed(kind)
    cut.delay = whole.delay = 99
    for batch in batches:
        cut.feed(batch)
    whole.feed([event for batch in batches for event in batch])
    cut.finish()
    whole.finish()
    assert cut.result.rows == whole.result.rows


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(0, 40)), max_size=25),
    kinds,
    st.sampled_from([(False, 0), (True, 0), (False, 10), (True, 10)]),
    st.randoms(use_true_random=False),
)
def test_results_do_not_depend_on_the_batches_whatever_is_late(
    history: list[Any], kind: str, emits: tuple[bool, int], random: Random
) -> None:
    """A row counts for the windows that its own partition has not passed, by the lateness that is allowed."""
    early, lateness = emits
    fed = windowed(kind, False, early=early, lateness=lateness * SECOND, own_watermark="wm")
    expected: dict[Any, list[Any]] = {}
    own, stamped = None, []
    for who, value, t in history:
        stamped.append((who, value, t, own))
        for window in KINDS[kind][1](t):
            if own is None or (window[1] + lateness) * SECOND - 1000 > own:
                expected.setdefault((who, *window), []).append(value)
        own = max(t * SECOND, own or 0)
    while stamped:
        batch, stamped = stamped[: (size := random.randrange(1, 9))], stamped[size:]
        rows = fed.fed._input([(1, row[:2]) for row in batch])
        rows = rows.append_column("ts", pa.array([row[2] * SECOND for row in batch], pa.timestamp("us")))
        rows = rows.append_column("wm", pa.array([row[3] for row in batch], pa.timestamp("us")))
        before, fed.watermark = fed.watermark, max([fed.watermark or 0, *(row[2] * SECOND for row in batch)])
        # What a batch has read takes effect with the next one.
        fed.result.apply(fed.operator.step(fed.state, (rows,), Time(before, before)).cast(fed.operator.output))
        fed.result.apply(
            fed.operator.step(fed.state, (rows.slice(0, 0),), Time(before, fed.watermark)).cast(fed.operator.output)
        )
        if random.random() < 0.3:
            fed.restart()
    nothing = widen(fed.operator.inputs[0]).empty_table()
    fed.result.apply(fed.operator.step(fed.state, (nothing,), Time(fed.watermark, FINAL)).cast(fed.operator.output))
    assert fed.result.rows == grouped(fed.fed, expected)


def test_rows_of_the_closing_batch_count_and_later_ones_are_late() -> None:
    fed = windowed("tumble")
    fed.feed([(1, ("a", 1, 5))], 9 * SECOND)
    assert len(fed.feed([(1, ("a", 2, 9)), (1, ("a", 1, 12))], 10 * SECOND - 1000)) == 1
    assert not fed.late
    assert fed.feed([(1, ("a", 7, 9))], 10 * SECOND) == []
    assert fed.late == [("a", 7)]
    assert [row[3:6] for row in fed.result.rows] == [(2, 2, 3)]


def test_a_retraction_of_a_row_that_never_came_leaves_no_state() -> None:
    fed = windowed("tumble")
    fed.feed([(-1, ("a", 1, 5))], 0)
    fed.finish()
    assert not fed.result.rows


def test_rows_may_bring_their_windows() -> None:
    fed = Windowed(lambda aggregate: WindowAggregateOperator(aggregate, None, "ts"), retracting=False)
    rows = fed.fed._input([(1, ("a", 1)), (1, ("a", 2))])
    for name, seconds in (("window_start", 0), ("window_end", 10)):
        rows = rows.append_column(name, pa.array([seconds * SECOND] * 2, pa.timestamp("us")))
    changes = fed.operator.step(fed.state, (rows,), Time(None, 10 * SECOND))
    assert changes.column("sum").to_pylist() == [3]


def test_a_row_that_was_late_in_its_own_partition_is_late() -> None:
    fed = Windowed(lambda a: WindowAggregateOperator(a, Tumble(10 * SECOND), "ts", own_watermark="wm"))
    rows = fed.fed._input([(1, ("a", 1)), (1, ("a", 2))])
    rows = rows.append_column("ts", pa.array([5 * SECOND] * 2, pa.timestamp("us")))
    rows = rows.append_column("wm", pa.array([None, 20 * SECOND], pa.timestamp("us", "UTC")))
    changes, (late,) = fed.operator.step_with_late(fed.state, (rows,), Time(None, 30 * SECOND))
    assert changes.column("sum").to_pylist() == [1]
    assert late.column("x").to_pylist() == [2]


def test_days_of_a_time_zone() -> None:
    """29 October 2023 had 25 hours in Berlin."""
    zone, hour = "Europe/Berlin", 3600 * SECOND
    midnight = 1698530400 * SECOND  # 2023-10-29 00:00 there
    times = np.array([midnight, midnight + 24 * hour, midnight + 25 * hour - 1, midnight + 25 * hour], dtype=np.int64)
    assigned = Tumble(24 * hour).assign(to_local(times, zone))
    days = assigned.starts // (24 * hour)
    assert (days - days[0]).tolist() == [0, 0, 0, 1]
    assert from_local(assigned.ends[:1], zone).tolist() == [midnight + 25 * hour]


def test_windows_of_a_time_zone_close_at_the_end_of_the_local_day() -> None:
    hour = 3600 * SECOND
    fed = Windowed(lambda a: WindowAggregateOperator(a, Tumble(24 * hour), "ts", zone="Asia/Tokyo"))
    rows = fed.fed._input([(1, ("a", 1))])
    rows = rows.append_column("ts", pa.array([14 * hour], pa.timestamp("us", "UTC")))
    assert fed.operator.step(fed.state, (rows,), Time(None, 15 * hour - 1001)).num_rows == 0
    closed = fed.operator.step(fed.state, (rows.slice(0, 0),), Time(15 * hour - 1001, 15 * hour - 1000))
    assert str(closed.column("window_end")[0]) == "1970-01-02 00:00:00"


@pytest.mark.parametrize("kind", list(KINDS))
def test_windows_of_a_row(kind: str) -> None:
    assigner, reference = KINDS[kind]
    times = np.arange(-30, 40, dtype=np.int64)
    assigned = assigner.assign(times * SECOND)
    found: dict[int, list[Any]] = {}
    for row, start, end in zip(assigned.rows, assigned.starts // SECOND, assigned.ends // SECOND, strict=True):
        found.setdefault(int(row), []).append((int(start), int(end)))
    for row, t in enumerate(times.tolist()):
        if t >= 0:
            assert found.get(row, []) == reference(t)


def test_an_operator_can_be_sent_to_another_process() -> None:
    fed = windowed("hop")
    assert pickle.loads(pickle.dumps(fed.operator)) == fed.operator
    assert fed.operator.timed
    assert fed.operator.output.names[:3] == ["g", "window_start", "window_end"]
    assert fed.operator.inputs[0].names[-1] == "ts"
