"""OVER of inserts in the order of time: a row waits until the watermark has passed its time, because only then all rows
before it are known; by processing time it does not wait. Its result is emitted once.

Kept are the rows that are still in the frame of a later one, and for frames without a beginning the accumulators alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.changelog.accumulate import Accumulator, Kept, to_store
from headwater.changelog.columns import Bools, Ints, concat, constant, flat, widen
from headwater.changelog.counted_rows import COUNT, CountedRows, net_rows, remove_rows
from headwater.changelog.frames import Places, framed
from headwater.changelog.identity import take_table
from headwater.changelog.kinds import HASH, INSERT, KIND, KIND_TYPE
from headwater.changelog.operator import LateRows, State, Time
from headwater.changelog.ordered_values import ARRIVAL, places_in_groups
from headwater.changelog.ordering import SortKey, order_rows
from headwater.changelog.over import ROWS, FrameCall, OverOperator, argument_values
from headwater.changelog.pairing import key_ids, owners
from headwater.changelog.timers import TimeIndex
from headwater.changelog.waiting_rows import WaitingRows
from headwater.changelog.window_assigners import watermarks_of
from headwater.state.table import StateTable, TableSpec

__all__ = ["OverTimeOperator"]

KEY, SEQUENCE = "__hw_key", "__hw_sequence"


@dataclass(frozen=True)
class OverTimeOperator(OverOperator):
    """Over inserts in the order of the column `time`. Without `waits`, rows are taken as they come. `own_watermark` is
    a column with the watermark of the partition that a row came from, before the row: what was late there is late,
    however batches are cut."""

    time: str = ""
    waits: bool = True
    own_watermark: str = ""

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        arrival = [] if self.waits else [(ARRIVAL, pa.int64())]
        own = [(self.own_watermark, pa.timestamp("us"))] if self.own_watermark else []
        return (pa.schema([(HASH, pa.int64()), *self.columns, *arrival, *own]),)

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        waiting = (self._waiting.spec,) if self.waits else ()
        history = (self._history.spec, self._expiry.spec) if self._looks_back else ()
        return (*waiting, *history, self._carry)

    @property
    def output(self) -> pa.Schema:
        return pa.schema([*self.results, pa.field(KIND, KIND_TYPE)])

    @property
    def timed(self) -> bool:
        return self.waits

    # state

    @property
    def _waiting(self) -> WaitingRows:
        return WaitingRows("waiting", self.columns)

    @property
    def _history(self) -> CountedRows:
        """Rows that later frames reach back to."""
        return CountedRows("history", pa.schema([*self.columns, (SEQUENCE, pa.int64())]))

    @property
    def _expiry(self) -> TimeIndex:
        return TimeIndex("expiry", pa.schema([(KEY, pa.int64())]))

    @property
    def _carry(self) -> TableSpec:
        """Of each partition, how many rows it had, and the accumulators of frames without a beginning."""
        keys = pa.schema([self.columns.field(name) for name in self.partition])
        values = [(a.name, a.stored_type) for a in self._carried]
        return TableSpec("carry", keys, pa.schema(values))

    @property
    def _carried(self) -> tuple[Accumulator, ...]:
        calls = [a for call in self.calls if call.unbounded for a in call.accumulators(self.columns)]
        return Accumulator(ROWS, pa.int64(), "sum"), *calls

    @property
    def _most_rows(self) -> int:
        """How many rows back a frame reaches."""
        frames = [c.frame.preceding or 0 for c in self.calls if c.accumulates and c.frame.kind == "rows"]
        return max([0, *frames, *(c.offset for c in self.calls if c.function == "LAG")])

    @property
    def _most_time(self) -> int:
        frames = [c.frame.preceding or 0 for c in self.calls if c.accumulates and c.frame.kind == "range"]
        return max([0, *frames])

    @property
    def _looks_back(self) -> bool:
        return self._most_rows > 0 or self._most_time > 0

    # the step

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        return self.step_with_late(state, inputs, time)[0]

    def step_with_late(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> tuple[pa.Table, LateRows]:
        """1. Take the rows that are due, and let the others wait. 2. Compute their results. 3. Remove rows that no
        frame reaches back to. A row whose time had passed before it came is late."""
        rows, late = self._taken(state, inputs[0], time)  # 1
        result = self._results(state, rows, time) if rows.num_rows else widen(self.output).empty_table()  # 2
        if self._looks_back and self.waits:
            self._expire(state, time)  # 3
        return result, (late,)

    def _taken(self, state: State, batch: pa.Table, time: Time) -> tuple[pa.Table, pa.Table]:
        """HASH, columns and SEQUENCE of the rows that are due; and late rows."""
        if not self.waits:
            schema = widen(pa.schema([(HASH, pa.int64()), *self.columns]))
            came = flat(batch, ARRIVAL) if ARRIVAL in batch.column_names else pa.array(np.arange(batch.num_rows))
            rows = batch.select(schema.names).cast(schema).append_column(SEQUENCE, came)
            return rows.combine_chunks(), rows.slice(0, 0)
        column = flat(batch, self.time).cast(pa.int64())
        times = column.fill_null(0).to_numpy()
        late = column.is_null().to_numpy(zero_copy_only=False)
        # By the watermark before the row: one whose time it had passed came behind results that may be out already, and
        # cannot be put in between.
        late |= times <= watermarks_of(batch, self.own_watermark, time)
        on_time = np.flatnonzero(~late)
        # Rows of this batch and rows that have waited are computed together, in one order: it must not matter which
        # batch a row came with.
        taken = self._waiting.due(state["waiting"], take_table(batch, on_time), times[on_time], time)
        sequence = constant(0, taken.num_rows, pa.int64())
        return taken.append_column(SEQUENCE, sequence), take_table(batch, np.flatnonzero(late))

    def _results(self, state: State, rows: pa.Table, time: Time) -> pa.Table:
        prefixes = flat(rows, HASH).to_numpy() >> 32
        (ids,), first = key_ids([prefixes], [[flat(rows, name) for name in self.partition]])
        keys = take_table(rows.select([HASH, *self.partition]), first)
        carry = self._lookup(state["carry"], keys)
        rows = self._sequenced(rows, ids, carry)
        together, of_row, old = self._with_history(state, rows, ids, keys)
        at = np.flatnonzero(~old)
        places = Places(of_row, self._times(together))
        new = Places(of_row[at], places.orders[at])
        due = take_table(together, at)
        columns = [self._computed(call, (together, places), (due, new), at, carry) for call in self.calls]
        self._store_carry(state["carry"], keys, due, new.partitions, carry)
        if self._looks_back:
            self._store_history(state, together, of_row, old, time)
        schema = widen(self.output)
        answers = [*(flat(due, name) for name in self.columns.names), *columns, constant(INSERT, len(at), KIND_TYPE)]
        return pa.table([a.cast(f.type) for a, f in zip(answers, schema, strict=True)], schema=schema)

    def _computed(
        self,
        call: FrameCall,
        everything: tuple[pa.Table, Places],
        due: tuple[pa.Table, Places],
        at: Ints,
        carry: dict[str, Kept],
    ) -> pa.Array:
        """Frames without a beginning go on from what is carried; the others look back at rows."""
        # A frame with a beginning needs the rows it reaches back to, because a sum cannot forget its oldest value; one
        # without goes on from its accumulator, and rows need not be kept.
        if not call.unbounded:
            return self.called(call, *everything, {}).take(pa.array(at))
        names = [ROWS, *(a.name for a in call.accumulators(self.columns))]
        return self.called(call, *due, {name: _taken_kept(carry[name], due[1].partitions) for name in names})

    def _sequenced(self, rows: pa.Table, ids: Ints, carry: dict[str, Kept]) -> pa.Table:
        """By processing time, rows are numbered through in each partition."""
        if self.waits:
            return rows
        order = np.lexsort([flat(rows, SEQUENCE).to_numpy(), ids])
        numbers: Ints = np.empty(len(ids), dtype=np.int64)
        numbers[order] = places_in_groups(ids[order])
        # Continued from batch to batch: the number is the order in which later frames see the row.
        numbers += carry[ROWS].fill_null(0).to_numpy()[ids]
        return rows.set_column(rows.schema.get_field_index(SEQUENCE), SEQUENCE, pa.array(numbers))

    def _with_history(self, state: State, rows: pa.Table, ids: Ints, keys: pa.Table) -> tuple[pa.Table, Ints, Bools]:
        """These rows and those that their frames reach back to, sorted by partition, time, arrival and columns; the
        number of each one's partition, and whether it is one of the latter."""
        old: Bools = np.zeros(len(ids), dtype=np.bool_)
        if self._looks_back:
            prefixes = flat(keys, HASH).to_numpy() >> 32
            stored = self._history.scan_keys(state["history"], prefixes)
            of_stored = self._owners(keys, stored)
            remembered = np.flatnonzero(of_stored >= 0)
            at = np.repeat(remembered, flat(stored, COUNT).to_numpy()[remembered])
            rows = concat([rows, take_table(stored, at).select(rows.column_names)])
            ids, old = np.concatenate([ids, of_stored[at]]), np.concatenate([old, np.ones(len(at), dtype=np.bool_)])
        by = (SortKey(self.time), SortKey(SEQUENCE))
        # Of equal rows the old ones come first: their results are out, and must not be computed again with the new rows
        # in front.
        order = order_rows(rows.select([*self.columns.names, SEQUENCE]), ids, by, [(~old).astype(np.int64)]).order
        return take_table(rows, order), ids[order], old[order]

    def _owners(self, keys: pa.Table, rows: pa.Table) -> Ints:
        columns = [[flat(t, name) for name in self.partition] for t in (keys, rows)]
        prefixes = [flat(t, HASH).to_numpy() >> 32 for t in (keys, rows)]
        return owners(prefixes[0], columns[0], prefixes[1], columns[1])

    def _lookup(self, table: StateTable, keys: pa.Table) -> dict[str, Kept]:
        columns = [flat(keys, name) for name in self.partition]
        found = table.lookup(flat(keys, HASH).to_numpy() >> 32 << 32, columns)
        return {a.name: a.load(flat(found.values, a.name)) for a in self._carried}

    def _store_carry(self, table: StateTable, keys: pa.Table, due: pa.Table, ids: Ints, carry: dict[str, Kept]) -> None:
        count = keys.num_rows
        first, last = np.searchsorted(ids, np.arange(count), "left"), np.searchsorted(ids, np.arange(count), "right")
        new = {ROWS: pa.array(carry[ROWS].fill_null(0).to_numpy() + (last - first))}
        for call in (c for c in self.calls if c.unbounded):
            for a in call.accumulators(self.columns):
                new[a.name] = a.add(carry[a.name], framed(a, argument_values(a, call, due), first, last))
        hashes = flat(keys, HASH).to_numpy() >> 32 << 32
        values = [to_store(new[a.name]) for a in self._carried]
        none = np.zeros(count, dtype=np.bool_)
        table.write(hashes, [flat(keys, name) for name in self.partition], values, none)

    def _store_history(self, state: State, rows: pa.Table, ids: Ints, old: Bools, time: Time) -> None:
        """Keep the last rows of each partition, and those that are recent enough."""
        times = self._times(rows)
        from_end = np.searchsorted(ids, ids, "right") - np.arange(len(ids))
        newest = times[np.searchsorted(ids, ids, "right") - 1]
        kept: Bools = from_end <= self._most_rows
        if self._most_time and self.waits:  # what is to come is later than the watermark
            kept |= times + self._most_time > (newest if time.watermark is None else np.maximum(newest, time.watermark))
        elif self._most_time:
            kept |= times + self._most_time >= newest
        table, columns = state["history"], self._history.columns
        changed = np.flatnonzero(old != kept)
        kinds = pa.array(np.where(old[changed], 3, 0).astype(np.int8), KIND_TYPE)
        moved = take_table(rows.select([HASH, *columns.names]), changed).append_column(KIND, kinds)
        self._history.write(table, self._history.delta(table, net_rows(moved, columns)))
        fresh = np.flatnonzero(kept & ~old)
        if self._most_time and len(fresh):
            prefixes = flat(rows, HASH).to_numpy()[fresh] >> 32
            self._expiry.note(state["expiry"], prefixes, times[fresh] + self._most_time)

    def _expire(self, state: State, time: Time) -> None:
        """Remove rows that are too old, but for the last ones of a partition if frames count rows."""
        entries = self._expiry.take(state["expiry"], time.watermark)
        if not entries.num_rows or time.watermark is None:
            return
        rows = self._history.scan_keys(state["history"], flat(entries, KEY).to_numpy())
        prefixes = flat(rows, HASH).to_numpy() >> 32
        (ids,), _ = key_ids([prefixes], [[flat(rows, name) for name in self.partition]])
        by = (SortKey(self.time), SortKey(SEQUENCE))
        order = order_rows(rows.select([*self.columns.names, SEQUENCE]), ids, by).order
        rows, ids = take_table(rows, order), ids[order]
        from_end = np.searchsorted(ids, ids, "right") - np.arange(len(ids))
        gone = (self._times(rows) + self._most_time <= time.watermark) & (from_end > self._most_rows)
        remove_rows(state["history"], take_table(rows, np.flatnonzero(gone)))

    def _times(self, rows: pa.Table) -> Ints:
        times: Ints = flat(rows, self.time).cast(pa.int64()).to_numpy()
        return times


def _taken_kept(kept: Kept, at: Ints) -> Kept:
    """Accumulators of partitions, for each of their rows."""
    return kept.take(at) if hasattr(kept, "limbs") else kept.take(pa.array(at))
