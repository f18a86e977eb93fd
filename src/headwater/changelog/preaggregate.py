"""Local pre-aggregation for a GROUP BY, where the rows are read: one row per group instead of all of them is shuffled.

Sums, counts and best values are reduced. Values that must be kept one by one (DISTINCT) travel together, as one list
per group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Ints, constant, flat, group_key
from headwater.changelog.exact_sums import inside, limb_names, split, weight_name
from headwater.changelog.reduce import reduce_groups

__all__ = ["GroupBuffer", "PartialAggregate", "PartialKind", "PreAggregation", "double_sum"]

PartialKind = Literal["rows", "present", "sum", "min", "max", "values", "limb", "beyond", "beyond_weight"]

# Whichever limit is reached first: narrow rows come to the one of rows, wide ones to that of bytes. A worker never
# holds more.
ROWS_REDUCED = 500_000
BYTES_REDUCED = 1 << 26

_ALL = "__hw_all"
_REDUCED = {"rows", "present", "sum", "min", "max"}


@dataclass(frozen=True)
class PartialAggregate:
    """What `column` gives to its group, under a `name`: the number of rows (of no column) or of values that are
    `present`, the sum of whole numbers, the least, the greatest, or all values as a list; of the partial sum of a
    DOUBLE a `limb`, a value `beyond` the window, or the weight of that (`exact_sums`)."""

    name: str
    how: PartialKind
    column: str = ""
    limb: int = 0


def double_sum(name: str, column: str) -> tuple[PartialAggregate, ...]:
    """The columns of the partial sum of a DOUBLE. A single row may as well give the value as `beyond` and 1 as its
    weight, whatever it is, and no limbs."""
    limbs = [PartialAggregate(limb, "limb", column, k) for k, limb in enumerate(limb_names(name))]
    beyond = PartialAggregate(name, "beyond", column), PartialAggregate(weight_name(name), "beyond_weight", column)
    return *beyond, *limbs


@dataclass(frozen=True)
class PreAggregation:
    """`groups` are pairs: a column, and the name it goes by afterwards."""

    groups: tuple[tuple[str, str], ...]
    partials: tuple[PartialAggregate, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the rows; each once."""
        used = [column for column, _ in self.groups] + [c.column for c in self.partials if c.column]
        return tuple(dict.fromkeys(used))

    def reduced(self, rows: pa.Table) -> pa.Table:
        """One row per group: the groups, then the partial aggregates. Values beyond the window of an exact sum have
        rows of their own, which have nothing else."""
        names = [name for _, name in self.groups]
        keys = [flat(rows, column) for column, _ in self.groups]
        summed = {c.column for c in self.partials if c.how == "limb"}
        doubles = {column: _Double.of(flat(rows, column)) for column in summed}
        plain = [c for c in self.partials if c.how in _REDUCED or (c.how == "limb" and doubles[c.column].has(c.limb))]
        columns = [_partial_of(rows, c, doubles) for c in plain]
        table = pa.table([*keys, *columns], names=[*names, *(c.name for c in plain)])
        reduced = reduce_groups(table, names, [(c.name, c.how if c.how in {"min", "max"} else "sum") for c in plain])
        lists = [self._lists(rows, keys, c) for c in self.partials if c.how == "values"]
        for name, column in lists:  # Arrow numbers the groups alike: in the order of their first rows
            reduced = reduced.append_column(name, column)
        return self._with_values_beyond(reduced, pa.table(keys, names=names), doubles)

    def _lists(self, rows: pa.Table, keys: Sequence[pa.Array], partial: PartialAggregate) -> tuple[str, pa.Array]:
        keys = [group_key(key) for key in keys] or [pa.repeat(pa.scalar(0), rows.num_rows)]
        names = [f"{_ALL}{place}" for place in range(len(keys))]
        table = pa.table([*keys, flat(rows, partial.column)], names=[*names, "value"])
        # Without threads groups come in the order of their first rows, as those do that the lists are put beside.
        lists = table.group_by(names, use_threads=False).aggregate([("value", "list")])
        return partial.name, flat(lists, "value_list")

    def _with_values_beyond(self, reduced: pa.Table, keys: pa.Table, doubles: Mapping[str, _Double]) -> pa.Table:
        """Complete: in the rows of groups there is nothing beyond, in the rows of values beyond nothing else."""
        names = [*keys.column_names, *(c.name for c in self.partials)]
        for c in self.partials:
            if c.name not in reduced.column_names:
                kind = pa.float64() if c.how == "beyond" else pa.int64()
                reduced = reduced.append_column(c.name, _nothing(c, kind, reduced.num_rows))
        parts = [reduced.select(names)]
        for sum_ in (c for c in self.partials if c.how == "beyond"):
            double = doubles[sum_.column]
            rows = len(double.places)
            part = {name: flat(keys, name).take(double.places) for name in keys.column_names}
            part |= {c.name: _nothing(c, reduced.schema.field(c.name).type, rows) for c in self.partials}
            part[sum_.name], part[weight_name(sum_.name)] = double.beyond, constant(1, rows, pa.int64())
            parts.append(pa.table(part))
        return pa.concat_tables([part for part in parts if part.num_rows] or parts[:1])


class GroupBuffer:
    """Rows that wait until there are enough of them to be worth adding up."""

    def __init__(self, groups: PreAggregation) -> None:
        self._groups = groups
        self._waiting: list[pa.Table] = []

    def add(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Groups, if there are enough rows by now."""
        self._waiting.append(rows)
        enough = sum(t.num_rows for t in self._waiting) >= ROWS_REDUCED
        if enough or sum(t.nbytes for t in self._waiting) >= BYTES_REDUCED:
            yield from self.rest()

    def rest(self) -> Iterator[pa.Table]:
        """The groups of all rows that wait."""
        waiting, self._waiting = self._waiting, []
        if any(t.num_rows for t in waiting):
            yield self._groups.reduced(pa.concat_tables(waiting).combine_chunks())


@dataclass(frozen=True)
class _Double:
    """A column of DOUBLE in limbs, and its values beyond the window with their places. Limbs that are 0 for all values
    are left out."""

    limbs: Mapping[int, Ints]
    beyond: pa.Array
    places: pa.Array

    def has(self, limb: int) -> bool:
        return limb in self.limbs

    @staticmethod
    def of(column: pa.Array) -> _Double:
        values = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        fits = inside(values)
        limbs = split(values if fits.all() else np.where(fits, values, 0.0))
        return _Double(limbs, pa.array(values[~fits]), pa.array(np.flatnonzero(~fits)))


def _partial_of(rows: pa.Table, partial: PartialAggregate, doubles: Mapping[str, _Double]) -> pa.Array:
    if partial.how == "rows":
        return constant(1, rows.num_rows, pa.int64())
    if partial.how == "limb":
        return pa.array(doubles[partial.column].limbs[partial.limb])
    column = flat(rows, partial.column)
    if partial.how == "present":
        return pc.cast(pc.is_valid(column), pa.int64())
    if partial.how == "sum":
        return column.cast(pa.float64() if pa.types.is_floating(column.type) else pa.int64())
    return column


def _nothing(partial: PartialAggregate, kind: pa.DataType, rows: int) -> pa.Array:
    if partial.how in {"rows", "present", "limb", "beyond_weight"}:
        return constant(0, rows, kind)
    return constant([] if partial.how == "values" else None, rows, kind)
