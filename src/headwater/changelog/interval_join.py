"""The join of two streams of inserts whose times are not further apart than an interval: inner, left, right and full.

A row is kept for as long as the other side may have a match for it: until the watermark has passed the end of its
interval. Pairs are emitted as they are found. A row of a preserved side that has found none is emitted without the
other side when it is removed. So the result is inserts, too.

A row that comes behind the watermark of its own partition has missed the rows whose interval that watermark had passed,
whether they are still there or not: what is still there depends on other partitions and on how batches are cut. Of a
pair, each row must have come before the watermark of its partition had passed the interval of the other; rows that are
on time always have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools, Ints, constant, flat, widen
from headwater.changelog.conditions import Condition, of_pairs
from headwater.changelog.counted_rows import COUNT, CountedRows, Delta, net_rows, remove_rows
from headwater.changelog.emission import Emission, Weighted
from headwater.changelog.identity import take_table
from headwater.changelog.join import JoinInput, JoinSides
from headwater.changelog.kinds import HASH
from headwater.changelog.operator import OWN_WATERMARK, LateRows, State, Time
from headwater.changelog.pairing import Pairs, key_columns, key_ids, key_pairs, without_nulls
from headwater.changelog.timers import TimeIndex
from headwater.state.table import TableSpec

__all__ = ["IntervalJoinOperator", "IntervalKind"]

IntervalKind = Literal["inner", "left", "right", "full"]

KEY, MATCHED = "__hw_key", "__hw_matched"
PASSED = "__hw_passed"
"""The watermark that a row came behind; NULL if it was on time."""
_LOWEST = np.iinfo(np.int64).min
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
    sides, whose names differ; and OWN_WATERMARK where rows that are late may be emitted alone, for whoever comes behind
    to see that they are."""

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
        own = [(OWN_WATERMARK, pa.timestamp("us"))] if any(s.preserved and s.input.own for s in self._sides) else []
        return Emission(pa.schema([*self.left.columns, *self.right.columns, *own]))

    @property
    def _farthest(self) -> int:
        return max(self.high, -self.low, 0)

    @property
    def _allowed(self) -> int:
        """A row that is later than this has missed all others. Within it, it is not further behind than the watermark
        of the result is."""
        return max(min(self._farthest, self.high - self.low), 0)

    @property
    def _sides(self) -> tuple[_Side, _Side]:
        """A row of the left has matches up to its time + high, one of the right up to its time - low."""
        preserved = _PRESERVED[self.kind]
        left = _Side("left", self.left, self.left_time, self.high, "left" in preserved)
        return left, _Side("right", self.right, self.right_time, -self.low, "right" in preserved)

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        return self.step_with_late(state, inputs, time)[0]

    def step_with_late(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> tuple[pa.Table, LateRows]:
        """1. New rows of the left meet the right as it was. 2. Those of the right meet the new left. 3. Rows without a
        match any more are removed, and emitted if they never had one."""
        left, right = self._sides
        of_left, late_left = self._phase(state, left, right, inputs[0], time)  # 1
        of_right, late_right = self._phase(state, right, left, inputs[1], time)  # 2
        expired = [self._expired(state, side, other, time) for side, other in ((left, right), (right, left))]  # 3
        return self._emission.changes([*of_left, *of_right, *expired]), (late_left, late_right)

    def _phase(
        self, state: State, moving: _Side, standing: _Side, batch: pa.Table, time: Time
    ) -> tuple[list[Weighted], pa.Table]:
        """Results, and the rows that are dropped because they are late."""
        if not batch.num_rows:
            return [], batch
        rows, comparable, late = self._judged(moving, batch, time)
        # A NULL in a key or in the time matches nothing, now or later, nor does a row that is too late: such a row is
        # emitted alone at once, if its side is preserved, and never stored.
        parts = [self._alone_at_once(moving, standing, batch, ~comparable | late, time)] if moving.preserved else []
        fresh = take_table(rows, np.flatnonzero(comparable & ~late))
        parts += self._joined(state, moving, standing, fresh)
        dropped = np.flatnonzero(late) if not moving.preserved else np.zeros(0, dtype=np.int64)
        return parts, take_table(batch, dropped)

    def _judged(self, side: _Side, batch: pa.Table, time: Time) -> tuple[pa.Table, Bools, Bools]:
        """The rows with PASSED; which of them can be compared with others at all, and which are too late for that."""
        rows = batch.select([HASH, *side.input.columns.names])
        column = flat(rows, side.time).cast(pa.int64())
        comparable = without_nulls([*(flat(rows, name) for name in side.input.keys), column], rows.num_rows)
        times, passed = column.fill_null(0).to_numpy(), side.input.watermarks(batch, time)
        rows = rows.append_column(PASSED, pa.array(passed, mask=times > passed))
        return rows, comparable, comparable & (times + self._allowed <= passed)

    def _joined(self, state: State, moving: _Side, standing: _Side, rows: pa.Table) -> list[Weighted]:
        parts = []
        delta = moving.rows.delta(state[moving.name], net_rows(rows, moving.rows.columns))
        others = standing.rows.scan_keys(state[standing.name], delta.hashes >> 32)
        matched: Bools = np.zeros(len(delta.hashes), dtype=np.bool_)
        found: Bools = np.zeros(others.num_rows, dtype=np.bool_)
        counts = flat(others, COUNT).to_numpy()
        for pairs in self._pairs(moving, standing, delta, others):
            m, s = self._matching(delta.rows, others, pairs)
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
        mine_passed, theirs_passed = (flat(rows, PASSED).fill_null(_LOWEST).to_numpy() for rows in (delta.rows, others))
        # The interval is that of right - left, whichever side moves.
        sign = 1 if moving.name == "left" else -1
        found = []
        for m, s in key_pairs(here, there):
            apart = (theirs[s] - mine[m]) * sign
            near = (apart >= self.low) & (apart <= self.high)
            # A late row may find a row that could be gone, or come to one that would be: see above.
            near &= theirs[s] + standing.reach > mine_passed[m]
            near &= mine[m] + moving.reach > theirs_passed[s]
            found.append((m[near], s[near]))
        return found

    def _matching(self, delta: pa.Table, others: pa.Table, pairs: Pairs) -> Pairs:
        if self.condition is None:
            return pairs
        true = pc.fill_null(of_pairs(self.condition, delta, others, pairs), False).to_numpy(zero_copy_only=False)
        return pairs[0][true], pairs[1][true]

    def _store(self, state: State, side: _Side, delta: Delta, matched: Bools) -> None:
        values = []
        if side.preserved:
            before = flat(delta.values, MATCHED).fill_null(False).to_numpy(zero_copy_only=False)
            values = [pa.array(matched | before)]
        side.rows.write(state[side.name], delta, values)
        prefixes, due = delta.hashes >> 32, side.times(delta.rows) + side.reach
        # One entry per key and time is enough: when it is due, all rows of the key are looked at.
        side.expiry.note(state[side.expiry.name], prefixes, due)

    def _mark(self, state: State, side: _Side, rows: pa.Table, found: Bools) -> None:
        """Rows of a preserved side that have a match now, and had none."""
        if not side.preserved:
            return
        # A row that is marked already is not written again: a popular row would be rewritten with every batch.
        fresh = found & ~flat(rows, MATCHED).to_numpy(zero_copy_only=False)
        rows = take_table(rows, np.flatnonzero(fresh))
        keys = [flat(rows, name) for name in side.rows.columns.names]
        true, none = constant(True, rows.num_rows, pa.bool_()), np.zeros(rows.num_rows, dtype=np.bool_)
        state[side.name].write(flat(rows, HASH).to_numpy(), keys, [flat(rows, COUNT), true], none)

    def _expired(self, state: State, side: _Side, other: _Side, time: Time) -> Weighted:
        entries = side.expiry.take(state[side.expiry.name], time.watermark)
        nothing = Weighted(widen(self._emission.columns).empty_table(), np.zeros(0, dtype=np.int64))
        if not entries.num_rows or time.watermark is None:
            return nothing
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

    def _alone_at_once(self, side: _Side, other: _Side, batch: pa.Table, which: Bools, time: Time) -> Weighted:
        """What comes behind is as far behind the row's partition as the watermark of the result is."""
        passed = side.input.watermarks(batch, time)[which]
        known = passed != _LOWEST
        own = pa.array(np.where(known, passed, 0) - self._farthest, mask=~known).cast(pa.timestamp("us"))
        return self._alone(
            side, other, take_table(batch, np.flatnonzero(which)), np.ones(len(own), dtype=np.int64), own
        )

    def _alone(self, side: _Side, other: _Side, rows: pa.Table, weights: Ints, own: pa.Array | None = None) -> Weighted:
        """Rows of a preserved side without the other one."""
        columns = {name: flat(rows, name) for name in side.input.columns.names}
        columns |= dict(
            zip(
                other.input.columns.names,
                [pa.nulls(rows.num_rows, f.type) for f in widen(other.input.columns)],
                strict=True,
            )
        )
        return self._weighted(columns, own, weights)

    def _together(self, delta: pa.Table, others: pa.Table, pairs: Pairs, weights: Ints) -> Weighted:
        sides = take_table(delta, pairs[0]), take_table(others, pairs[1])
        return self._weighted({n: flat(side, n) for side in sides for n in side.column_names}, None, weights)

    def _weighted(self, columns: dict[str, pa.Array], own: pa.Array | None, weights: Ints) -> Weighted:
        columns[OWN_WATERMARK] = pa.nulls(len(weights), pa.timestamp("us")) if own is None else own
        names = self._emission.columns.names
        return Weighted(pa.table([columns[n] for n in names], names=names), weights)


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
        # Rows that came behind different watermarks are different: they have missed different rows.
        return CountedRows(self.name, pa.schema([*self.input.columns, (PASSED, pa.int64())]), pa.schema(values))

    @property
    def expiry(self) -> TimeIndex:
        """When which keys have rows to remove."""
        return TimeIndex(f"{self.name}_expiry", pa.schema([(KEY, pa.int64())]))

    def times(self, rows: pa.Table) -> Ints:
        times: Ints = flat(rows, self.time).cast(pa.int64()).to_numpy()
        return times
