"""Aggregate functions that users have written: a group keeps one accumulator for each, in a form that only the function
knows. Rows are handed to it in the order in which they came, and its result is asked for where the group has rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.accumulate import ROWS, Accumulator, Kept
from headwater.changelog.columns import Ints, flat, spread
from headwater.changelog.multiset import GROUP, Multiset
from headwater.changelog.ordered_values import ARRIVAL
from headwater.changelog.results import AggregateResult

__all__ = ["AccumulatingFunction", "UserAccumulator", "UserResult"]


class AccumulatingFunction(Protocol):
    """NULL is an accumulator without rows."""

    def accumulated(self, stored: pa.Array, rows: pa.Array, groups: Ints, weights: Ints) -> pa.Array:
        """The accumulators after these rows, which are structs of arguments, of the groups with these numbers, in
        ascending order. A row with weight -1 is retracted."""
        ...

    def merged(self, stored: pa.Array, groups: Ints, count: int) -> pa.Array:
        """For each of `count` groups the accumulators with its number as one."""
        ...


class _Changes(NamedTuple):
    """Of a batch, by group and arrival."""

    rows: pa.Array
    groups: Ints
    weights: Ints


@dataclass(frozen=True)
class UserAccumulator(Accumulator):
    """`arguments` and `weight` are input columns: a struct, and how often the row counts. With `multiset`, each
    different value counts once (DISTINCT)."""

    arguments: str = ""
    weight: str = ""
    arguments_type: pa.DataType | None = None
    aggregate: AccumulatingFunction | None = None

    @property
    def columns(self) -> list[tuple[str, pa.DataType]]:
        return [] if self.multiset else [(self.arguments, self.arguments_type), (self.weight, pa.int64())]

    @property
    def is_column(self) -> bool:
        return False

    @property
    def by_arrival(self) -> bool:
        return True

    def from_transitions(self, transitions: pa.Table, multiset: Multiset, count: int) -> Kept:
        return _changes(transitions, multiset.value.name, multiset.weight)

    def per_group(self, rows: pa.Table, count: int) -> Kept:
        return _changes(rows, self.arguments, self.weight)

    def add(self, kept: Kept, more: Kept) -> Kept:
        assert self.aggregate is not None
        return self.aggregate.accumulated(kept, *more)

    def merged(self, stored: pa.Array, numbers: Ints, times: Ints, count: int) -> pa.Array:
        """For each of `count` larger groups the accumulators with its number as one, merged in the order of `times`."""
        assert self.aggregate is not None
        order = np.lexsort([times, numbers])
        return self.aggregate.merged(stored.take(pa.array(order)), numbers[order], count)


def _changes(rows: pa.Table, arguments: str, weight: str) -> _Changes:
    groups, weights = flat(rows, GROUP).to_numpy(), flat(rows, weight).to_numpy()
    came = flat(rows, ARRIVAL).to_numpy() if ARRIVAL in rows.column_names else np.arange(rows.num_rows)
    used = np.flatnonzero(weights)  # the condition of FILTER gives 0
    order = used[np.lexsort([came[used], groups[used]])]
    return _Changes(flat(rows, arguments).take(pa.array(order)), groups[order], weights[order])


@dataclass(frozen=True)
class UserResult(AggregateResult):
    """What the function makes of `value`: of its accumulator, or of a list of all values."""

    evaluate: Callable[[pa.Array], pa.Array] | None = None

    def compute(self, accumulators: Mapping[str, Kept], rows: int) -> pa.Array:
        assert self.evaluate is not None
        # Only groups that are shown: a function may have no result for an accumulator without rows, and raise.
        alive = pc.fill_null(accumulators[ROWS], 0).to_numpy() > 0
        kept = accumulators[self.value].filter(pa.array(alive))
        return spread(self.evaluate(kept).cast(self.type), alive)
