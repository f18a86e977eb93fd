"""Accumulators: what is kept per group, how a batch is reduced to it, and how two of them are added.

Sums overflow loudly: a wrong total is worse than a stopped job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import flat
from headwater.changelog.multiset import Multiset
from headwater.changelog.reduce import add_sums, better, checked_cast, reduce_groups

__all__ = ["Accumulator", "add", "reduce_rows"]


@dataclass(frozen=True)
class Accumulator:
    """`function` is sum, min or max. With `multiset` it is fed by that multiset's transitions: the number of values
    (`of_values` false) or their sum."""

    name: str
    type: pa.DataType
    function: str
    multiset: str = ""
    of_values: bool = False

    def from_transitions(
        self, transitions: pa.Table, multiset: Multiset, batch: pa.Table, groups: Sequence[str]
    ) -> pa.Array:
        weights = flat(transitions, multiset.weight)
        amounts = weights
        if self.of_values:
            values = flat(transitions, multiset.value.name)
            values = values.cast(self.type)  # first: the smallest number of a type has no negative in it
            amounts = pc.if_else(pc.greater(weights, 0), values, pc.negate(values))
        elif self.function != "sum":
            return pa.nulls(batch.num_rows, self.type)
        table = transitions.select(list(groups)).append_column(self.name, amounts)
        return self.best(table, batch, groups)

    def best(self, rows: pa.Table, batch: pa.Table, groups: Sequence[str]) -> pa.Array:
        """This accumulator over `rows`, aligned with the groups of `batch`; NULL for groups without rows."""
        reduced = reduce_groups(rows, groups, [(self.name, self.function)])
        column = checked_cast(flat(reduced, self.name), self.type)
        if not groups:
            return column if len(column) else pa.nulls(batch.num_rows, self.type)
        return column.take(_positions(batch, reduced, groups))


def _positions(batch: pa.Table, reduced: pa.Table, groups: Sequence[str]) -> pa.Array:
    """For each group of `batch`, its row in `reduced` or NULL."""
    tagged = pa.concat_tables(
        [
            batch.select(list(groups)).append_column("__at", pa.nulls(batch.num_rows, pa.int64())),
            reduced.select(list(groups)).append_column("__at", pa.array(np.arange(reduced.num_rows))),
        ]
    )
    ids = tagged.append_column("__i", pa.array(np.arange(tagged.num_rows)))
    joined = ids.group_by(list(groups), use_threads=False).aggregate([("__at", "max"), ("__i", "min")])
    first = flat(joined, "__i_min").to_numpy()
    mine = first < batch.num_rows
    answer = np.full(batch.num_rows, -1, dtype=np.int64)
    at = pc.fill_null(flat(joined, "__at_max"), -1).to_numpy()
    answer[first[mine]] = at[mine]
    return pa.array(answer, mask=answer < 0)


def reduce_rows(rows: pa.Table, keys: Sequence[str], accumulators: Sequence[Accumulator]) -> pa.Table:
    """One row per key, with each accumulator under its own name."""
    reduced = reduce_groups(rows, keys, [(a.name, a.function) for a in accumulators])
    columns = [checked_cast(flat(reduced, a.name), a.type) for a in accumulators]
    return pa.table([*(flat(reduced, k) for k in keys), *columns], names=[*keys, *(a.name for a in accumulators)])


def add(stored: pa.Array, more: pa.Array, function: str) -> pa.Array:
    """Two accumulators of the same groups; NULL is nothing."""
    more = more.cast(stored.type)
    return add_sums(stored, more) if function == "sum" else better(stored, more, function)
