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
from headwater.errors import JobError

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
            signed = pc.if_else(pc.greater(weights, 0), values, pc.negate(values))
            amounts = signed.cast(self.type)
        elif self.function != "sum":
            return pa.nulls(batch.num_rows, self.type)
        table = transitions.select(list(groups)).append_column(self.name, amounts)
        return self.best(table, batch, groups)

    def best(self, rows: pa.Table, batch: pa.Table, groups: Sequence[str]) -> pa.Array:
        """This accumulator over `rows`, aligned with the groups of `batch`; NULL for groups without rows."""
        if not groups:
            value = getattr(pc, self.function)(rows.column(self.name))
            return pa.array([value.as_py()], self.type) if batch.num_rows else pa.nulls(0, self.type)
        reduced = rows.group_by(list(groups), use_threads=False).aggregate([(self.name, self.function)])
        column = flat(reduced, f"{self.name}_{self.function}").cast(self.type)
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
    wanted = [*keys, *(a.name for a in accumulators)]
    reduced = rows.select(wanted).group_by(list(keys), use_threads=False)
    table = reduced.aggregate([(a.name, a.function) for a in accumulators])
    columns = [flat(table, k) for k in keys]
    columns += [_checked_cast(flat(table, f"{a.name}_{a.function}"), a.type) for a in accumulators]
    return pa.table(columns, names=wanted)


def add(stored: pa.Array, more: pa.Array, function: str) -> pa.Array:
    """Two accumulators of the same groups; NULL is nothing."""
    if function == "min":
        return pc.min_element_wise(stored, more.cast(stored.type))
    if function == "max":
        return pc.max_element_wise(stored, more.cast(stored.type))
    more = more.cast(stored.type)
    left, right = pc.coalesce(stored, more), pc.coalesce(more, stored)
    both = pc.and_(pc.is_valid(stored), pc.is_valid(more))
    zero = pa.scalar(0).cast(stored.type)
    try:
        total = pc.add_checked(left, pc.if_else(both, right, zero))
    except pa.ArrowInvalid as error:
        raise _overflow(stored.type) from error
    return _checked_cast(total, stored.type)


def _checked_cast(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    if column.type == dtype:
        return column
    try:
        return column.cast(dtype)
    except pa.ArrowInvalid as error:
        raise _overflow(dtype) from error


def _overflow(dtype: pa.DataType) -> JobError:
    return JobError(
        f"A sum does not fit into {dtype} any more.",
        hint="Sum a wider type: SUM(CAST(x AS BIGINT)), SUM(CAST(x AS DECIMAL(38, 0))) or SUM(CAST(x AS DOUBLE)).",
    )
