"""FOR SYSTEM_TIME AS OF: each row of the left with the version of the right that was valid at its time.

`TemporalJoinOperator`, by event time: rows of the left wait until the watermark has passed their time, because only
then all versions up to it are known. Versions of a key are ordered by their time; one with the time of another takes
its place, and a delete ends the one before it. When the watermark passes, of each key only the newest version up to it
is kept, and all later ones.

`LookupJoinOperator`, by processing time: each row of the left with the newest version, at once.

Rows of the left are inserts, and so is the result. The keys of the right identify its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools, Ints, concat, constant, flat, widen
from headwater.changelog.conditions import Condition
from headwater.changelog.counted_rows import COUNT, CountedRows, distinct, net_rows, remove_rows
from headwater.changelog.grouping import group_rows
from headwater.changelog.identity import take_table
from headwater.changelog.join import JoinSides
from headwater.changelog.kinds import DELETE, HASH, INSERT, KIND, KIND_TYPE, UPDATE_BEFORE
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION, POSITION
from headwater.changelog.operator import State, Time
from headwater.changelog.pairing import key_columns, key_ids, last_not_after, without_nulls
from headwater.changelog.timers import TimeIndex
from headwater.changelog.window_assigners import window_hash
from headwater.state.table import StateTable, TableSpec

__all__ = ["LookupJoinOperator", "TemporalJoinOperator"]

TemporalKind = Literal["inner", "left"]

KEY, VALID_FROM, GONE = "__key", "__valid_from", "__gone"
_NONE = -1
_NO_TIME = np.iinfo(np.int64).min


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
        sides = ((rows, at), (versions, found[at]))
        names = self.condition.columns
        columns = {n: flat(t, n).take(pa.array(i)) for t, i in sides for n in t.column_names if n in names}
        true = pc.fill_null(self.condition.evaluate(columns, len(at)), False).to_numpy(zero_copy_only=False)
        kept: Ints = found.copy()
        kept[at[~true]] = _NONE
        return kept


@dataclass(frozen=True)
class TemporalJoinOperator(_VersionJoin):
    """`left_time` and `right_time` are columns with event time. A delete without a time is one of the newest version.

    `HASH` has the hash of the keys in its upper half, and on the left one of all columns in the lower.
    """

    left_time: str = ""
    right_time: str = ""

    @property
    def timed(self) -> bool:
        return True

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        return (self._waiting.spec, self._due.spec, self._versions, self._superseded.spec)

    @property
    def _waiting(self) -> CountedRows:
        return CountedRows("waiting", self.left.columns)

    @property
    def _due(self) -> TimeIndex:
        """When which keys have rows that have waited long enough."""
        return TimeIndex("due", pa.schema([(KEY, pa.int64())]))

    @property
    def _keys(self) -> pa.Schema:
        return pa.schema([self.right.columns.field(name) for name in self.right.keys])

    @property
    def _versions(self) -> TableSpec:
        values = [field for field in self.right.columns if field.name not in self.right.keys]
        return TableSpec(
            "versions", pa.schema([*self._keys, (VALID_FROM, pa.int64())]), pa.schema([*values, (GONE, pa.bool_())])
        )

    @property
    def _superseded(self) -> TimeIndex:
        """When which keys may have versions that nobody asks for any more."""
        return TimeIndex("superseded", pa.schema([(KEY, pa.int64())]))

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        """1. Store new versions. 2. Take the rows of the left that are due, and let the others wait. 3. Join. 4. Remove
        versions that are superseded."""
        left, right = inputs
        if right.num_rows:
            self._add_versions(state, right)  # 1
        rows = concat([self._arrived(state, left, time), self._due_rows(state, time)])  # 2
        result = self._join(state["versions"], rows)  # 3
        self._clean(state, time)  # 4
        return result

    # versions

    def _add_versions(self, state: State, batch: pa.Table) -> None:
        rows = batch.select(self.right.columns.names).cast(widen(self.right.columns)).combine_chunks()
        kinds = flat(batch, KIND).to_numpy() if KIND in batch.column_names else np.zeros(batch.num_rows, dtype=np.int8)
        gone = kinds == DELETE
        prefixes = flat(batch, HASH).to_numpy() >> 32
        keys = key_columns(rows, self.right.keys)
        # An update-before says nothing that the version behind it does not: a version ends where the next one begins.
        wanted = without_nulls(keys, len(prefixes)) & (kinds != UPDATE_BEFORE)
        times = self._valid_from(state, batch, rows, prefixes, gone)
        wanted &= times != _NO_TIME
        at = np.flatnonzero(wanted)[_in_order(batch, wanted)]
        # The key in the upper half keeps all versions of a key together; the time in the lower one keeps them apart.
        hashes = (prefixes[at] << 32) | window_hash(times[at], times[at])
        chosen = [key.take(pa.array(at)) for key in keys]
        grouped = group_rows(hashes, [*chosen, pa.array(times[at])])
        last: Ints = np.zeros(len(grouped), dtype=np.int64)
        last[grouped.of_row] = np.arange(len(at))  # of several the last one stays
        # Two versions of one time: Flink too lets the later message take the place of the earlier one.
        at, hashes = at[last], hashes[last]
        values = [flat(rows, name).take(pa.array(at)) for name in self._versions.values.names[:-1]]
        keyed = [*(key.take(pa.array(last)) for key in chosen), pa.array(times[at])]
        none = np.zeros(len(at), dtype=np.bool_)
        state["versions"].write(hashes, keyed, [*values, pa.array(gone[at])], none)
        self._index(state, self._superseded, prefixes[at], times[at])

    def _valid_from(self, state: State, batch: pa.Table, rows: pa.Table, prefixes: Ints, gone: Bools) -> Ints:
        """The time of each version. A delete that has none has that of the newest version of its key, in this batch or
        before; there is nothing to do if there is none."""
        column = flat(rows, self.right_time).cast(pa.int64())
        times: Ints = column.fill_null(_NO_TIME).to_numpy().copy()
        # A tombstone of an upsert table has a key and no value, so it cannot have a time of its own.
        unknown = np.flatnonzero(gone & column.is_null().to_numpy(zero_copy_only=False))
        if not len(unknown):
            return times
        stored, of_stored, of_row = self._versions_of(state["versions"], rows, prefixes)
        newest: Ints = np.full(int(of_row.max(initial=-1)) + 1, _NO_TIME, dtype=np.int64)
        here = of_stored >= 0
        np.maximum.at(newest, of_stored[here], flat(stored, VALID_FROM).to_numpy()[here])
        order = _in_order(batch, np.ones(len(times), dtype=np.bool_))
        for row in order.tolist():  # such deletes are few
            if times[row] == _NO_TIME and gone[row]:
                times[row] = newest[of_row[row]]
            else:
                newest[of_row[row]] = max(newest[of_row[row]], times[row])
        return times

    def _versions_of(self, table: StateTable, rows: pa.Table, prefixes: Ints) -> tuple[pa.Table, Ints, Ints]:
        """The stored versions of the keys of these rows; the number of the key of each version, and of each row."""
        found = self._scan(table, prefixes)
        keys = [key_columns(t, self.right.keys) for t in (found, rows)]
        there = flat(found, HASH).to_numpy() >> 32
        (of_found, of_row), _ = key_ids([there, prefixes], keys)
        return found, of_found, of_row

    def _scan(self, table: StateTable, prefixes: Ints) -> pa.Table:
        batches = table.scan_prefix(distinct(prefixes))
        return pa.Table.from_batches(batches, self._versions.run_schema).combine_chunks()

    def _clean(self, state: State, time: Time) -> None:
        """Of each key whose versions the watermark has passed, keep the newest of those, unless it is a delete."""
        entries = self._superseded.due(state["superseded"], time.watermark)
        if not entries.num_rows or time.watermark is None:
            return
        self._superseded.remove(state["superseded"], entries)
        found = self._scan(state["versions"], flat(entries, KEY).to_numpy())
        passed = np.flatnonzero(flat(found, VALID_FROM).to_numpy() <= time.watermark)
        found = take_table(found, passed)
        (ids,), first = key_ids([flat(found, HASH).to_numpy() >> 32], [key_columns(found, self.right.keys)])
        times = flat(found, VALID_FROM).to_numpy()
        newest: Ints = np.full(len(first), _NO_TIME, dtype=np.int64)
        np.maximum.at(newest, ids, times)
        gone = flat(found, GONE).to_numpy(zero_copy_only=False)
        remove_rows(state["versions"], take_table(found, np.flatnonzero((times < newest[ids]) | gone)))

    # rows of the left

    def _arrived(self, state: State, batch: pa.Table, time: Time) -> pa.Table:
        """Of the rows of this batch those that are due already, as HASH and columns. The others wait."""
        columns = widen(self.left.schema)
        rows = batch.select(columns.names).cast(columns).combine_chunks()
        times = flat(rows, self.left_time).cast(pa.int64())
        known = times.is_valid().to_numpy(zero_copy_only=False)
        numbers = times.fill_null(0).to_numpy()
        due: Bools = ~known if time.watermark is None else ~known | (numbers <= time.watermark)
        later = np.flatnonzero(~due)
        if len(later):
            net = net_rows(take_table(rows, later), self.left.columns)
            self._waiting.write(state["waiting"], self._waiting.delta(state["waiting"], net))
            hashes = flat(rows, HASH).to_numpy()[later]
            self._index(state, self._due, hashes >> 32, numbers[later])
        return take_table(rows, np.flatnonzero(due))

    def _due_rows(self, state: State, time: Time) -> pa.Table:
        """Rows that have waited and are due now."""
        entries = self._due.due(state["due"], time.watermark)
        if not entries.num_rows:
            return widen(self.left.schema).empty_table()
        self._due.remove(state["due"], entries)
        rows = self._waiting.scan_keys(state["waiting"], flat(entries, KEY).to_numpy())
        times = flat(rows, self.left_time).cast(pa.int64()).to_numpy()
        rows = take_table(rows, np.flatnonzero(times <= (time.watermark or 0)))
        remove_rows(state["waiting"], rows)
        counts = flat(rows, COUNT).to_numpy()
        rows = take_table(rows, np.repeat(np.arange(rows.num_rows), counts))
        return rows.select(self.left.schema.names)

    def _join(self, table: StateTable, rows: pa.Table) -> pa.Table:
        prefixes = flat(rows, HASH).to_numpy() >> 32
        columns = key_columns(rows, self.left.keys)
        times = flat(rows, self.left_time).cast(pa.int64())
        asked = without_nulls([*columns, times], rows.num_rows)
        versions = self._scan(table, prefixes[asked])
        there = flat(versions, HASH).to_numpy() >> 32
        (of_row, of_version), _ = key_ids([prefixes, there], [columns, key_columns(versions, self.right.keys)])
        valid_from = flat(versions, VALID_FROM).to_numpy()
        found = last_not_after((of_version, valid_from), (of_row, times.fill_null(0).to_numpy()))
        found = np.where(asked, found, _NONE)
        gone = flat(versions, GONE).to_numpy(zero_copy_only=False)
        found[found >= 0] = np.where(gone[found[found >= 0]], _NONE, found[found >= 0])
        return self.joined(rows, versions, found)

    def _index(self, state: State, index: TimeIndex, prefixes: Ints, due: Ints) -> None:
        """One entry for each key and time."""
        first = group_rows(due ^ (prefixes << 32), [pa.array(prefixes), pa.array(due)]).first
        index.write(state[index.name], due[first], prefixes[first], [pa.array(prefixes[first])])


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
        return self.joined(rows, stored, np.where(hit, np.arange(rows.num_rows), _NONE))

    def _store(self, table: StateTable, batch: pa.Table) -> None:
        rows = batch.select(self.right.columns.names).cast(widen(self.right.columns)).combine_chunks()
        kinds = flat(batch, KIND).to_numpy() if KIND in batch.column_names else np.zeros(batch.num_rows, dtype=np.int8)
        keys = key_columns(rows, self.right.keys)
        wanted = without_nulls(keys, rows.num_rows) & (kinds != UPDATE_BEFORE)
        at = np.flatnonzero(wanted)[_in_order(batch, wanted)]
        hashes = flat(batch, HASH).to_numpy()[at] >> 32 << 32
        grouped = group_rows(hashes, [key.take(pa.array(at)) for key in keys])
        last: Ints = np.zeros(len(grouped), dtype=np.int64)
        last[grouped.of_row] = np.arange(len(at))
        chosen = pa.array(at[last])
        values = [flat(rows, name).take(chosen) for name in self.tables[0].values.names]
        table.write(hashes[last], [key.take(chosen) for key in keys], values, kinds[at[last]] == DELETE)


def _in_order(batch: pa.Table, wanted: Bools) -> Ints:
    """The order in which these rows came, as numbers among them: by the columns that say so, if there are any, then as
    they stand. What replaces a row comes after what removes it."""
    at = np.flatnonzero(wanted)
    names = [name for name in (ORDER, PARTITION, OFFSET, POSITION) if name in batch.column_names]
    columns = [flat(batch, name).to_numpy(zero_copy_only=False)[at] for name in names]
    gone = np.zeros(len(at), dtype=np.int64)
    if not names and KIND in batch.column_names:
        gone = -(flat(batch, KIND).to_numpy()[at] == DELETE).astype(np.int64)
    order: Ints = np.lexsort([np.arange(len(at)), gone, *reversed(columns)])
    return order
