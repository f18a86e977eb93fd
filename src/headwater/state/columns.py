"""Arrow columns as one piece, with 64-bit offsets, compared row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["HASH", "Bools", "Ints", "concat", "equal_rows", "expand", "flat", "widen"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

HASH = "__hw_h"
"""A 64-bit hash of a row's key, made once by the JVM. It finds candidates; equality of keys decides."""


def widen(schema: pa.Schema) -> pa.Schema:
    """The same schema with 64-bit offsets: a step may hold more than 2 GiB of text."""
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


def concat(tables: Sequence[pa.Table]) -> pa.Table:
    # An empty piece beside the only one with rows would make Arrow copy all of them.
    filled = [table for table in tables if table.num_rows] or tables[:1]
    return pa.concat_tables(filled).combine_chunks()


def equal_rows(left: Sequence[pa.Array], right: Sequence[pa.Array], length: int) -> Bools:
    """Row by row: are all columns the same? NULL equals NULL and NaN equals NaN."""
    same: Bools = np.ones(length, dtype=np.bool_)
    for a, b in zip(left, right, strict=True):
        same &= _equal(a, b)
    return same


def _equal(a: pa.Array, b: pa.Array) -> Bools:
    if pa.types.is_nested(a.type):
        return _equal_nested(a, b)
    if pa.types.is_floating(a.type):
        # Bit by bit: to IEEE no NaN equals another, and a row with one would never find itself in the state again.
        bits = pa.int64() if a.type == pa.float64() else pa.int32()
        a, b = a.view(bits), b.view(bits)
    same = pc.fill_null(pc.equal(a, b), False)
    if a.null_count and b.null_count:
        same = pc.or_(same, pc.and_(pc.is_null(a), pc.is_null(b)))
    return _bools(same)


def _equal_nested(a: pa.Array, b: pa.Array) -> Bools:
    """Arrow has no equality kernel for lists, maps and structs: their parts are compared."""
    valid_a, valid_b = _bools(a.is_valid()), _bools(b.is_valid())
    same: Bools = valid_a == valid_b
    places = np.flatnonzero(valid_a & valid_b)
    a, b = a.take(pa.array(places)), b.take(pa.array(places))
    if pa.types.is_struct(a.type):
        same[places] = equal_rows(a.flatten(), b.flatten(), len(places))
    else:
        same[places] = _equal_lists(a, b)
    return same


def _equal_lists(a: pa.Array, b: pa.Array) -> Bools:
    """Lists or maps without NULLs: as long as each other, and element by element the same."""
    (sizes, of_a), (other_sizes, of_b) = _elements(a), _elements(b)
    same: Bools = sizes == other_sizes
    # Elements can be compared side by side only where lists have the same length.
    if not same.all():
        places = pa.array(np.flatnonzero(same))
        (sizes, of_a), (_, of_b) = _elements(a.take(places)), _elements(b.take(places))
    different = ~_equal(of_a, of_b)
    parents = np.repeat(np.arange(len(sizes)), sizes)
    some_different = np.bincount(parents[different], minlength=len(sizes)) > 0
    same[np.flatnonzero(same)] = ~some_different
    return same


def _elements(lists: pa.Array) -> tuple[Ints, pa.Array]:
    """The length of each list, and the elements of all. A map is a list of pairs."""
    if pa.types.is_fixed_size_list(lists.type):
        return np.full(len(lists), lists.type.list_size, dtype=np.int64), lists.flatten()
    offsets = lists.offsets.to_numpy()
    if pa.types.is_map(lists.type):
        pairs = pa.StructArray.from_arrays([lists.keys, lists.items], ["key", "value"])
        return np.diff(offsets).astype(np.int64), pairs
    return np.diff(offsets).astype(np.int64), lists.flatten()


def _bools(column: pa.Array) -> Bools:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.bool_)


def expand(start: Ints, stop: Ints) -> Ints:
    """The numbers from each start up to, not including, its stop."""
    counts = stop - start
    offsets = np.repeat(start - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
    numbers: Ints = np.arange(counts.sum(), dtype=np.int64) + offsets
    return numbers
