"""Arrow columns compared, grouped and assembled: the few vectorised tools all operators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Bools", "Ints", "concat", "constant", "equal_rows", "flat", "last_rows", "spread", "widen"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def widen(schema: pa.Schema) -> pa.Schema:
    """The same schema with 64-bit offsets: a layer of state may hold more than 2 GiB of text."""
    return pa.schema([pa.field(f.name, _wide(f.type), f.nullable) for f in schema])


def _wide(t: pa.DataType) -> pa.DataType:
    if pa.types.is_string(t):
        return pa.large_string()
    if pa.types.is_binary(t):
        return pa.large_binary()
    return t


def flat(table: pa.Table, name: str) -> pa.Array:
    """The column as one piece."""
    column = table.column(name)
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def spread(values: pa.Array, present: Bools) -> pa.Array:
    """`values` at the places that are `present`, NULL at the others."""
    return values.take(pa.array(np.cumsum(present) - 1, mask=~present))


def constant(value: Any, length: int, dtype: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, dtype), length)


def concat(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).combine_chunks()


def equal_rows(left: Sequence[pa.Array], right: Sequence[pa.Array], length: int) -> Bools:
    """Row by row: are all columns the same? NULL equals NULL and NaN equals NaN."""
    same: Bools = np.ones(length, dtype=np.bool_)
    for a, b in zip(left, right, strict=True):
        same &= _equal(a, b)
    return same


def _equal(a: pa.Array, b: pa.Array) -> Bools:
    if pa.types.is_nested(a.type):
        # Arrow has no equality kernel for lists, maps and structs.
        return np.fromiter((x == y for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True)), np.bool_, len(a))
    if pa.types.is_floating(a.type):
        bits = pa.int64() if a.type == pa.float64() else pa.int32()
        a, b = a.view(bits), b.view(bits)
    same = pc.fill_null(pc.equal(a, b), False)
    if a.null_count and b.null_count:
        same = pc.or_(same, pc.and_(pc.is_null(a), pc.is_null(b)))
    return np.asarray(same.to_numpy(zero_copy_only=False), dtype=np.bool_)


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
    ranked = table.select(list(keys)).append_column("__rank", pa.array(rank))
    winners = ranked.group_by(list(keys), use_threads=False).aggregate([("__rank", "max")])
    if winners.num_rows == table.num_rows:
        return table
    return table.take(pa.array(np.sort(by_rank[flat(winners, "__rank_max").to_numpy()])))
