"""GROUP BY windows of event time: TUMBLE, HOP, CUMULATE, or windows that the rows bring along.

The accumulators of a window are those of an `AggregateOperator` whose groups are the keys and the window. Beside it,
`results` holds the result of every open window by the time at which it closes: when the watermark passes, the windows
to emit are a range of it. A result is emitted once, as an insert, however often it changed before; then all state of
the window is removed, and rows that come for it later are late.

With `early`, changes of open windows are emitted at once, as updates. With `lateness`, a window that has closed stays
for so long, and late rows update its result. What is not removed as it closes stands in `expiry`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from headwater.changelog.aggregate import ROWS, AggregateOperator
from headwater.changelog.columns import Bools, Ints, concat, flat, widen
from headwater.changelog.counted_rows import distinct, remove_rows
from headwater.changelog.grouping import group_rows
from headwater.changelog.identity import take_table
from headwater.changelog.kinds import DELETE, HASH, INSERT, KIND, KIND_TYPE, UPDATE_BEFORE
from headwater.changelog.operator import LateRows, State, Time
from headwater.changelog.pairing import key_ids
from headwater.changelog.timers import DUE, TimeIndex
from headwater.changelog.window_assigners import TICK, Assigner, from_local, to_local, watermarks_of, window_hash
from headwater.state.table import StateTable, TableSpec

__all__ = ["KEY", "WindowAggregateOperator", "in_window", "replaced"]

KEY = "__hw_key"
"""The upper half of the keys' hash, beside the keys of each group: it is needed again when a window closes."""
_VALUE_BITS = 20
"""Remembered values of a group lie together by window: the other 12 bits of the lower half of their hash are its."""


