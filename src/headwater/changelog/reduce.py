"""Sums and extremes as SQL has them, where Arrow's own differ: a sum that does not fit raises, and NaN is the greatest
number. Values of NULL are nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Ints, flat, group_key
from headwater.errors import JobError

__all__ = ["add_sums", "better", "checked_cast", "reduce_groups", "reduce_numbered"]

_ALL, _ROW = "__hw_all", "__hw_row"
_LARGEST = (1 << 63) - 1
_MAGNITUDE = 0x7FFFFFFFFFFFFFFF

Prepared = tuple[pa.Array, Callable[[pa.Array], pa.Array]]
"""A column in a form that Arrow reduces rightly, and the way back."""


def reduce_groups(rows: pa.Table, keys: Sequence[str], wanted: Sequence[tuple[str, str]]) -> pa.Table:
    """One row per key that occurs, with each wanted (column, sum or min or max) under the column's own name."""
    originals = {key: flat(rows, key) for key in keys}
    stand_ins = {key: group_key(column) for key, column in originals.items()}
    stand_ins = stand_ins or {_ALL: pa.repeat(pa.scalar(0), rows.num_rows)}
    prepared = {name: _prepare(flat(rows, name), function) for name, function in wanted}
    asked: list[tuple[str, str]] = list(wanted)
    columns = {**stand_ins, **{name: column for name, (column, _) in prepared.items()}}
    # Arrow cannot group by nested columns: a stand-in is grouped by, and the first row of a group has the original.
    nested = [key for key, column in originals.items() if column is not stand_ins[key]]
    if nested:
        columns[_ROW] = pa.array(np.arange(rows.num_rows))
        asked.append((_ROW, "min"))
    reduced = pa.table(columns).group_by(list(stand_ins), use_threads=False).aggregate(asked)
    found = {k: originals[k].take(flat(reduced, f"{_ROW}_min")) if k in nested else flat(reduced, k) for k in keys}
    answers = {name: prepared[name][1](flat(reduced, f"{name}_{function}")) for name, function in wanted}
    return pa.table({**found, **answers})


def reduce_numbered(column: pa.Array, groups: Ints, count: int, function: str) -> pa.Array:
    """The sum, least or greatest of the values of each of `count` groups, which are numbered; NULL without any."""
    rows = pa.table([pa.array(groups), column], names=["group", "value"])
    reduced = reduce_groups(rows, ["group"], [("value", function)])
    places: Ints = np.full(count, -1, dtype=np.int64)
    places[flat(reduced, "group").to_numpy()] = np.arange(reduced.num_rows)
    return flat(reduced, "value").take(pa.array(places, mask=places < 0))


def better(stored: pa.Array, more: pa.Array, function: str) -> pa.Array:
    """Element by element, the smaller or the greater one."""
    compare = pc.less if function == "min" else pc.greater
    wins = pc.fill_null(compare(more, stored), False)
    if pa.types.is_floating(stored.type):
        # A comparison with NaN is never true: that it is the greatest must be added.
        low, high = (more, stored) if function == "min" else (stored, more)
        wins = pc.or_(wins, pc.fill_null(pc.and_(pc.is_nan(high), pc.invert(pc.is_nan(low))), False))
    return pc.if_else(pc.or_(pc.is_null(stored), wins), more, stored)


def add_sums(stored: pa.Array, more: pa.Array) -> pa.Array:
    """Element by element, two sums of the same type."""
    kind = stored.type
    # Two sums of 38 digits have up to 39; the cast back says whether the total still fits.
    wide = pa.decimal256(40, kind.scale) if pa.types.is_decimal(kind) else kind
    left, right = pc.coalesce(stored, more).cast(wide), more.cast(wide)
    both = pc.and_(pc.is_valid(stored), pc.is_valid(more))
    try:
        total = pc.add_checked(left, pc.if_else(both, right, pa.scalar(0).cast(wide)))
    except pa.ArrowInvalid as error:
        raise _overflow(kind) from error
    return checked_cast(total, kind)


def checked_cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise _overflow(kind) from error


def _prepare(column: pa.Array, function: str) -> Prepared:
    kind = column.type
    if function == "sum":
        if pa.types.is_decimal(kind):
            # Arrow wraps around where a sum does not fit; in twice the width every sum does.
            return column.cast(pa.decimal256(76, kind.scale)), lambda total: checked_cast(total, kind)
        if pa.types.is_integer(kind) and _may_overflow(column):
            return column.cast(pa.decimal128(38, 0)), lambda total: checked_cast(total, kind)
    elif pa.types.is_floating(kind) and pc.any(pc.is_nan(column)).as_py():
        return _sortable(column), lambda best: _from_sortable(best).cast(kind)
    return column, lambda answer: answer


def _may_overflow(column: pa.Array) -> bool:
    """Whether the sum of all values could be more than 64 bits hold, judged by the largest one."""
    limits = pc.min_max(column).as_py()
    largest = max(abs(limits["min"] or 0), abs(limits["max"] or 0))
    return bool(largest * len(column) > _LARGEST)


def _sortable(column: pa.Array) -> pa.Array:
    """Integers in the order of these numbers, with NaN last."""
    values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return pa.array(bits ^ ((bits >> 63) & _MAGNITUDE), mask=column.is_null().to_numpy(zero_copy_only=False))


def _from_sortable(column: pa.Array) -> pa.Array:
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    bits = values ^ ((values >> 63) & _MAGNITUDE)
    return pa.array(bits.view(np.float64), mask=column.is_null().to_numpy(zero_copy_only=False))


def _overflow(kind: pa.DataType) -> JobError:
    return JobError(
        f"A sum does not fit into {kind} any more.",
        hint="Sum a wider type: SUM(CAST(x AS BIGINT)), SUM(CAST(x AS DECIMAL(38, 0))) or SUM(CAST(x AS DOUBLE)).",
    )
