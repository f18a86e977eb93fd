"""GROUP BY sessions of event time: rows of a key that are not more than a gap apart.

Sessions grow, merge and, where rows are retracted, shrink and split. So the accumulators are kept for each instant of a
key, by an `AggregateOperator` whose groups are the keys and the time. Which instants there are makes the `sessions`.
When the watermark closes one, which `closing` knows by time, the accumulators of its instants are combined, the result
is emitted, once, and all its state is removed.

An instant that appears is merged into the sessions of its key. Where one disappears, the instants of the key that are
left are read again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from headwater.changelog.aggregate import ROWS, AggregateOperator
from headwater.changelog.columns import Bools, Ints, constant, flat, widen
from headwater.changelog.combined_groups import Numbered, combined_results
from headwater.changelog.counted_rows import distinct, remove_rows
from headwater.changelog.grouping import group_rows
from headwater.changelog.identity import take_table
from headwater.changelog.kinds import DELETE, HASH, INSERT, KIND, KIND_TYPE
from headwater.changelog.operator import LateRows, State, Time
from headwater.changelog.pairing import key_ids, last_not_after, owners
from headwater.changelog.timers import DUE, TimeIndex
from headwater.changelog.window import KEY, in_window, replaced
from headwater.changelog.window_assigners import TICK, Intervals, to_local, watermarks_of, window_hash
from headwater.state.table import StateTable, TableSpec

__all__ = ["SessionAggregate"]

TIME, START, LAST = "__hw_time", "__hw_start", "__hw_last"


@dataclass(frozen=True)
class SessionAggregate:
    """As `WindowAggregateOperator`; a session ends `gap` after its last row."""

    aggregate: AggregateOperator
    gap: int
    time: str
    start: str = "window_start"
    end: str = "window_end"
    zone: str = ""
    own_watermark: str = ""

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        own = [pa.field(self.own_watermark, pa.timestamp("us"))] if self.own_watermark else []
        time = pa.field(self.time, pa.timestamp("us", "UTC" if self.zone else None))
        return (pa.schema([*self.aggregate.inputs[0], time, *own]),)

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        sessions = TableSpec("sessions", self._session, pa.schema([(LAST, pa.int64())]))
        return (*self._by_instant.tables, sessions, self._closing.spec, self._expiry.spec)

    @property
    def output(self) -> pa.Schema:
        windows = [(name, pa.timestamp("us")) for name in (self.start, self.end)]
        results = [(r.name, r.type) for r in self.aggregate.results]
        return pa.schema([*self.aggregate.groups, *windows, *results, (KIND, KIND_TYPE)])

    @property
    def timed(self) -> bool:
        return True

    @property
    def _keys(self) -> pa.Schema:
        return pa.schema([(KEY, pa.int64()), *self.aggregate.groups])

    @property
    def _session(self) -> pa.Schema:
        return pa.schema([*self._keys, (START, pa.int64())])

    @property
    def _closing(self) -> TimeIndex:
        return TimeIndex("closing", self._session)

    @property
    def _expiry(self) -> TimeIndex:
        return TimeIndex("expiry", self._keys)

    @property
    def _by_instant(self) -> AggregateOperator:
        groups = pa.schema([*self._keys, (TIME, pa.int64())])
        multisets = tuple(replace(m, groups=groups) for m in self.aggregate.multisets)
        # Nobody sees the results of an instant, and functions of the user's need not have any.
        return replace(self.aggregate, groups=groups, multisets=multisets, results=(), before=False)

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        return self.step_with_late(state, inputs, time)[0]

    def step_with_late(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> tuple[pa.Table, LateRows]:
        """1. Drop what is late. 2. Aggregate by instant. 3. Sessions of keys whose instants changed. 4. Emit and remove
        those that close. 5. Remove what was retracted and never came."""
        (batch,) = inputs
        on_time = self._on_time(state, batch, time)  # 1
        rows, late = self._instants(batch, np.flatnonzero(on_time)), take_table(batch, np.flatnonzero(~on_time))
        if rows.num_rows:
            self._expect(state, rows)
            changes = self._by_instant.step(state, (rows,), time)  # 2
            kinds = flat(changes, KIND).to_numpy()
            at = np.flatnonzero((kinds == INSERT) | (kinds == DELETE))
            if len(at):
                self._change_sessions(state, take_table(changes, at), kinds[at] == DELETE)  # 3
        emitted = self._close(state, self._closing.take(state["closing"], time.watermark))  # 4
        self._expire(state, time)  # 5
        return emitted, (late,)

    def _on_time(self, state: State, batch: pa.Table, time: Time) -> Bools:
        """A row is late if the session it would be part of has ended: on its own, or with those that came before it. In
        the order of rows, which is that of each source partition: what comes later must not decide, or it would depend
        on where a batch ends."""
        passed = watermarks_of(batch, self.own_watermark, time)
        column = flat(batch, self.time).cast(pa.int64())
        known = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
        times = column.fill_null(0).to_numpy()
        ended = times + self.gap - TICK <= passed
        if not (known & ended).any():
            return known
        prefixes = flat(batch, HASH).to_numpy() >> 32
        (keys,), first = key_ids([prefixes], [[flat(batch, n) for n in self.aggregate.groups.names]])
        old = self._sessions_of(state, take_table(self._keyed(batch), first))[1]
        sessions: dict[int, list[tuple[int, int]]] = {}
        for key, *session in zip(*(field.tolist() for field in _fields(old)), strict=True):
            sessions.setdefault(key, []).append((session[0], session[1]))
        # Rows are late rarely: only keys that have one are gone through row by row.
        for place in np.flatnonzero(known & np.isin(keys, keys[known & ended])).tolist():
            mine = sessions.setdefault(int(keys[place]), [])
            known[place] = self._joined(mine, int(times[place]), int(passed[place]))
        return known

    def _joined(self, sessions: list[tuple[int, int]], time: int, passed: int) -> bool:
        """Whether the session that a row makes with those it touches has not ended. It then takes their place."""
        touched = [(start, last) for start, last in sessions if start - self.gap <= time <= last + self.gap]
        start, last = min([time, *(s for s, _ in touched)]), max([time, *(s for _, s in touched)])
        if last + self.gap - TICK <= passed:
            return False
        sessions[:] = [session for session in sessions if session not in touched] + [(start, last)]
        return True

    def _keyed(self, batch: pa.Table) -> pa.Table:
        """The keys of rows, with the upper half of their hash."""
        keys = batch.select(self.aggregate.groups.names)
        return keys.append_column(KEY, pa.array(flat(batch, HASH).to_numpy() >> 32)).cast(self._wide_keys(keys))

    def _wide_keys(self, keys: pa.Table) -> pa.Schema:
        return widen(pa.schema([*(self.aggregate.groups.field(n) for n in keys.column_names), (KEY, pa.int64())]))

    def _instants(self, batch: pa.Table, at: Ints) -> pa.Table:
        unused = [name for name in (self.time, self.own_watermark) if name in batch.column_names]
        rows = take_table(batch, at)
        times = flat(rows, self.time).cast(pa.int64()).to_numpy()
        keys, window = flat(rows, HASH).to_numpy() >> 32, window_hash(times, times)
        rows = replaced(rows, HASH, pa.array((keys << 32) | window)).drop_columns(unused)
        for multiset in self.aggregate.multisets:
            rows = replaced(rows, multiset.hash_, in_window(flat(rows, multiset.hash_), window))
        return rows.append_column(KEY, pa.array(keys)).append_column(TIME, pa.array(times))

    def _sessions_of(self, state: State, keys: pa.Table) -> tuple[pa.Table, Intervals]:
        """The open sessions of these keys: as stored, and as intervals with the numbers of the keys."""
        rows, of_row = self._read(state["sessions"], keys)
        return rows, Intervals(of_row, *(flat(rows, name).to_numpy() for name in (START, LAST)))

    def _read(self, table: StateTable, keys: pa.Table) -> Numbered:
        """All rows of a state table that belong to these keys, and which one each belongs to."""
        prefixes = flat(keys, KEY).to_numpy()
        found = pa.Table.from_batches(table.scan_prefix(distinct(prefixes)), table.spec.run_schema).combine_chunks()
        columns = [[flat(t, n) for n in self._keys.names] for t in (keys, found)]
        of_row = owners(prefixes, columns[0], flat(found, KEY).to_numpy(), columns[1])
        at = np.flatnonzero(of_row >= 0)
        return take_table(found, at), of_row[at]

    def _change_sessions(self, state: State, moved: pa.Table, gone: Bools) -> None:
        """Instants were added or emptied: find the sessions of their keys, and store what is different."""
        names = self._keys.names
        (ids,), first = key_ids([flat(moved, KEY).to_numpy()], [[flat(moved, n) for n in names]])
        keys = take_table(moved.select(names), first)
        stored, old = self._sessions_of(state, keys)
        # An instant that was emptied may split its session, and only its other instants can tell: those keys are
        # computed from scratch. For keys that only gained instants, merging intervals is enough.
        again = distinct(ids[gone])
        instants, of_instant = self._read(state["groups"], take_table(keys, again))
        # An instant may be stored with no rows left in it, or fewer: a retraction overtook its row.
        alive = np.flatnonzero(flat(instants, ROWS).to_numpy() > 0)
        there = flat(instants, TIME).to_numpy()[alive]
        kept, new = ~np.isin(old.keys, again), ~np.isin(ids, again)
        times = flat(moved, TIME).to_numpy()[new]
        parts = [
            (old.keys[kept], ids[new], again[of_instant[alive]]),
            (old.starts[kept], times, there),
            (old.lasts[kept], times, there),
        ]
        sessions, _ = Intervals(*(np.concatenate(part) for part in parts)).merged(self.gap)
        self._store(state, keys, stored, old, sessions)

    def _store(self, state: State, keys: pa.Table, stored: pa.Table, old: Intervals, new: Intervals) -> None:
        """Replace sessions in the table and in the index. What is as it was is left alone."""
        # Sessions are compared as values: one that only moved in the list is neither written nor removed.
        before, after = (set(zip(*(f.tolist() for f in _fields(i)), strict=True)) for i in (old, new))
        left = [
            n for n, entry in enumerate(zip(*(f.tolist() for f in _fields(old)), strict=True)) if entry not in after
        ]
        put = [
            n for n, entry in enumerate(zip(*(f.tolist() for f in _fields(new)), strict=True)) if entry not in before
        ]
        # A session that grew at its end keeps its key, which has its start: writing it replaces it, so only sessions
        # whose start is gone need a tombstone.
        starts = {(key, start) for key, start, _ in after}
        ended = [n for n in left if (int(old.keys[n]), int(old.starts[n])) not in starts]
        removed = take_table(stored, np.array(left, dtype=np.int64))
        due = flat(removed, LAST).to_numpy() + self.gap - TICK
        self._index(state, removed, due, gone=True)
        added = take_table(keys, new.keys[put]).append_column(START, pa.array(new.starts[put]))
        added = added.append_column(LAST, pa.array(new.lasts[put]))
        self._index(state, added, new.lasts[put] + self.gap - TICK, gone=False)
        self._write_sessions(state, take_table(stored, np.array(ended, dtype=np.int64)), gone=True)
        self._write_sessions(state, added, gone=False)

    def _write_sessions(self, state: State, rows: pa.Table, *, gone: bool) -> None:
        starts = flat(rows, START).to_numpy()
        hashes = (flat(rows, KEY).to_numpy() << 32) | window_hash(starts, starts)
        keys = [flat(rows, name) for name in self._session.names]
        state["sessions"].write(hashes, keys, [flat(rows, LAST)], np.full(len(hashes), gone))

    def _index(self, state: State, rows: pa.Table, due: Ints, *, gone: bool) -> None:
        keys = [flat(rows, name) for name in self._session.names]
        self._closing.write(state["closing"], due, flat(rows, KEY).to_numpy(), keys, gone=np.full(len(due), gone))

    def _close(self, state: State, due: pa.Table) -> pa.Table:
        """The results of sessions that are due. Everything up to their ends is removed."""
        count = due.num_rows
        if not count:
            return widen(self.output).empty_table()
        starts, lasts = flat(due, START).to_numpy(), flat(due, DUE).to_numpy() - self.gap + TICK
        groups = self._of_sessions(state["groups"], due, starts, lasts)
        values = {m.name: self._of_sessions(state[m.name], due, starts, lasts) for m in self.aggregate.multisets}
        alive = flat(groups[0], ROWS).to_numpy() > 0
        shown = (take_table(groups[0], np.flatnonzero(alive)), groups[1][alive])
        combined = replace(self._by_instant, results=self.aggregate.results)
        results = combined_results(combined, shown, values, count, TIME)
        self._write_sessions(state, due.append_column(LAST, pa.array(lasts)), gone=True)
        for name, (rows, _) in {"groups": groups, **values}.items():
            remove_rows(state[name], rows)
        ends = lasts + self.gap
        bounds = [to_local(b, self.zone) if self.zone else b for b in (starts, ends)]
        windows = [pa.array(bound, pa.timestamp("us")) for bound in bounds]
        keys = [flat(due, name) for name in self.aggregate.groups.names]
        columns = [*keys, *windows, *results, constant(INSERT, count, KIND_TYPE)]
        schema = widen(self.output)
        return pa.table([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)

    def _of_sessions(self, table: StateTable, due: pa.Table, starts: Ints, lasts: Ints) -> Numbered:
        """The rows of a state table that belong to these sessions, of which a key may have several."""
        names = self._keys.names
        (ids,), first = key_ids([flat(due, KEY).to_numpy()], [[flat(due, n) for n in names]])
        rows, of_row = self._read(table, take_table(due.select(names), first))
        times = flat(rows, TIME).to_numpy()
        # A key may have several sessions that close together; an instant belongs to the last one that starts before it.
        order = np.argsort(starts, kind="stable")
        found = last_not_after((ids[order], starts[order]), (of_row, times))
        session = np.where(found >= 0, order[found], found)
        inside = np.flatnonzero((session >= 0) & (times <= lasts[session]))
        return take_table(rows, inside), session[inside]

    def _expect(self, state: State, rows: pa.Table) -> None:
        """Rows may be retracted that never came. They are no part of a session, but state to remove."""
        if ROWS in self.aggregate.ones:
            return
        rows = take_table(rows, np.flatnonzero(flat(rows, ROWS).to_numpy() < 0))
        due = flat(rows, TIME).to_numpy() + self.gap - TICK
        keys = [flat(rows, name) for name in self._keys.names]
        first = group_rows(due ^ flat(rows, HASH).to_numpy(), [*keys, pa.array(due)]).first
        keys = [key.take(pa.array(first)) for key in keys]
        self._expiry.write(state["expiry"], due[first], keys[0].to_numpy(), keys)

    def _expire(self, state: State, time: Time) -> None:
        due = self._expiry.take(state["expiry"], time.watermark)
        if not due.num_rows or time.watermark is None:
            return
        names = self._keys.names
        _, first = key_ids([flat(due, KEY).to_numpy()], [[flat(due, n) for n in names]])
        keys = take_table(due.select(names), first)
        rows, of_row = self._read(state["groups"], keys)
        # Not every row of these keys is due: others belong to sessions that are still open.
        ended = flat(rows, TIME).to_numpy() <= time.watermark - self.gap + TICK
        dead = np.flatnonzero(ended & (flat(rows, ROWS).to_numpy() <= 0))
        gone = set(zip(of_row[dead].tolist(), flat(rows, TIME).to_numpy()[dead].tolist(), strict=True))
        remove_rows(state["groups"], take_table(rows, dead))
        for multiset in self.aggregate.multisets:
            values, of_value = self._read(state[multiset.name], keys)
            instants = zip(of_value.tolist(), flat(values, TIME).to_pylist(), strict=True)
            places = [place for place, instant in enumerate(instants) if instant in gone]
            remove_rows(state[multiset.name], take_table(values, np.array(places, dtype=np.int64)))


def _fields(intervals: Intervals) -> tuple[Ints, Ints, Ints]:
    return intervals.keys, intervals.starts, intervals.lasts