@dataclass(frozen=True)
class WindowAggregateOperator:
    """`aggregate` has the keys as its groups, and its input columns are those here: HASH is that of the keys. `start`
    and `end` are the names of the window's bounds in the output.

    `assigner` finds the windows of the column `time`; without one, rows have the columns `start` and `end`. In a time
    `zone` times are instants and windows are those of the local clock; `local`: the column `time` is what that clock
    shows, too. `own_watermark` is a column with the watermark
    of the partition that a row came from, before the row: what was late there is late, however batches are cut.
    """

    aggregate: AggregateOperator
    assigner: Assigner | None
    time: str
    start: str = "window_start"
    end: str = "window_end"
    zone: str = ""
    local: bool = False
    early: bool = False
    lateness: int = 0
    own_watermark: str = ""

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        (columns,) = self.aggregate.inputs
        time = pa.field(self.time, pa.timestamp("us", "UTC" if self.zone and not self.local else None))
        windows = [time] if self.assigner else [pa.field(n, pa.timestamp("us")) for n in (self.start, self.end)]
        own = [pa.field(self.own_watermark, pa.timestamp("us"))] if self.own_watermark else []
        return (pa.schema([*columns, *windows, *own]),)

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        results = () if self.early else (self._results.spec,)
        return (*self._by_window.tables, *results, self._expiry.spec)

    @property
    def output(self) -> pa.Schema:
        return pa.schema([field for field in self._by_window.output if field.name != KEY])

    @property
    def timed(self) -> bool:
        return True

    @property
    def _by_window(self) -> AggregateOperator:
        """The same aggregates by key and window."""
        windows = [(name, pa.timestamp("us")) for name in (self.start, self.end)]
        groups = pa.schema([(KEY, pa.int64()), *self.aggregate.groups, *windows])
        multisets = tuple(replace(m, groups=groups) for m in self.aggregate.multisets)
        # A result that is emitted once, when its window closes, has no earlier version that somebody would have to
        # retract.
        before = self.aggregate.before and (self.early or self.lateness > 0)
        return replace(self.aggregate, groups=groups, multisets=multisets, before=before)

    @property
    def _results(self) -> TimeIndex:
        inner = self._by_window
        return TimeIndex("results", inner.groups, pa.schema([(r.name, r.type) for r in inner.results]))

    @property
    def _expiry(self) -> TimeIndex:
        return TimeIndex("expiry", self._by_window.groups)

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        return self.step_with_late(state, inputs, time)[0]

    def step_with_late(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> tuple[pa.Table, LateRows]:
        """1. Assign rows to windows and drop what is late. 2. Aggregate. 3. Emit changes of windows that are shown
        already, and remember the results of the others. 4. Emit those that close. 5. Remove expired state."""
        rows, late = self._windowed(inputs[0], time)  # 1
        parts = [widen(self.output).empty_table()]
        if rows.num_rows:
            self._expect(state, rows)
            changes = self._by_window.step(state, (rows,), time)  # 2
            parts.append(self._shown(state, changes, time))  # 3
        if not self.early:
            parts.append(self._close(state, time))  # 4
        self._expire(state, self._expiry.take(state["expiry"], time.watermark))  # 5
        return concat([part.select(self.output.names) for part in parts]), (late,)

    def _windowed(self, batch: pa.Table, time: Time) -> tuple[pa.Table, pa.Table]:
        """One row per row and window, with hashes of both; and the rows that have no window any more."""
        row, starts, ends = self._assigned(batch)
        # Judged by the watermark before each row in its own partition, not by that of the batch: otherwise it would
        # depend on how batches are cut whether a row is late.
        kept = self._closes(ends) + self.lateness > watermarks_of(batch, self.own_watermark, time)[row]
        row, starts, ends = row[kept], starts[kept], ends[kept]
        unused = [n for n in (self.time, self.start, self.end, self.own_watermark) if n in batch.column_names]
        rows = take_table(batch.drop_columns(unused), row)
        # A row is there once per window by now: the hash of key and window keeps the windows of a key in one state
        # partition, next to each other.
        keys, window = flat(rows, HASH).to_numpy() >> 32, window_hash(starts, ends)
        rows = replaced(rows, HASH, pa.array((keys << 32) | window)).append_column(KEY, pa.array(keys))
        for multiset in self.aggregate.multisets:
            rows = replaced(rows, multiset.hash_, in_window(flat(rows, multiset.hash_), window))
        for name, bound in ((self.start, starts), (self.end, ends)):
            rows = rows.append_column(name, pa.array(bound, pa.timestamp("us")))
        late = np.ones(batch.num_rows, dtype=np.bool_)
        late[row] = False
        return rows, take_table(batch, np.flatnonzero(late))

    def _assigned(self, batch: pa.Table) -> tuple[Ints, Ints, Ints]:
        """Row numbers with start and end of their windows. Without a time there is no window."""
        if self.assigner is None:
            starts, ends = (flat(batch, name).cast(pa.int64()) for name in (self.start, self.end))
            rows = np.flatnonzero(ends.is_valid().to_numpy(zero_copy_only=False))
            return rows, _ints(starts, rows), _ints(ends, rows)
        times = flat(batch, self.time).cast(pa.int64())
        rows = np.flatnonzero(times.is_valid().to_numpy(zero_copy_only=False))
        numbers = _ints(times, rows)
        shown = to_local(numbers, self.zone) if self.zone and not self.local else numbers
        assigned = self.assigner.assign(shown)
        return rows[assigned.rows], assigned.starts, assigned.ends

    def _closes(self, ends: Ints) -> Ints:
        """The watermark that closes a window with this end."""
        return from_local(ends - TICK, self.zone) if self.zone else ends - TICK

    def _expect(self, state: State, rows: pa.Table) -> None:
        """Rows may be retracted that never came: their windows have no result that closes, but state to remove."""
        if ROWS in self.aggregate.ones:
            return
        rows = take_table(rows, np.flatnonzero(flat(rows, ROWS).to_numpy() < 0))
        first = group_rows(flat(rows, HASH).to_numpy(), [flat(rows, n) for n in self._expiry.keys.names]).first
        rows = take_table(rows, first)
        none = np.zeros(rows.num_rows, dtype=np.bool_)
        self._write(state, self._expiry, rows, self._due(rows) + self.lateness, none)

    def _shown(self, state: State, changes: pa.Table, time: Time) -> pa.Table:
        """The changes of windows whose result is out already. Those of the others are kept until they close."""
        due = self._due(changes)
        shown: Bools = np.full(changes.num_rows, self.early)
        # The watermark before the batch decides: a window that closes with this very batch is emitted once, by
        # `_close`, with all rows of the batch in it.
        if not self.early and time.watermark_before is not None:
            shown = due <= time.watermark_before
        if not shown.all():
            at = np.flatnonzero(~shown & (flat(changes, KIND).to_numpy() != UPDATE_BEFORE))
            kept = take_table(changes, at)
            self._write(state, self._results, kept, due[at], flat(kept, KIND).to_numpy() == DELETE)
        changes = take_table(changes, np.flatnonzero(shown))
        if changes.num_rows:
            # A window that was changed after it closed is kept for another while: more late rows may come until the
            # lateness is over.
            touched = take_table(changes, np.flatnonzero(flat(changes, KIND).to_numpy() != UPDATE_BEFORE))
            none = np.zeros(touched.num_rows, dtype=np.bool_)
            self._write(state, self._expiry, touched, self._due(touched) + self.lateness, none)
        return changes

    def _close(self, state: State, time: Time) -> pa.Table:
        """The results of the windows that the watermark closes. Their state is removed, at once or later."""
        entries = self._results.take(state["results"], time.watermark)
        if self.lateness:
            due = flat(entries, DUE).to_numpy() + self.lateness
            self._write(state, self._expiry, entries, due, np.zeros(len(due), dtype=np.bool_))
        else:
            self._expire(state, entries)
        kind = pa.repeat(pa.scalar(INSERT, KIND_TYPE), entries.num_rows)
        return entries.append_column(pa.field(KIND, KIND_TYPE), kind)

    def _due(self, rows: pa.Table) -> Ints:
        return self._closes(flat(rows, self.end).cast(pa.int64()).to_numpy())

    def _write(self, state: State, index: TimeIndex, rows: pa.Table, due: Ints, gone: Bools) -> None:
        keys, values = ([flat(rows, name) for name in names] for names in (index.keys.names, index.values.names))
        index.write(state[index.name], due, flat(rows, KEY).to_numpy(), keys, values, gone)

    def _expire(self, state: State, entries: pa.Table) -> None:
        """Remove all state of these windows."""
        if not entries.num_rows:
            return
        starts, ends = (flat(entries, name).cast(pa.int64()).to_numpy() for name in (self.start, self.end))
        hashes = (flat(entries, KEY).to_numpy() << 32) | window_hash(starts, ends)
        inner = self._by_window
        keys = [flat(entries, name) for name in inner.groups.names]
        spec = state["groups"].spec
        nothing = [pa.nulls(len(hashes), field.type) for field in widen(spec.values)]
        state["groups"].write(hashes, keys, nothing, np.ones(len(hashes), dtype=np.bool_))
        for multiset in inner.multisets:
            _remove_values(state[multiset.name], hashes, keys)


def _remove_values(table: StateTable, hashes: Ints, keys: list[pa.Array]) -> None:
    """Remove all values of these groups, which lie together by key and window."""
    # Only some bits of the window fit into the hash of a value, so a range may hold values of other windows: keys
    # decide below.
    low = distinct((hashes >> 32 << 32) | _window_bits(hashes))
    found = pa.Table.from_batches(table.scan_range(low, low + (1 << _VALUE_BITS) - 1), table.spec.run_schema)
    found = found.combine_chunks()
    names = table.spec.keys.names
    theirs = [flat(found, name) for name in names[: len(keys)]]
    prefixes = flat(found, HASH).to_numpy() >> 32
    (mine, there), _ = key_ids([hashes >> 32, prefixes], [keys, theirs])
    remove_rows(table, take_table(found, np.flatnonzero(np.isin(there, mine))))


def in_window(hashes: pa.Array, window: Ints) -> pa.Array:
    """Hashes of values, or lists of them, that lie together by window."""
    if not pa.types.is_list(hashes.type):
        values = hashes.fill_null(0).to_numpy()
        return pa.array((values >> 32 << 32) | _window_bits(window) | (values & ((1 << _VALUE_BITS) - 1)))
    sizes = hashes.value_lengths().fill_null(0).to_numpy()
    flattened = in_window(hashes.flatten(), np.repeat(window, sizes))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), flattened)


def _window_bits(window: Ints) -> Ints:
    return np.asarray(window & 0xFFF) << _VALUE_BITS


def replaced(rows: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, column)


def _ints(column: pa.Array, rows: Ints) -> Ints:
    return np.asarray(column.take(pa.array(rows)).to_numpy())
