"""ROW_NUMBER, RANK and DENSE_RANK over a changelog, for the rows whose number is within limits: Top-N.

Rows with equal sort keys are numbered in the order of their columns, so the result does not depend on when they came.
Without a partition this is ORDER BY … LIMIT n OFFSET m; without sort keys LIMIT alone.

All rows are kept, in `LeveledRows`: when one of the first goes, the next one takes its place. Of input that is never
retracted nothing is kept but the rows that are numbered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import Bools, Ints, expand, flat
from headwater.changelog.counted_rows import COUNT, Net, distinct, net_rows
from headwater.changelog.emission import Emission, Emitting, Weighted
from headwater.changelog.identity import take_table
from headwater.changelog.kinds import HASH
from headwater.changelog.operator import State, Time
from headwater.changelog.ordering import SortKey
from headwater.changelog.sorted_groups import Changed, Division, Heads, LeveledRows, LevelGroups
from headwater.state.table import StateTable, TableSpec

__all__ = ["RankFunction", "RankOperator"]

RankFunction = Literal["row_number", "rank", "dense_rank"]

_LEAST_FIRST = 32
_FIRST_PER_RANK = 4
"""How many rows the first level of a group may have: as many as are numbered, and some to take their places."""
_NOT_FOUND = np.iinfo(np.int64).max


@dataclass(frozen=True)
class RankOperator(Emitting):
    """Of each partition the rows with a number from `first` to `last`. `number` is the column with it, none if empty.

    `HASH` has the hash of the partition in its upper half, and one of all columns in the lower. `inserts_only` says
    that the input has no retractions. `updates` is a key of the result, as far as it is not known here: see `Emission`.
    """

    columns: pa.Schema
    partition: tuple[str, ...]
    order: tuple[SortKey, ...]
    last: int
    first: int = 1
    function: RankFunction = "row_number"
    number: str = ""
    inserts_only: bool = False
    updates: tuple[str, ...] = ()
    before: bool = True

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (pa.schema([(HASH, pa.int64()), *self.columns]),)

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        rows = self._rows.rows.spec
        return (rows,) if self.inserts_only else (rows, self._rows.levels)

    @property
    def _rows(self) -> LeveledRows:
        return LeveledRows(self.columns, self.partition, self.order, max(_LEAST_FIRST, _FIRST_PER_RANK * self.last))

    @property
    def _emission(self) -> Emission:
        number = [pa.field(self.number, pa.int64())] if self.number else []
        key = self.updates
        if self.number and self.function == "row_number" and not key:
            key = (*self.partition, self.number)
        return Emission(pa.schema([*self.columns, *number]), key, self.before)

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        """1. Find the level of each row. 2. Read the first level of the groups in which it changes. 3. Divide levels
        that have too many or too few rows. 4. Write. 5. Emit the difference."""
        net = net_rows(inputs[0], self.columns)
        # Without retractions a row that is beyond the limit stays there for good, and need not be kept.
        if self.inserts_only:
            return self._step_of_inserts(state, net)
        rows, table = self._rows, state["rows"]
        groups, of_row = rows.groups_of(state["levels"], net)
        changed = rows.changed(table, net, groups, of_row)  # 1
        # Changes below the first level cannot change a number that is shown: those groups are written, but not read.
        touched = distinct(changed.groups[changed.levels == 0])
        before = rows.read(table, groups, touched, np.zeros(len(groups), dtype=np.int64))  # 2
        after = rows.in_order(rows.applied(before, changed.heads(changed.levels == 0)))
        stored = (changed.delta.counts != 0).astype(np.int64) - (changed.delta.counts != changed.weights)
        np.add.at(groups.sizes, (changed.groups, changed.levels), stored)
        # The first level was read, so its size is known exactly; those of the others follow from what was added and
        # removed.
        groups.sizes[touched, 0] = np.bincount(after.groups, minlength=len(groups))[touched]
        division = self._divide(table, groups, changed, after, touched)  # 3
        rows.write(table, changed, division)  # 4
        rows.store(state["levels"], groups, division)
        parts = [self._numbered(rows.in_order(before), -1)]
        if division is not None:  # the first level may have been too short
            parts.append(self._numbered(division.heads.of(touched), 1))
            after = after.of(np.setdiff1d(touched, division.groups))
        return self._emission.changes([*parts, self._numbered(after, 1)])  # 5

    def _step_of_inserts(self, state: State, net: Net) -> pa.Table:
        """The same, but what has no number now will never have one: it is not stored, and is dropped if it was."""
        rows, table = self._rows, state["rows"]
        groups, of_row = rows.single_levels(net)
        changed = rows.changed(table, net, groups, of_row)
        everything: Ints = np.arange(len(groups), dtype=np.int64)
        before = rows.read(table, groups, everything, np.zeros_like(everything))
        after = rows.in_order(rows.applied(before, changed.heads(changed.groups >= 0)))
        surplus = self._surplus(after, len(groups))
        at = np.flatnonzero(np.where(surplus, after.stored != 0, after.stored != after.counts))
        written = after.take(at)
        keys = [flat(written.rows, name) for name in self.columns.names]
        table.write(written.hashes, keys, [flat(written.rows, COUNT)], surplus[at])
        return self._emission.changes([self._numbered(rows.in_order(before), -1), self._numbered(after, 1)])

    def _divide(
        self, table: StateTable, groups: LevelGroups, changed: Changed, after: Heads, touched: Ints
    ) -> Division | None:
        """Divide the levels of groups where one has too many rows, or the first one not all that are numbered."""
        rows = self._rows
        least = self._least(after, touched, len(groups))
        short = (least == _NOT_FOUND) & (groups.highest > 0)
        known = np.where(least == _NOT_FOUND, groups.sizes[:, 0], least)
        top: Ints = np.full(len(groups), -1, dtype=np.int64)
        for group in np.flatnonzero(short | (groups.sizes > np.array(rows.capacity)).any(axis=1)).tolist():
            sizes, highest = groups.sizes[group].tolist(), int(groups.highest[group])
            found = rows.top_of_division(sizes, highest, int(known[group]), short=bool(short[group]))
            top[group] = -1 if found is None else found
        wanted = np.flatnonzero(top >= 0)
        while len(wanted):
            changes = changed.heads(changed.levels <= top[changed.groups])
            heads = rows.in_order(rows.applied(rows.read(table, groups, wanted, top), changes))
            least = self._least(heads, wanted, len(groups))
            again = wanted[(least[wanted] == _NOT_FOUND) & (top[wanted] < groups.highest[wanted])]
            if not len(again):
                all_rows = np.bincount(heads.groups, minlength=len(groups))
                return rows.divided(wanted, heads, np.minimum(least, all_rows), top)
            # Many rows with equal sort keys may all have the last number, so one more level may not be enough.
            top[again] += 1
        return None

    def _least(self, heads: Heads, wanted: Ints, groups: int) -> Ints:
        """How many rows of each wanted group are needed to number them: up to the first that is beyond the limit, or
        is the last within it. 0 for the other groups."""
        at, low, high = self._numbers(heads)
        # With RANK, all rows that tie with the last one have its number: only the first row beyond proves that all of
        # them are here.
        enough = at[high >= self.last] if self.function == "row_number" else at[low > self.last]
        least: Ints = np.zeros(groups, dtype=np.int64)
        least[wanted] = _NOT_FOUND
        of_enough = heads.groups[enough]
        np.minimum.at(least, of_enough, enough - np.searchsorted(heads.groups, of_enough) + 1)
        return least

    def _surplus(self, heads: Heads, groups: int) -> Bools:
        place = np.arange(len(heads.groups)) - np.searchsorted(heads.groups, heads.groups)
        surplus: Bools = place >= self._least(heads, heads.groups, groups)[heads.groups]
        return surplus

    def _numbers(self, heads: Heads) -> tuple[Ints, Ints, Ints]:
        """Of the rows that are there: their places, and the first and last number of each, which differ only where
        equal rows have numbers of their own."""
        at = np.flatnonzero(heads.counts > 0)
        counts, groups, peers = heads.counts[at], heads.groups[at], heads.peers[at]
        before = np.cumsum(counts) - counts
        first_of_group = np.searchsorted(groups, groups)
        if self.function == "row_number":
            low = before - before[first_of_group] + 1
            return at, low, low + counts - 1
        if self.function == "rank":
            low = before[np.searchsorted(peers, peers)] - before[first_of_group] + 1
            return at, low, low
        number = np.cumsum(np.diff(peers, prepend=-1) != 0)
        low = number - number[first_of_group] + 1
        return at, low, low

    def _numbered(self, heads: Heads, sign: int) -> Weighted:
        """The rows of the result, added or retracted."""
        at, low, high = self._numbers(heads)
        if self.function == "row_number":
            low, high = np.maximum(low, self.first), np.minimum(high, self.last)
        shown = (low <= high) & (low >= self.first) & (high <= self.last)
        at, low, high = at[shown], low[shown], high[shown]
        counts = high - low + 1 if self.function == "row_number" else heads.counts[at]
        rows = take_table(heads.rows.select(self.columns.names), at)
        if not self.number:
            return Weighted(rows, sign * counts)
        if self.function != "row_number":
            return Weighted(rows.append_column(self.number, pa.array(low)), sign * counts)
        # Equal rows have different numbers, so each of them is a row of the result.
        rows = take_table(rows, np.repeat(np.arange(len(at)), counts))
        numbers = expand(low, high + 1)
        return Weighted(rows.append_column(self.number, pa.array(numbers)), np.full(len(numbers), sign, dtype=np.int64))
