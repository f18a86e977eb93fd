"""The join of two streams of inserts whose times are not further apart than an interval: inner, left, right and full.

A row is kept for as long as the other side may have a match for it: until the watermark has passed the end of its
interval. Pairs are emitted as they are found. A row of a preserved side that has found none is emitted without the
other side when it is removed. So the result is inserts, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools, Ints, constant, flat, widen
from headwater.changelog.conditions import Condition
from headwater.changelog.counted_rows import COUNT, CountedRows, Delta, net_rows, remove_rows
from headwater.changelog.emission import Emission, Weighted
from headwater.changelog.grouping import group_rows
from headwater.changelog.identity import take_table
from headwater.changelog.join import JoinInput, JoinSides
from headwater.changelog.kinds import HASH
from headwater.changelog.operator import State, Time
from headwater.changelog.pairing import Pairs, key_columns, key_ids, key_pairs, without_nulls
from headwater.changelog.timers import TimeIndex
from headwater.state.table import TableSpec

__all__ = ["IntervalJoinOperator", "IntervalKind"]

IntervalKind = Literal["inner", "left", "right", "full"]

KEY, MATCHED = "__key", "__matched"
_PRESERVED: dict[str, tuple[str, ...]] = {
    "inner": (),
    "left": ("left",),
    "right": ("right",),
    "full": ("left", "right"),
}


@dataclass(frozen=True)
class IntervalJoinOperator(JoinSides):
    """A pair matches if right time - left time, in microseconds, is from `low` to `high`, both inclusive. `HASH` has
    the hash of the keys in its upper half, and one of all columns in the lower. The output has all columns of both
    sides, whose names differ."""

    left_time: str
    right_time: str
    low: int
    high: int
    kind: IntervalKind = "inner"
    condition: Condition | None = None

    @property
    def timed(self) -> bool:
        return True

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        return tuple(spec for side in self._sides for spec in (side.rows.spec, side.expiry.spec))

    @property
    def output(self) -> pa.Schema:
        return self._emission.output

    @property
    def _emission(self) -> Emission:
        return Emission(pa.schema([*self.left.columns, *self.right.columns]))

    @property
    def _sides(self) -> tuple[_Side, _Side]:
        """A row of the left has matches up to its time + high, one of the right up to its time - low."""
        preserved = _PRESERVED[self.kind]
        left = _Side("left", self.left, self.left_time, self.high, "left" in preserved)
        return left, _Side("right", self.right, self.right_time, -self.low, "right" in preserved)

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        """1. New rows of the left meet the right as it was. 2. Those of the right meet the new left. 3. Rows without a
        match any more are removed, and emitted if they never had one."""
        left, right = self._sides
        parts = self._phase(state, left, right, inputs[0])  # 1
        parts += self._phase(state, right, left, inputs[1])  # 2
        parts += [self._expired(state, side, other, time) for side, other in ((left, right), (right, left))]  # 3
        return self._emission.changes(parts)

    def _phase(self, state: State, moving: _Side, standing: _Side, batch: pa.Table) -> list[Weighted]:
        if not batch.num_rows:
            return []
        rows = batch.select(moving.input.schema.names)
        # A NULL in a key or in the time matches nothing, now or later: such a row is emitted alone at once, if its side
        # is preserved, and never stored.
        comparable = without_nulls(
            [*(flat(rows, name) for name in moving.input.keys), flat(rows, moving.time)], rows.num_rows
        )
        never = take_table(rows, np.flatnonzero(~comparable))
        parts = (
            [self._alone(moving, standing, never, np.ones(never.num_rows, dtype=np.int64))] if never.num_rows else []
        )
        delta = moving.rows.delta(
            state[moving.name], net_rows(take_table(rows, np.flatnonzero(comparable)), moving.input.columns)
        )
        others = standing.rows.scan_keys(state[standing.name], delta.hashes >> 32)
        matched: Bools = np.zeros(len(delta.hashes), dtype=np.bool_)
        found: Bools = np.zeros(others.num_rows, dtype=np.bool_)
        counts = flat(others, COUNT).to_numpy()
        for pairs in self._pairs(moving, standing, delta, others):
            m, s = self._matching(moving, delta.rows, others, pairs)
            # Whether a row ever had a match is all that is kept: inputs are inserts only, so a match never goes away.
            matched[m], found[s] = True, True
            parts.append(self._together(delta.rows, others, (m, s), delta.change[m] * counts[s]))
        self._store(state, moving, delta, matched)
        self._mark(state, standing, others, found)
        return parts

    def _pairs(self, moving: _Side, standing: _Side, delta: Delta, others: pa.Table) -> list[Pairs]:
        columns = [key_columns(rows, side.input.keys) for rows, side in ((delta.rows, moving), (others, standing))]
        prefixes = [delta.hashes >> 32, flat(others, HASH).to_numpy() >> 32]
        (here, there), _ = key_ids(prefixes, columns)
        mine, theirs = moving.times(delta.rows), standing.times(others)
        # The interval is that of right - left, whichever side moves.
        sign = 1 if moving.name == "left" else -1
        found = []
        for m, s in key_pairs(here, there):
            apart = (theirs[s] - mine[m]) * sign
            near = (apart >= self.low) & (apart <= self.high)
            found.append((m[near], s[near]))
        return found

    def _matching(self, moving: _Side, delta: pa.Table, others: pa.Table, pairs: Pairs) -> Pairs:
        if self.condition is None:
            return pairs
        names = self.condition.columns
        sides = ((delta, pairs[0]), (others, pairs[1]))
        columns = {n: flat(t, n).take(pa.array(at)) for t, at in sides for n in t.column_names if n in names}
        true = pc.fill_null(self.condition.evaluate(columns, len(pairs[0])), False).to_numpy(zero_copy_only=False)
        return pairs[0][true], pairs[1][true]

    def _store(self, state: State, side: _Side, delta: Delta, matched: Bools) -> None:
        values = []
        if side.preserved:
            before = flat(delta.values, MATCHED).fill_null(False).to_numpy(zero_copy_only=False)
            values = [pa.array(matched | before)]
        side.rows.write(state[side.name], delta, values)
        prefixes, due = delta.hashes >> 32, side.times(delta.rows) + side.reach
        # One entry per key and time is enough: when it is due, all rows of the key are looked at.
        first = group_rows(due ^ (prefixes << 32), [pa.array(prefixes), pa.array(due)]).first
        side.expiry.write(state[side.expiry.name], due[first], prefixes[first], [pa.array(prefixes[first])])

    def _mark(self, state: State, side: _Side, rows: pa.Table, found: Bools) -> None:
        """Rows of a preserved side that have a match now, and had none."""
        if not side.preserved:
            return
        # A row that is marked already is not written again: a popular row would be rewritten with every batch.
        fresh = found & ~flat(rows, MATCHED).to_numpy(zero_copy_only=False)
        rows = take_table(rows, np.flatnonzero(fresh))
        keys = [flat(rows, name) for name in side.input.columns.names]
        true, none = constant(True, rows.num_rows, pa.bool_()), np.zeros(rows.num_rows, dtype=np.bool_)
        state[side.name].write(flat(rows, HASH).to_numpy(), keys, [flat(rows, COUNT), true], none)

    def _expired(self, state: State, side: _Side, other: _Side, time: Time) -> Weighted:
        entries = side.expiry.due(state[side.expiry.name], time.watermark)
        nothing = Weighted(widen(self._emission.columns).empty_table(), np.zeros(0, dtype=np.int64))
        if not entries.num_rows or time.watermark is None:
            return nothing
        side.expiry.remove(state[side.expiry.name], entries)
        rows = side.rows.scan_keys(state[side.name], flat(entries, KEY).to_numpy())
        # Other rows of the same key may not be due yet; and keys that share a hash prefix are read with it.
        rows = take_table(rows, np.flatnonzero(side.times(rows) + side.reach <= time.watermark))
        remove_rows(state[side.name], rows)
        if not side.preserved:
            return nothing
        # Only now it is certain that no match will come: emitted earlier, the row would have to be retracted, and the
        # result is one of inserts.
        alone = np.flatnonzero(~flat(rows, MATCHED).to_numpy(zero_copy_only=False))
        rows = take_table(rows, alone)
        return self._alone(side, other, rows, flat(rows, COUNT).to_numpy())

    def _alone(self, side: _Side, other: _Side, rows: pa.Table, weights: Ints) -> Weighted:
        """Rows without the other side; of a side that is not preserved none."""
        if not side.preserved:
            rows, weights = rows.slice(0, 0), weights[:0]
        columns = {name: flat(rows, name) for name in side.input.columns.names}
        columns |= dict(zip(other.input.columns.names, other.rows.null(rows.num_rows), strict=True))
        return Weighted(
            pa.table([columns[n] for n in self._emission.columns.names], names=self._emission.columns.names), weights
        )

    def _together(self, delta: pa.Table, others: pa.Table, pairs: Pairs, weights: Ints) -> Weighted:
        mine, theirs = take_table(delta, pairs[0]), take_table(others, pairs[1])
        names = self._emission.columns.names
        columns = [mine.column(n) if n in mine.column_names else theirs.column(n) for n in names]
        return Weighted(pa.table(columns, names=names), weights)


@dataclass(frozen=True)
class _Side:
    """`reach` after its time, the last match of a row may come."""

    name: Literal["left", "right"]
    input: JoinInput
    time: str
    reach: int
    preserved: bool

    @property
    def rows(self) -> CountedRows:
        values = [(MATCHED, pa.bool_())] if self.preserved else []
        return CountedRows(self.name, self.input.columns, pa.schema(values))

    @property
    def expiry(self) -> TimeIndex:
        """When which keys have rows to remove."""
        return TimeIndex(f"{self.name}_expiry", pa.schema([(KEY, pa.int64())]))

    def times(self, rows: pa.Table) -> Ints:
        times: Ints = flat(rows, self.time).cast(pa.int64()).to_numpy()
        return times
