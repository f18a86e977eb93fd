"""The versions that rows of a table have had, by key and time, as far as anybody may still ask for them.

A version is valid from its time on, up to the next one; a delete is a version that ends the one before it. One that
comes behind the watermark of its own partition is seen only by those who ask for a later time than that watermark: who
asked for an earlier one may have had the answer already, or not, depending on other partitions and on how batches are
cut. Among what is seen, the version with the latest time counts, and of those with the same time the last that came.
A delete ends all versions that came before it and are not later than it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.changelog.arrival import in_order_of_arrival
from headwater.changelog.columns import Bools, Ints, flat, widen
from headwater.changelog.counted_rows import distinct, remove_rows
from headwater.changelog.grouping import group_rows
from headwater.changelog.identity import take_table
from headwater.changelog.join import JoinInput
from headwater.changelog.kinds import DELETE, HASH, KIND, UPDATE_BEFORE
from headwater.changelog.operator import State, Time
from headwater.changelog.pairing import key_columns, key_ids, last_not_after, without_nulls
from headwater.changelog.timers import TimeIndex
from headwater.changelog.window_assigners import window_hash
from headwater.state.table import StateTable, TableSpec

__all__ = ["NONE", "Versions"]

KEY, VALID_FROM, SEEN_FROM, GONE, CAME = "__hw_key", "__hw_valid_from", "__hw_seen_from", "__hw_gone", "__hw_came"
NONE = -1
_NO_TIME = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Versions:
    """Of `input`, whose keys identify its rows. `time` is the column from which on a version is valid."""

    input: JoinInput
    time: str

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        return (self._spec, self._superseded.spec)

    @property
    def _spec(self) -> TableSpec:
        keys = [self.input.columns.field(name) for name in self.input.keys]
        values = [field for field in self.input.columns if field.name not in self.input.keys]
        return TableSpec(
            "versions",
            pa.schema([*keys, (VALID_FROM, pa.int64()), (SEEN_FROM, pa.int64())]),
            pa.schema([*values, (GONE, pa.bool_()), (CAME, pa.int64())]),
        )

    @property
    def _superseded(self) -> TimeIndex:
        """When which keys may have versions that nobody asks for any more."""
        return TimeIndex("superseded", pa.schema([(KEY, pa.int64())]))

    def add(self, state: State, batch: pa.Table, time: Time) -> None:
        rows = batch.select(self.input.columns.names).cast(widen(self.input.columns)).combine_chunks()
        kinds = flat(batch, KIND).to_numpy() if KIND in batch.column_names else np.zeros(batch.num_rows, dtype=np.int8)
        prefixes, keys = flat(batch, HASH).to_numpy() >> 32, key_columns(rows, self.input.keys)
        order = in_order_of_arrival(batch, group_rows(prefixes << 32, keys).of_row)
        gone = kinds == DELETE
        times = self._valid_from(state["versions"], rows, prefixes, order, gone)
        # An update-before says nothing that the version behind it does not: a version ends where the next one begins.
        wanted = without_nulls(keys, len(prefixes)) & (kinds != UPDATE_BEFORE) & (times != _NO_TIME)
        at = order[wanted[order]]
        passed = self.input.watermarks(batch, time)
        seen = np.where(times > passed, times, passed + 1)
        # The key in the upper half keeps all versions of a key together; the times in the lower one keep them apart.
        hashes = (prefixes[at] << 32) | window_hash(times[at], seen[at])
        chosen = [key.take(pa.array(at)) for key in keys]
        grouped = group_rows(hashes, [*chosen, pa.array(times[at]), pa.array(seen[at])])
        last: Ints = np.zeros(len(grouped), dtype=np.int64)
        # Two versions of one time: Flink too lets the later message take the place of the earlier one.
        last[grouped.of_row] = np.arange(len(at))
        came = (time.batch << 32) + last
        at, hashes = at[last], hashes[last]
        values = [flat(rows, name).take(pa.array(at)) for name in self._spec.values.names[:-2]]
        keyed = [*(key.take(pa.array(last)) for key in chosen), pa.array(times[at]), pa.array(seen[at])]
        none = np.zeros(len(at), dtype=np.bool_)
        state["versions"].write(hashes, keyed, [*values, pa.array(gone[at]), pa.array(came)], none)
        self._superseded.note(state["superseded"], prefixes[at], seen[at])

    def _valid_from(self, table: StateTable, rows: pa.Table, prefixes: Ints, order: Ints, gone: Bools) -> Ints:
        """The time of each version. A delete that has none has that of the newest version of its key, in this batch or
        before; there is nothing to do if there is none."""
        column = flat(rows, self.time).cast(pa.int64())
        times: Ints = column.fill_null(_NO_TIME).to_numpy().copy()
        # A tombstone of an upsert table has a key and no value, so it cannot have a time of its own.
        if not (gone & column.is_null().to_numpy(zero_copy_only=False)).any():
            return times
        stored = self._scan(table, prefixes)
        keys = [key_columns(t, self.input.keys) for t in (stored, rows)]
        (of_stored, of_row), first = key_ids([flat(stored, HASH).to_numpy() >> 32, prefixes], keys)
        newest: Ints = np.full(len(first), _NO_TIME, dtype=np.int64)
        np.maximum.at(newest, of_stored, flat(stored, VALID_FROM).to_numpy())
        for row in order.tolist():  # such deletes are few
            if times[row] == _NO_TIME and gone[row]:
                times[row] = newest[of_row[row]]
            else:
                newest[of_row[row]] = max(newest[of_row[row]], times[row])
        return times

    def _scan(self, table: StateTable, prefixes: Ints) -> pa.Table:
        """In the order in which those of a key are seen."""
        batches = table.scan_prefix(distinct(prefixes))
        found = pa.Table.from_batches(batches, self._spec.run_schema).combine_chunks()
        return take_table(found, np.lexsort([flat(found, CAME).to_numpy(), flat(found, SEEN_FROM).to_numpy()]))

    def as_of(self, table: StateTable, prefixes: Ints, keys: list[pa.Array], times: pa.Array) -> tuple[pa.Table, Ints]:
        """Versions; and for each of these keys and times, unless one is NULL, the one that was valid then, or NONE."""
        asked = without_nulls([*keys, times], len(prefixes))
        found = self._scan(table, prefixes[asked])
        there = flat(found, HASH).to_numpy() >> 32
        (of_row, of_version), _ = key_ids([prefixes, there], [keys, key_columns(found, self.input.keys)])
        seen = flat(found, SEEN_FROM).to_numpy()
        last = last_not_after((of_version, seen), (of_row, times.fill_null(0).to_numpy()))
        known = asked & (last >= 0)
        answers: Ints = np.full(len(prefixes), NONE, dtype=np.int64)
        answers[known] = _in_force(found, of_version)[last[known]]
        return found, answers

    def clean(self, state: State, time: Time) -> None:
        """Of each key whose versions the watermark has passed, keep the one that is in force. A delete need not be
        kept: without any version there is none to join with, which is the same."""
        entries = self._superseded.take(state["superseded"], time.watermark)
        if not entries.num_rows or time.watermark is None:
            return
        found = self._scan(state["versions"], flat(entries, KEY).to_numpy())
        # Whatever comes now is seen later than the watermark, so it is not ended by a delete that is removed here.
        found = take_table(found, np.flatnonzero(flat(found, SEEN_FROM).to_numpy() <= time.watermark))
        (ids,), first = key_ids([flat(found, HASH).to_numpy() >> 32], [key_columns(found, self.input.keys)])
        last: Ints = np.zeros(len(first), dtype=np.int64)
        last[ids] = np.arange(len(ids))
        kept = _in_force(found, ids)[last]
        removed: Bools = np.ones(len(ids), dtype=np.bool_)
        removed[kept[kept != NONE]] = False
        remove_rows(state["versions"], take_table(found, np.flatnonzero(removed)))


def _in_force(versions: pa.Table, ids: Ints) -> Ints:
    """For each version, in the order in which those of a key are seen, the one that counts from then on, or NONE."""
    gone = flat(versions, GONE).to_numpy(zero_copy_only=False)
    times = flat(versions, VALID_FROM).to_numpy()
    answers: Ints = np.where(gone, NONE, np.arange(len(ids)))
    order = np.argsort(ids, kind="stable")
    older = (np.diff(ids[order]) == 0) & (np.diff(times[order]) < 0)
    # Where each version is later than those before it, it takes their place. Others have come late, and are few.
    disordered = np.isin(ids, ids[order][1:][older])
    seen: dict[int, list[int]] = {}
    for version in np.flatnonzero(disordered).tolist():
        before = seen.get(int(ids[version]), [])
        # Latest time first: what is not later than a new version never counts again, deleted or not.
        alive = [v for v in before if times[v] > times[version]] + [version]
        seen[int(ids[version])] = alive
        answers[version] = next((v for v in alive if not gone[v]), NONE)
    return answers
