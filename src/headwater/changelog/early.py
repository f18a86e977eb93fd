"""GROUP BY begun where the rows are read: one row per group instead of all of them, so that little is left to travel.

Sums, counts and best values are reduced. Values that must be remembered one by one (DISTINCT) travel together, as one
list per group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import flat
from headwater.changelog.reduce import reduce_groups

__all__ = ["Contribution", "EarlyGroups", "How"]

How = Literal["rows", "present", "sum", "min", "max", "values"]

_ALL = "__all"


@dataclass(frozen=True)
class Contribution:
    """What `column` contributes to its group, under a `name`: the number of rows (of no column) or of values that are
    `present`, their sum, the least, the greatest, or all values as a list."""

    name: str
    how: How
    column: str = ""


@dataclass(frozen=True)
class EarlyGroups:
    """`groups` are pairs: a column, and the name it goes by afterwards."""

    groups: tuple[tuple[str, str], ...]
    contributions: tuple[Contribution, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the rows; each once."""
        used = [column for column, _ in self.groups] + [c.column for c in self.contributions if c.column]
        return tuple(dict.fromkeys(used))

    def reduced(self, rows: pa.Table) -> pa.Table:
        """One row per group: the groups, then the contributions."""
        names = [name for _, name in self.groups]
        keys = [flat(rows, column) for column, _ in self.groups]
        plain = [c for c in self.contributions if c.how != "values"]
        columns = [_contributed(rows, c) for c in plain]
        table = pa.table([*keys, *columns], names=[*names, *(c.name for c in plain)])
        reduced = reduce_groups(table, names, [(c.name, c.how if c.how in {"min", "max"} else "sum") for c in plain])
        lists = [self._lists(rows, keys, c) for c in self.contributions if c.how == "values"]
        for name, column in lists:  # Arrow numbers the groups alike: in the order of their first rows
            reduced = reduced.append_column(name, column)
        return reduced.select([*names, *(c.name for c in self.contributions)])

    def _lists(self, rows: pa.Table, keys: Sequence[pa.Array], contribution: Contribution) -> tuple[str, pa.Array]:
        keys = keys or [pa.repeat(pa.scalar(0), rows.num_rows)]
        names = [f"{_ALL}{place}" for place in range(len(keys))]
        table = pa.table([*keys, flat(rows, contribution.column)], names=[*names, "value"])
        lists = table.group_by(names, use_threads=False).aggregate([("value", "list")])
        return contribution.name, flat(lists, "value_list")


def _contributed(rows: pa.Table, contribution: Contribution) -> pa.Array:
    if contribution.how == "rows":
        return pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
    column = flat(rows, contribution.column)
    if contribution.how == "present":
        return pc.cast(pc.is_valid(column), pa.int64())
    if contribution.how == "sum":
        return column.cast(pa.float64() if pa.types.is_floating(column.type) else pa.int64())
    return column
