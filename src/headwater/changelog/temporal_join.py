"""FOR SYSTEM_TIME AS OF: each row of the left with the version of the right that was valid at its time.

`TemporalJoinOperator`, by event time: rows of the left wait until the watermark has passed their time, because only
then all versions up to it are known. A row that comes behind the watermark of its own partition is dropped: versions
of its time may be gone. See `versions` for what is kept of them.

`LookupJoinOperator`, by processing time: each row of the left with the newest version, at once.

Rows of the left are inserts, and so is the result. The keys of the right identify its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.arrival import in_order_of_arrival
from headwater.changelog.columns import Bools, Ints, constant, flat, widen
from headwater.changelog.conditions import Condition, of_pairs
from headwater.changelog.grouping import group_rows
from headwater.changelog.identity import take_table
from headwater.changelog.join import JoinSides
from headwater.changelog.kinds import DELETE, HASH, INSERT, KIND, KIND_TYPE, UPDATE_BEFORE
from headwater.changelog.operator import LateRows, State, Time
from headwater.changelog.pairing import key_columns, without_nulls
from headwater.changelog.versions import NONE, Versions
from headwater.changelog.waiting_rows import AT_ONCE, WaitingRows
from headwater.state.table import StateTable, TableSpec

__all__ = ["LookupJoinOperator", "TemporalJoinOperator"]

TemporalKind = Literal["inner", "left"]


@dataclass(frozen=True)
class _VersionJoin(JoinSides):
    """What both joins have in common. The output has all columns of both sides, whose names differ."""

    kind: TemporalKind = "inner"
    condition: Condition | None = None

    @property
    def output(self) -> pa.Schema:
        return pa.schema([*self.left.columns, *self.right.columns, pa.field(KIND, KIND_TYPE)])

    def joined(self, rows: pa.Table, versions: pa.Table, found: Ints) -> pa.Table:
        """Rows of the left, each with the version that was found for it, if that is >= 0."""
        found = self._fulfilling(rows, versions, found)
        if self.kind == "inner":
            rows, found = take_table(rows, np.flatnonzero(found >= 0)), found[found >= 0]
        at = pa.array(found, mask=found < 0)
        columns = [flat(rows, name) for name in self.left.columns.names]
        columns += [flat(versions, name).take(at) for name in self.right.columns.names]
        schema = widen(self.output)
        columns = [c.cast(f.type) for c, f in zip(columns, schema, strict=False)]
        return pa.table([*columns, constant(INSERT, len(found), KIND_TYPE)], schema=schema)

    def _fulfilling(self, rows: pa.Table, versions: pa.Table, found: Ints) -> Ints:
        """-1 instead of a version that does not fulfil the condition."""
        if self.condition is None or not (found >= 0).any():
            return found
        at = np.flatnonzero(found >= 0)
        holds = of_pairs(self.condition, rows, versions, (at, found[at]))
        true = pc.fill_null(holds, False).to_numpy(zero_copy_only=False)
        kept: Ints = found.copy()
        kept[at[~true]] = NONE
        return kept


@dataclass(frozen=True)
class TemporalJoinOperator(_VersionJoin):
    """`left_time` and `right_time` are columns with event time. A delete without a time is one of the newest version.

    `HASH` has the hash of the keys in its upper half.
    """

    left_time: str = ""
    right_time: str = ""

    @property
    def timed(self) -> bool:
        return True

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        return (self._waiting.spec, *self._versions.tables)

    @property
    def _waiting(self) -> WaitingRows:
        return WaitingRows("waiting", self.left.columns)

    @property
    def _versions(self) -> Versions:
        return Versions(self.right, self.right_time)

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        return self.step_with_late(state, inputs, time)[0]

    def step_with_late(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> tuple[pa.Table, LateRows]:
        """1. Store new versions. 2. Take the rows of the left that are due, and let the others wait. 3. Join. 4. Remove
        versions that are superseded."""
        left, right = inputs
        if right.num_rows:
            self._versions.add(state, right, time)  # 1
        rows, late = self._due(state, left, time)  # 2
        prefixes, keys = flat(rows, HASH).to_numpy() >> 32, key_columns(rows, self.left.keys)
        times = flat(rows, self.left_time).cast(pa.int64())
        result = self.joined(rows, *self._versions.as_of(state["versions"], prefixes, keys, times))  # 3
        self._versions.clean(state, time)  # 4
        return result, (late, right.slice(0, 0))

    def _due(self, state: State, batch: pa.Table, time: Time) -> tuple[pa.Table, pa.Table]:
        """Rows that are due, and those of this batch that are late. The others wait."""
        times = flat(batch, self.left_time).cast(pa.int64()).fill_null(AT_ONCE).to_numpy()
        # A row without a time meets no version, and need not wait for any.
        late: Bools = (times <= self.left.watermarks(batch, time)) & (times != AT_ONCE)
        on_time = batch if not late.any() else take_table(batch, np.flatnonzero(~late))
        due = self._waiting.due(state["waiting"], on_time, times[~late], time)
        return due, take_table(batch, np.flatnonzero(late))


@dataclass(frozen=True)
class LookupJoinOperator(_VersionJoin):
    """`HASH` has the hash of the keys in its upper half. The newest version of a key is the one that came last."""

    @property
    def timed(self) -> bool:
        return False

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        keys = pa.schema([self.right.columns.field(name) for name in self.right.keys])
        values = pa.schema([field for field in self.right.columns if field.name not in self.right.keys])
        return (TableSpec("rows", keys, values),)

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        """1. Store the newest versions. 2. Look them up."""
        left, right = inputs
        if right.num_rows:
            self._store(state["rows"], right)  # 1
        columns = widen(self.left.columns)
        rows = left.select(columns.names).cast(columns).combine_chunks()
        keys = key_columns(rows, self.left.keys)
        hashes = flat(left, HASH).to_numpy() >> 32 << 32
        spec = widen(self.tables[0].keys)
        found = state["rows"].lookup(hashes, [key.cast(f.type) for key, f in zip(keys, spec, strict=True)])  # 2
        hit = found.hit & without_nulls(keys, rows.num_rows)
        stored = pa.table([*keys, *found.values.columns], names=[*self.right.keys, *found.values.column_names])
        return self.joined(rows, stored, np.where(hit, np.arange(rows.num_rows), NONE))

    def _store(self, table: StateTable, batch: pa.Table) -> None:
        rows = batch.select(self.right.columns.names).cast(widen(self.right.columns)).combine_chunks()
        kinds = flat(batch, KIND).to_numpy() if KIND in batch.column_names else np.zeros(batch.num_rows, dtype=np.int8)
        keys = key_columns(rows, self.right.keys)
        wanted = without_nulls(keys, rows.num_rows) & (kinds != UPDATE_BEFORE)
        hashes = flat(batch, HASH).to_numpy() >> 32 << 32
        order = in_order_of_arrival(batch, group_rows(hashes, keys).of_row)
        at = order[wanted[order]]
        hashes = hashes[at]
        grouped = group_rows(hashes, [key.take(pa.array(at)) for key in keys])
        last: Ints = np.zeros(len(grouped), dtype=np.int64)
        last[grouped.of_row] = np.arange(len(at))
        chosen = pa.array(at[last])
        values = [flat(rows, name).take(chosen) for name in self.tables[0].values.names]
        table.write(hashes[last], [key.take(chosen) for key in keys], values, kinds[at[last]] == DELETE)
