"""The equi-join of two changelogs: inner, left, right, full, semi, anti, mark, with a further condition on the pairs.

Each side's rows are counted in a state table. A batch is taken in two phases, so that all it costs is its changes and
the rows they meet: first the changes of the left meet the right as it was, then those of the right meet the left as it
is now. What each phase adds and retracts is netted together: a result that did not change emits nothing.

Whether a row has a match at all (outer, semi, anti and mark joins) is never found by looking at all pairs again.
Without a condition it is the same for all rows of a key, and the number of rows per key is kept: `left_keys`,
`right_keys`. With a condition every row keeps the number of its matches beside its count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools, Ints, flat
from headwater.changelog.conditions import Condition, of_pairs
from headwater.changelog.counted_rows import COUNT, CountedRows, Delta, net_rows
from headwater.changelog.emission import Emission, Emitting, Weighted
from headwater.changelog.identity import take_table
from headwater.changelog.kinds import HASH
from headwater.changelog.multiset import prefix
from headwater.changelog.operator import OWN_WATERMARK, State, Time
from headwater.changelog.pairing import Pairs, key_columns, key_ids, key_pairs, without_nulls
from headwater.changelog.window_assigners import watermarks_of
from headwater.state.table import StateTable, TableSpec

__all__ = ["JoinInput", "JoinKind", "JoinOperator", "JoinSides"]

JoinKind = Literal["inner", "left", "right", "full", "semi", "anti", "mark"]

MATCHES = "__hw_matches"
_PRESERVED: dict[str, tuple[str, ...]] = {
    "inner": (),
    "left": ("left",),
    "right": ("right",),
    "full": ("left", "right"),
    "semi": ("left",),
    "anti": ("left",),
    "mark": ("left",),
}


@dataclass(frozen=True)
class JoinInput:
    """One side: its columns, and which of them are compared with those of the other side, in order. `HASH` has the
    hash of the keys in its upper half, and one of all columns in the lower. OWN_WATERMARK is there if rows have their
    `own` watermarks."""

    columns: pa.Schema
    keys: tuple[str, ...]
    own: bool = False

    @property
    def schema(self) -> pa.Schema:
        own = [(OWN_WATERMARK, pa.timestamp("us"))] if self.own else []
        return pa.schema([(HASH, pa.int64()), *self.columns, *own])

    def watermarks(self, batch: pa.Table, time: Time) -> Ints:
        """For each row the watermark by which it is late or not."""
        return watermarks_of(batch, OWN_WATERMARK if self.own else "", time)


@dataclass(frozen=True)
class JoinSides:
    """The two inputs of any join. Column names differ between them."""

    left: JoinInput
    right: JoinInput

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.left.schema, self.right.schema)


@dataclass(frozen=True)
class JoinOperator(JoinSides, Emitting):
    """Column names differ between the sides. The output has all columns of both, or of the left alone (semi, anti). A
    mark join has all rows of the left, and in the column `mark` whether each of them has a match.

    `unknown_matches` makes NOT IN of an anti join: a pair matches unless its condition is FALSE, where NULL makes it
    unknown. The compared columns are then part of the condition and not of the keys (those are the correlated ones).
    `updates` is a key of the result: see `Emission`.
    """

    kind: JoinKind = "inner"
    condition: Condition | None = None
    unknown_matches: bool = False
    updates: tuple[str, ...] = ()
    before: bool = True
    mark: str = ""

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        rows = (self._side("left").rows.spec, self._side("right").rows.spec)
        counted = [side for side in (self._side("left"), self._side("right")) if self._counts_keys(side)]
        return (*rows, *(side.totals for side in counted))

    @property
    def preserved(self) -> tuple[str, ...]:
        """The sides whose rows are shown, or hidden, for having no match."""
        return _PRESERVED[self.kind]

    @property
    def _pairs_shown(self) -> bool:
        return self.kind not in ("semi", "anti", "mark")

    @property
    def _emission(self) -> Emission:
        right = self.right.columns if self._pairs_shown else ()
        mark = [pa.field(self.mark, pa.bool_())] if self.kind == "mark" else []
        return Emission(pa.schema([*self.left.columns, *right, *mark]), self.updates, self.before)

    def _side(self, name: Literal["left", "right"]) -> _Side:
        preserved = name in _PRESERVED[self.kind]
        values = [(MATCHES, pa.int64())] if preserved and self.condition is not None else []
        side = self.left if name == "left" else self.right
        return _Side(name, side, CountedRows(name, side.columns, pa.schema(values)), preserved)

    def _counts_keys(self, side: _Side) -> bool:
        """Whether the number of rows per key of this side decides which rows of the other are shown."""
        return self.condition is None and self._side("right" if side.name == "left" else "left").preserved

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        """1. The changes of the left meet the right as it was. 2. Those of the right meet the new left. 3. Net."""
        left, right = self._side("left"), self._side("right")
        # One side at a time, so that a pair whose two rows both changed is made once: by the second side, which meets
        # the first as it is now.
        parts = self._phase(state, left, right, inputs[0])  # 1
        parts += self._phase(state, right, left, inputs[1])  # 2
        # A row may lose one match and win another in the same batch: only the net change leaves.
        return self._emission.changes(parts)  # 3

    def _phase(self, state: State, moving: _Side, standing: _Side, batch: pa.Table) -> list[Weighted]:
        """What the changes of one side make of the result while the other side stands still."""
        if not batch.num_rows:
            return []
        table = state[moving.name]
        # Rows that were inserted and retracted within the batch cancel out first: their pairs would only be made to be
        # retracted.
        delta = moving.rows.delta(table, net_rows(batch, moving.input.columns))
        if self.condition is None:
            parts = self._by_keys(state, moving, standing, delta)
            moving.rows.write(table, delta)
        else:
            parts, matches = self._by_pairs(state, moving, standing, delta, self.condition)
            moving.rows.write(table, delta, [pa.array(matches)] if moving.preserved else [])
        return parts

    # without a condition: all rows of a key have the same matches

    def _by_keys(self, state: State, moving: _Side, standing: _Side, delta: Delta) -> list[Weighted]:
        columns = key_columns(delta.rows, moving.input.keys)
        comparable = without_nulls(columns, len(delta.hashes))
        changed = delta.change != 0
        parts = []
        flips = np.zeros(len(delta.hashes), dtype=np.int64)
        if moving.preserved:
            # Matches of a key are counted beside the rows, so that an outer row is judged without reading the other
            # side.
            there = self._total(state[standing.totals.name], delta, columns, comparable)
            parts.append(self._alone(moving, delta.rows, delta.change, there > 0))
        if self._counts_keys(moving):
            flips = self._recount(state[moving.totals.name], delta, columns, comparable)
        # Where no pairs are shown (semi, anti, mark), rows of the other side matter only if a key got its first row or
        # lost its last one: most changes read nothing of the other side.
        met = comparable & changed if self._pairs_shown else flips != 0
        if met.any():
            parts += self._meet(state, moving, standing, delta.where(met), flips[met])
        return parts

    def _total(self, totals: StateTable, delta: Delta, columns: Sequence[pa.Array], comparable: Bools) -> Ints:
        """How many rows of the other side each changed row finds."""
        # Totals are stored under the hash of the key alone: its upper half, the lower half 0.
        found = totals.lookup(delta.hashes >> 32 << 32, columns)
        counts: Ints = np.where(comparable, flat(found.values, COUNT).fill_null(0).to_numpy(), 0)
        return counts

    def _recount(self, totals: StateTable, delta: Delta, columns: Sequence[pa.Array], comparable: Bools) -> Ints:
        """Update the number of rows of each key that changed. For one row of each key: +1 if the key has now rows and
        had none, -1 if it has none any more, else 0."""
        wanted = np.flatnonzero(comparable & (delta.change != 0))
        flips: Ints = np.zeros(len(delta.hashes), dtype=np.int64)
        hashes = delta.hashes[wanted] >> 32 << 32
        columns = [column.take(pa.array(wanted)) for column in columns]
        (ids,), first = key_ids([hashes >> 32], [columns])
        change: Ints = np.zeros(len(first), dtype=np.int64)
        np.add.at(change, ids, delta.change[wanted])
        hashes, keys = hashes[first], [column.take(pa.array(first)) for column in columns]
        found = totals.lookup(hashes, keys)
        before = flat(found.values, COUNT).fill_null(0).to_numpy()
        after = before + change
        totals.write(hashes, keys, [pa.array(after)], after == 0)
        # One row stands for its key, so that the rows of the other side are judged once, however many rows of the key
        # changed.
        flips[wanted[first]] = np.sign(after) - np.sign(before)
        return flips

    def _meet(self, state: State, moving: _Side, standing: _Side, delta: Delta, flips: Ints) -> Iterator[Weighted]:
        """The pairs that are added and retracted; and the rows of the other side that have matches now, or have none
        any more."""
        rows, here, there = self._candidates(state, moving, standing, delta)
        counts = flat(rows, COUNT).to_numpy()
        if self._pairs_shown:
            # In chunks: a key that is frequent on both sides has a product of pairs that need not fit into memory.
            for m, s in key_pairs(here, there):
                yield self._together(delta.rows, rows, (m, s), delta.change[m] * counts[s])
        if standing.preserved and flips.any():
            for m, s in key_pairs(here, there, flips != 0):
                yield from self._rejudged(standing, take_table(rows, s), counts[s], flips[m] < 0, flips[m] > 0)

    # with a condition: every row counts its own matches

    def _by_pairs(
        self, state: State, moving: _Side, standing: _Side, delta: Delta, condition: Condition
    ) -> tuple[list[Weighted], Ints]:
        """The parts of the result, and the number of matches of each changed row."""
        rows, here, there = self._candidates(state, moving, standing, delta)
        counts, parts = flat(rows, COUNT).to_numpy(), []
        found: Ints = np.zeros(len(delta.hashes), dtype=np.int64)
        gained: Ints = np.zeros(rows.num_rows, dtype=np.int64)
        for pairs in key_pairs(here, there, here >= 0):
            m, s = self._matching(delta.rows, rows, pairs, condition)
            # Counted with multiplicity: a row that is there twice is two matches, and both must go before there is
            # none.
            np.add.at(found, m, counts[s])
            np.add.at(gained, s, delta.change[m])
            if self._pairs_shown:
                parts.append(self._together(delta.rows, rows, (m, s), delta.change[m] * counts[s]))
        if moving.preserved:
            # A row that was there already knows its matches; only one that is new has to count them.
            known = flat(delta.values, MATCHES).fill_null(0).to_numpy()
            found = np.where(delta.before > 0, known, found)
            parts.append(self._alone(moving, delta.rows, delta.change, found > 0))
        if standing.preserved:
            parts += self._rematched(state[standing.name], standing, rows, gained)
        return parts, found

    def _matching(self, delta: pa.Table, rows: pa.Table, pairs: Pairs, condition: Condition) -> Pairs:
        # A NULL key never matches in SQL; what an unknown condition means depends on the kind of join (NOT IN
        # differs).
        mask = pc.fill_null(of_pairs(condition, delta, rows, pairs), self.unknown_matches)
        kept = mask.to_numpy(zero_copy_only=False)
        return pairs[0][kept], pairs[1][kept]

    def _rematched(self, table: StateTable, standing: _Side, rows: pa.Table, gained: Ints) -> Iterator[Weighted]:
        """Store the new number of matches of rows that did not change; those with the first, or without any more."""
        touched = np.flatnonzero(gained)
        rows, gained = take_table(rows, touched), gained[touched]
        before, counts = flat(rows, MATCHES).to_numpy(), flat(rows, COUNT)
        after = before + gained
        keys = [flat(rows, name) for name in standing.input.columns.names]
        none = np.zeros(len(touched), dtype=np.bool_)
        table.write(flat(rows, HASH).to_numpy(), keys, [counts, pa.array(after)], none)
        return self._rejudged(standing, rows, counts.to_numpy(), before > 0, after > 0)

    # what both have in common

    def _candidates(self, state: State, moving: _Side, standing: _Side, delta: Delta) -> tuple[pa.Table, Ints, Ints]:
        """The rows of the other side whose keys may be among those of the changed rows; and the number of the key of
        each changed row, below 0 for a key with NULL, and of each of those rows."""
        columns = key_columns(delta.rows, moving.input.keys)
        comparable = without_nulls(columns, len(delta.hashes))
        prefixes = prefix(delta.hashes)
        # Found by the upper half of the hash, in which different keys may collide: the keys themselves decide below.
        rows = standing.rows.scan_keys(state[standing.name], prefixes[comparable])
        others = key_columns(rows, standing.input.keys)
        there = prefix(flat(rows, HASH).to_numpy())
        (here, there), _ = key_ids([prefixes, there], [columns, others])
        return rows, np.where(comparable, here, -1), there

    def _rejudged(self, side: _Side, rows: pa.Table, counts: Ints, before: Bools, after: Bools) -> Iterator[Weighted]:
        """Rows that stay, of which some have their first match now, or none any more."""
        moved = np.flatnonzero(before != after)
        rows, counts = take_table(rows, moved), counts[moved]
        yield self._alone(side, rows, -counts, before[moved])
        yield self._alone(side, rows, counts, after[moved])

    def _alone(self, side: _Side, rows: pa.Table, weights: Ints, matched: Bools) -> Weighted:
        """What is shown of rows without the other side, given whether they have a match."""
        if self.kind != "mark":
            weights = weights * (matched if self.kind == "semi" else ~matched)
        at = np.flatnonzero(weights)
        rows = take_table(rows.select(side.input.columns.names), at)
        if self.kind == "mark":
            rows = rows.append_column(self.mark, pa.array(matched[at]))
        if self._pairs_shown:
            other = self._side("right" if side.name == "left" else "left").rows
            for name, column in zip(other.columns.names, other.null(len(at)), strict=True):
                rows = rows.append_column(name, column)
        return Weighted(rows, weights[at])

    def _together(self, delta: pa.Table, rows: pa.Table, pairs: Pairs, weights: Ints) -> Weighted:
        at = np.flatnonzero(weights)
        mine = take_table(delta, pairs[0][at])
        # A pair of weight 0 was added and retracted: leaving it out keeps a batch of updates small.
        others = take_table(rows, pairs[1][at])
        names = self._emission.columns.names
        columns = [mine.column(n) if n in mine.column_names else others.column(n) for n in names]
        return Weighted(pa.table(columns, names=names), weights[at])


@dataclass(frozen=True)
class _Side:
    """A side while it is worked on. `preserved` if its rows are shown, or hidden, for having no match."""

    name: Literal["left", "right"]
    input: JoinInput
    rows: CountedRows
    preserved: bool

    @property
    def totals(self) -> TableSpec:
        """The number of rows of each key. A column that is compared twice is there under two names."""
        names = self.input.keys
        fields = [self.input.columns.field(name) for name in names]
        keys = [f.with_name(f"{f.name}_{i}") if f.name in names[:i] else f for i, f in enumerate(fields)]
        return TableSpec(f"{self.name}_keys", pa.schema(keys), pa.schema([(COUNT, pa.int64())]))
