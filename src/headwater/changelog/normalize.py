"""Upsert changelog in, full changelog out.

The input says, per key, "this is the row now" or "the key is gone". The state is the last row of every key, so the
output knows what was there before: +I for a new key, -U/+U for a changed row, -D with the full old row for a delete.
A row equal to the last one, and the delete of an unknown key, give nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import Bools, concat, constant, equal_rows, flat, last_rows, widen
from headwater.changelog.grouping import group_rows
from headwater.changelog.kinds import DELETE, HASH, INSERT, KIND, KIND_TYPE, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.operator import State, Time
from headwater.state.table import Lookup, TableSpec

__all__ = ["OFFSET", "ORDER", "PARTITION", "POSITION", "NormalizeOperator", "newest_rows"]

ORDER, PARTITION, OFFSET, POSITION = "__hw_ts", "__hw_partition", "__hw_offset", "__hw_position"
"""The position of a change: its place in its message, if a message can hold several; offsets order one partition; the
record's time orders the same key across partitions."""


def newest_rows(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Of the rows of each key the last one."""
    within = [name for name in (OFFSET, POSITION) if name in rows.column_names]
    # Within a partition offsets decide. Across partitions (after a key has moved) they mean nothing, and the time of
    # the message has to.
    return last_rows(last_rows(rows, [*key, PARTITION], within), key, [ORDER, PARTITION])


@dataclass(frozen=True)
class NormalizeOperator:
    """`keys` and `values` are the columns; with `before`, an update is the pair -U, +U instead of +U alone."""

    keys: pa.Schema
    values: pa.Schema
    before: bool

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        return (TableSpec("rows", self.keys, self.values),)

    @property
    def output(self) -> pa.Schema:
        return pa.schema([*self.keys, *self.values, pa.field(KIND, KIND_TYPE)])

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (pa.schema([(HASH, pa.int64()), *self.keys, *self.values, (KIND, KIND_TYPE)]),)

    @property
    def timed(self) -> bool:
        return False

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        table = state["rows"]
        rows = self._newest(inputs[0])
        keys = [flat(rows, name) for name in self.keys.names]
        values = [flat(rows, name) for name in self.values.names]
        hashes = flat(rows, HASH).to_numpy()
        kinds = flat(rows, KIND).to_numpy()
        found = table.lookup(hashes, keys)
        gone: Bools = (kinds == DELETE) | (kinds == UPDATE_BEFORE)
        same = equal_rows([flat(found.values, n) for n in self.values.names], values, len(hashes))
        # An upsert that repeats what is stored emits nothing, and neither does the delete of a key that is not there:
        # both come with every replay of a compacted topic.
        changed: Bools = np.where(gone, found.hit, ~(found.hit & same))
        index = pa.array(np.flatnonzero(changed))
        table.write(hashes[changed], [k.take(index) for k in keys], [v.take(index) for v in values], gone[changed])
        return self._changes(rows, found, gone, changed)

    def _newest(self, rows: pa.Table) -> pa.Table:
        names = self.keys.names
        grouped = group_rows(flat(rows, HASH).to_numpy(), [flat(rows, name) for name in names])
        if len(grouped) == rows.num_rows:
            return rows.take(pa.array(grouped.first))  # sorted by hash: lookups are faster
        return newest_rows(rows, [HASH, *names])

    def _changes(self, rows: pa.Table, found: Lookup, gone: Bools, changed: Bools) -> pa.Table:
        parts = [
            self._part(rows, None, changed & ~gone & ~found.hit, INSERT),
            self._part(rows, None, changed & ~gone & found.hit, UPDATE_AFTER),
            self._part(rows, found, changed & gone, DELETE),
        ]
        if self.before:
            parts.insert(0, self._part(rows, found, changed & ~gone & found.hit, UPDATE_BEFORE))
        return concat(parts)

    def _part(self, rows: pa.Table, old: Lookup | None, where: Bools, kind: int) -> pa.Table:
        """Rows at `where`, with new values, or with the old ones if `old` is given."""
        index = pa.array(np.flatnonzero(where))
        values = rows if old is None else old.values
        columns = [flat(rows, n).take(index) for n in self.keys.names]
        columns += [flat(values, n).take(index) for n in self.values.names]
        schema = widen(self.output)
        columns.append(constant(kind, len(index), KIND_TYPE))
        return pa.table(columns, schema=schema)
