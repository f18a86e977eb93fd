"""The order of rows by sort keys, as integers that numpy can sort.

Each sort column becomes one or more integer keys in its order: NULLs where they are wanted, NaN after all numbers, text
and binary by bytes. Rows with equal sort keys are put in the order of all their columns, so that a result depends on
the rows alone and never on the order they came in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools, Ints, flat
from headwater.dates import numbered_values

__all__ = ["Ordered", "SortKey", "order_rows", "sort_keys", "sortable_floats"]

_MAGNITUDE = 0x7FFFFFFFFFFFFFFF


@dataclass(frozen=True)
class SortKey:
    """Flink's NULLs are less than all values: first if ascending, last if descending, unless the query says."""

    column: str
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class Ordered:
    """`order` are row numbers in order, `group_starts` and `peer_starts` where, in this order, a group and a set of
    rows with equal sort keys begin."""

    order: Ints
    group_starts: Bools
    peer_starts: Bools


def order_rows(rows: pa.Table, groups: Ints, by: Sequence[SortKey], last: Sequence[Ints] = ()) -> Ordered:
    """Rows by group, by these keys, by all columns, and by the integers `last`."""
    keys = [key for sort in by for key in sort_keys(flat(rows, sort.column), sort)]
    order, peers = _sorted([groups, *keys])
    starts = ~_same([groups[order]])
    if not peers.all():
        _order_peers(rows, order, peers, last)
    return Ordered(order, starts, peers)


def _order_peers(rows: pa.Table, order: Ints, peers: Bools, last: Sequence[Ints]) -> None:
    """Put rows with equal sort keys into the order of all columns, in place. The other rows are not looked at: keys of
    all columns, strings above all, cost more than the sort keys, and ties are few."""
    tied = ~peers
    tied[:-1] |= tied[1:]
    at = np.flatnonzero(tied)
    members = order[at]
    some = rows.take(pa.array(members)).combine_chunks()
    more = [key for name in some.column_names for key in _all_keys(flat(some, name))]
    sets: Ints = np.cumsum(peers, dtype=np.int64)[at]
    within, _ = _sorted([sets, *more, *(numbers[members] for numbers in last)])
    order[at] = members[within]


def _sorted(keys: Sequence[Ints]) -> tuple[Ints, Bools]:
    """The order by these keys, the first one first, and where one differs from the row before."""
    # numpy takes the most significant key last.
    order: Ints = np.lexsort(list(reversed(keys))) if len(keys) > 1 else np.argsort(keys[0], kind="stable")
    return order, ~_same([key[order] for key in keys])


def _same(keys: Sequence[Ints]) -> Bools:
    """Which rows equal the row before."""
    same: Bools = np.ones(len(keys[0]), dtype=np.bool_)
    same[:1] = False
    for key in keys:
        same[1:] &= key[1:] == key[:-1]
    return same


def _all_keys(column: pa.Array) -> list[Ints]:
    """Keys that tell any two values apart, also 0.0 from -0.0."""
    keys = sort_keys(column, SortKey(""))
    if pa.types.is_floating(column.type):
        keys.append(_integers(column.view(pa.int64() if column.type == pa.float64() else pa.int32())))
    return keys


def sort_keys(column: pa.Array, sort: SortKey) -> list[Ints]:
    """The column as integers in the order of `sort`."""
    words = _words(column)
    if sort.descending:
        # The complement reverses the order; a negation would overflow for the smallest number.
        words = [~word for word in words]
    if not column.null_count:
        return words
    missing = column.is_null().to_numpy(zero_copy_only=False)
    words = [np.where(missing, 0, word) for word in words]
    return [np.where(missing, -1 if sort.nulls_first else 1, 0), *words]


def _words(column: pa.Array) -> list[Ints]:
    """Integers in ascending order of the column, the most significant first. What they are for NULL does not matter."""
    kind = column.type
    if pa.types.is_floating(kind):
        return [_integers(sortable_floats(column))]
    if pa.types.is_decimal(kind):
        return _decimal_words(column)
    if pa.types.is_boolean(kind):
        return [_integers(column.cast(pa.int8()))]
    if pa.types.is_large_string(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind):
        return [_ranks(column)]
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return [_ranks(column)]
    if pa.types.is_null(kind):
        return [np.zeros(len(column), dtype=np.int64)]
    if pa.types.is_nested(kind):
        return [_ranks_of_objects(column)]
    if pa.types.is_integer(kind):
        return [_integers(column)]
    return [_integers(column.view(pa.int32() if kind.bit_width == 32 else pa.int64()))]  # dates, times, durations


def _integers(column: pa.Array) -> Ints:
    values: Ints = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return values


def sortable_floats(column: pa.Array) -> pa.Array:
    """Integers in the order of these numbers: 0.0 equals -0.0, NaN equals NaN and is the greatest."""
    values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
    # Adding 0.0 makes 0.0 of -0.0, and one NaN stands for all. IEEE numbers are ordered as integers, except that
    # negative ones are ordered by magnitude: all their bits but the sign are flipped.
    bits = (np.where(np.isnan(values), np.nan, values) + 0.0).view(np.int64)
    codes = bits ^ ((bits >> 63) & _MAGNITUDE)
    return (
        pa.array(codes, mask=column.is_null().to_numpy(zero_copy_only=False)) if column.null_count else pa.array(codes)
    )


def _decimal_words(column: pa.Array) -> list[Ints]:
    """The words of the unscaled number, which has the same order. All but the first are without sign."""
    if not len(column):
        return [np.zeros(0, dtype=np.int64)]
    width = column.type.bit_width // 64
    words = np.frombuffer(column.buffers()[1], dtype=np.int64)
    words = words[column.offset * width : (column.offset + len(column)) * width].reshape(-1, width)
    # Flipping the highest bit turns the order of numbers without sign into that of numbers with one.
    lowest = np.int64(np.iinfo(np.int64).min)
    return [words[:, -1], *(words[:, n] ^ lowest for n in range(width - 2, -1, -1))]


def _ranks(column: pa.Array) -> Ints:
    """The place of each value among the different ones, by bytes."""
    encoded = column.dictionary_encode()
    dictionary = encoded.dictionary
    if pa.types.is_fixed_size_binary(dictionary.type):
        dictionary = dictionary.cast(pa.large_binary())
    ranks = np.empty(len(dictionary), dtype=np.int64)
    ranks[pc.sort_indices(dictionary).to_numpy()] = np.arange(len(dictionary))
    codes = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
    return ranks[codes] if len(ranks) else np.zeros(len(column), dtype=np.int64)


def _ranks_of_objects(column: pa.Array) -> Ints:
    """Lists, maps and rows, element by element. Arrow has no order for them; Python's tuples do."""
    values = [_comparable(value) for value in numbered_values(column)]
    place = {value: number for number, value in enumerate(sorted(set(values)))}
    return np.array([place[value] for value in values], dtype=np.int64)


def _comparable(value: Any) -> Any:
    """A tuple in the order of the value; NULL comes before everything."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, tuple(_comparable(v) for v in value.values()))
    if isinstance(value, list | tuple):
        return (1, tuple(_comparable(v) for v in value))
    if isinstance(value, float):
        return (1, (value != value, 0.0 if value != value else value))
    return (1, value)
