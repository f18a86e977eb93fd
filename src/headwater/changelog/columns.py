"""Arrow columns compared, grouped and assembled: the few vectorised tools all operators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.dates import numbered_values
from headwater.state.columns import Bools, Ints, concat, equal_rows, expand, flat, widen

__all__ = [
    "Bools",
    "Ints",
    "concat",
    "constant",
    "equal_rows",
    "expand",
    "flat",
    "group_key",
    "last_rows",
    "spread",
    "widen",
]


def spread(values: pa.Array, present: Bools) -> pa.Array:
    """`values` at the places that are `present`, NULL at the others."""
    return values.take(pa.array(np.cumsum(present) - 1, mask=~present))


def constant(value: Any, length: int, dtype: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, dtype), length)


def group_key(column: pa.Array) -> pa.Array:
    """The column, or what stands for it where Arrow cannot group by its type: for arrays, maps and rows a text that is
    the same for equal values only."""
    if not pa.types.is_nested(column.type):
        return column
    # `repr` and not a hash: unequal values must never fall into one group.
    return pa.array([repr(value) for value in numbered_values(column)], pa.large_string())


def last_rows(table: pa.Table, keys: Sequence[str], order: Sequence[str]) -> pa.Table:
    """One row per key: the last by `order`. The rows that are left stay in the order they had."""
    if table.num_rows <= 1:
        return table
    rank: Ints = np.arange(table.num_rows, dtype=np.int64)
    if order:
        columns = [np.asarray(flat(table, name).to_numpy(zero_copy_only=False)) for name in reversed(order)]
        rank[np.lexsort(columns)] = np.arange(table.num_rows, dtype=np.int64)
    by_rank: Ints = np.empty_like(rank)
    by_rank[rank] = np.arange(len(rank), dtype=np.int64)
    columns = [group_key(flat(table, key)) for key in keys]
    ranked = pa.table([*columns, pa.array(rank)], names=[*keys, "__hw_rank"])
    winners = ranked.group_by(list(keys), use_threads=False).aggregate([("__hw_rank", "max")])
    if winners.num_rows == table.num_rows:
        return table
    return table.take(pa.array(np.sort(by_rank[flat(winners, "__hw_rank_max").to_numpy()])))
