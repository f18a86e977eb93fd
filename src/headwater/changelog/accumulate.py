"""Accumulators: what is kept per group, how a batch is reduced to it, and how two of them are added.

Sums overflow loudly: a wrong total is worse than a stopped job.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools, Ints, flat
from headwater.changelog.multiset import GROUP, Multiset
from headwater.changelog.reduce import add_sums, better, checked_cast, reduce_groups

__all__ = ["Accumulator", "add"]

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Accumulator:
    """`function` is sum, min or max. With `multiset` it is fed by that multiset's transitions: the number of values
    (`of_values` false) or their sum."""

    name: str
    type: pa.DataType
    function: str
    multiset: str = ""
    of_values: bool = False

    def from_transitions(self, transitions: pa.Table, multiset: Multiset, count: int) -> pa.Array:
        """For each of `count` groups what the transitions add to it; NULL for groups without any."""
        weights = flat(transitions, multiset.weight)
        amounts = weights
        if self.of_values:
            values = flat(transitions, multiset.value.name)
            values = values.cast(self.type)  # first: the smallest number of a type has no negative in it
            amounts = pc.if_else(pc.greater(weights, 0), values, pc.negate(values))
        elif self.function != "sum":
            return pa.nulls(count, self.type)
        table = pa.table([flat(transitions, GROUP), amounts], names=[GROUP, self.name])
        return self.per_group(table, count)

    def per_group(self, rows: pa.Table, count: int) -> pa.Array:
        """This accumulator over `rows`, one for each of `count` groups; NULL for groups without rows."""
        reduced = reduce_groups(rows, [GROUP], [(self.name, self.function)])
        column = checked_cast(flat(reduced, self.name), self.type)
        places: Ints = np.full(count, -1, dtype=np.int64)
        places[flat(reduced, GROUP).to_numpy()] = np.arange(reduced.num_rows)
        return column.take(pa.array(places, mask=places < 0))

    def remains(self, stored: pa.Array, new: pa.Array) -> Bools:
        """For which groups there is something left to remember. What is left of a sum of fractions that was nearly all
        taken away is rounding."""
        if self.function != "sum":
            return np.asarray(new.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
        if not pa.types.is_floating(self.type):
            zero = pa.scalar(0).cast(self.type)
            return np.asarray(pc.not_equal(pc.fill_null(new, zero), zero).to_numpy(zero_copy_only=False))
        before, after = (pc.fill_null(a, 0.0).to_numpy(zero_copy_only=False) for a in (stored, new))
        kept: Bools = ~(np.abs(after) <= np.abs(before) * _ROUNDING)
        return kept


def add(stored: pa.Array, more: pa.Array, function: str) -> pa.Array:
    """Two accumulators of the same groups; NULL is nothing."""
    more = more.cast(stored.type)
    return add_sums(stored, more) if function == "sum" else better(stored, more, function)
