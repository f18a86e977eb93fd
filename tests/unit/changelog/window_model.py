"""Rows with event time for the tests of windows: what a batch is, how the watermark moves, and what must come out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from aggregate_model import Fed
from changelog_model import empty_state
from hypothesis import strategies as st
from operator_model import Result, Row, live_rows, reopened

from headwater.changelog.operator import FINAL, Operator, State, Time

SECOND = 1_000_000
Event = tuple[int, Row]
"""+1 or -1, and the row: group, value, time in seconds."""

rows = st.tuples(st.sampled_from(["a", "b", None]), st.none() | st.integers(-2, 2), st.integers(0, 40))
actions = st.tuples(st.booleans(), st.booleans(), rows, st.integers(0, 9))
histories = st.lists(st.lists(actions, max_size=6), min_size=1, max_size=8)


def events(history: Sequence[Sequence[tuple[bool, bool, Row, int]]], retracting: bool) -> list[list[Event]]:
    """A row that is added, or one of those that are there retracted."""
    live: list[Row] = []
    batches = []
    for block in history:
        batch: list[Event] = []
        for add, other, row, number in block:
            if add or other or not retracting or not live:
                live.append(row)
                batch.append((1, row))
            else:
                batch.append((-1, live.pop(number % len(live))))
        batches.append(batch)
    return batches


@dataclass
class Windowed:
    """A window operator over the aggregates of `Fed`, fed with events; the watermark is some seconds behind the
    greatest time."""

    make: Callable[[Any], Operator]
    delay: int = 5
    retracting: bool = True
    watermark: int | None = None
    fed: Fed = field(init=False)
    result: Result = field(default_factory=Result)
    late: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fed = Fed(pa.int64(), retracting=self.retracting)
        self.operator: Any = self.make(self.fed.operator)
        self.state: State = empty_state(self.operator)

    def feed(self, batch: Sequence[Event], watermark: int | None = None) -> list[tuple[int, Row]]:
        """The watermark moves to what is said, or behind the batch's times."""
        before = self.watermark
        times = [(row[2] - self.delay) * SECOND for _, row in batch]
        self.watermark = watermark if watermark is not None else max([*times, before or 0, 0])
        contributions = self.fed._input([(weight, row[:2]) for weight, row in batch])
        column = pa.array([row[2] * SECOND for _, row in batch], pa.timestamp("us"))
        inputs = (contributions.append_column("ts", column),)
        changes, (late,) = self.operator.step_with_late(self.state, inputs, Time(before, self.watermark))
        self.late += list(zip(late.column("g").to_pylist(), late.column("x").to_pylist(), strict=True))
        return self.result.apply(changes.cast(self.operator.output))

    def finish(self) -> None:
        self.feed([], FINAL)
        assert live_rows(self.state) == 0, "windows that closed leave nothing behind"

    def restart(self) -> None:
        self.state = reopened(self.state)


def grouped(fed: Fed, windows: dict[tuple[Any, int, int], list[Any]]) -> Counter[Row]:
    """What the aggregates of these windows are."""
    found: Counter[Row] = Counter()
    for (group, start, end), values in windows.items():
        if values:
            found[(group, _time(start), _time(end), *fed._answer(values))] += 1
    return found


def _time(seconds: int) -> Any:
    return pa.scalar(seconds * SECOND, pa.timestamp("us")).as_py()
