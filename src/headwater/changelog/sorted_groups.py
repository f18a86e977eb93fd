"""Rows of many groups in order, so that the first of a group are found, and stay found, without a look at all of them.

The rows of a group lie in levels: all rows of a level come before those of the next one, and each level may have eight
times as many as the one before. A batch reads the first level of the groups whose first level it changes, and nothing
of the others. When a level has too many rows, or the first one not enough, the lower levels are read and divided again;
as they are half full then, that happens once in as many changes as they have rows: a change costs O(log n) in the long
run, whatever the sort keys are and however they are distributed.

Where the levels of a group are divided is stored: the last row of each level but the highest. Of a group with a single
level nothing is. The level is part of a row's hash, between that of the group and that of the row, so that the levels
of a group lie one after the other in the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.changelog.columns import Bools, Ints, concat, flat, widen
from headwater.changelog.counted_rows import COUNT, CountedRows, Delta, Net, distinct
from headwater.changelog.grouping import group_rows
from headwater.changelog.identity import take_table
from headwater.changelog.kinds import HASH
from headwater.changelog.ordering import SortKey, order_rows
from headwater.changelog.pairing import key_columns, key_ids, owners
from headwater.state.table import StateTable, TableSpec

__all__ = ["Changed", "Division", "Heads", "LevelGroups", "LeveledRows"]

LEVELS = 16
GROWTH = 8
SIZES, BOUNDS = "__hw_sizes", "__hw_bounds"
_SHIFT = 28  # of the level in the lower half of a hash
_BELOW = (1 << _SHIFT) - 1

Sizes = npt.NDArray[np.int64]  # a row for each group: how many rows each of its levels has


@dataclass(frozen=True)
class LevelGroups:
    """The groups that a batch touches: the upper half of their hash, their keys, their highest level, and the last rows
    of all levels below it. `bound_starts` is where those of each group start."""

    prefixes: Ints
    keys: Sequence[pa.Array]
    highest: Ints
    sizes: Sizes
    bounds: pa.Table
    bound_starts: Ints

    def __len__(self) -> int:
        return len(self.prefixes)


@dataclass(frozen=True)
class Heads:
    """Rows of some groups: the number of the group of each, and how often each is `stored` under its hash. `rows` have
    HASH, the columns and COUNT, which may be below 0. In order, `peers` is a number that rows with equal sort keys
    share."""

    rows: pa.Table
    groups: Ints
    stored: Ints
    peers: Ints

    @property
    def counts(self) -> Ints:
        return np.asarray(flat(self.rows, COUNT).to_numpy())

    @property
    def hashes(self) -> Ints:
        return np.asarray(flat(self.rows, HASH).to_numpy())

    def of(self, wanted: Ints) -> Heads:
        """Those of some groups."""
        return self.take(np.flatnonzero(np.isin(self.groups, wanted)))

    def take(self, at: Ints) -> Heads:
        return Heads(take_table(self.rows, at), self.groups[at], self.stored[at], self.peers[at])


@dataclass(frozen=True)
class Changed:
    """The rows that a batch changes, with their groups and levels."""

    delta: Delta
    groups: Ints
    levels: Ints
    weights: Ints

    def heads(self, wanted: Bools) -> Heads:
        at = np.flatnonzero(wanted)
        delta = self.delta
        rows = take_table(delta.rows, at).append_column(HASH, pa.array(delta.hashes[at]))
        rows = rows.append_column(COUNT, pa.array(delta.counts[at]))
        return Heads(rows, self.groups[at], (delta.counts - self.weights)[at], np.zeros_like(at))


@dataclass(frozen=True)
class Division:
    """All rows of some groups up to their level `top` (given for all groups), and the new level of each row."""

    groups: Ints
    heads: Heads
    top: Ints
    level: Ints


@dataclass(frozen=True)
class LeveledRows:
    """`partition` are the columns of a group's key; `first` is how many rows the first level may have."""

    columns: pa.Schema
    partition: tuple[str, ...]
    order: tuple[SortKey, ...]
    first: int

    @property
    def rows(self) -> CountedRows:
        return CountedRows("rows", self.columns)

    @property
    def levels(self) -> TableSpec:
        keys = pa.schema([self.columns.field(name) for name in self.partition])
        bound = pa.struct(list(widen(self.columns)))
        return TableSpec("levels", keys, pa.schema([(SIZES, pa.list_(pa.int64())), (BOUNDS, pa.list_(bound))]))

    @property
    def capacity(self) -> list[int]:
        """How many rows each level may have."""
        return [*(self.first * GROWTH**level for level in range(LEVELS - 1)), 1 << 62]

    def groups_of(self, levels: StateTable, net: Net) -> tuple[LevelGroups, Ints]:
        """The groups of these rows, and which one each row belongs to. The size of a single level is not known."""
        prefixes, keys = net.hashes >> 32, key_columns(net.rows, self.partition)
        (of_row,), first = key_ids([prefixes], [keys])
        prefixes, keys = prefixes[first], [key.take(pa.array(first)) for key in keys]
        found = levels.lookup(prefixes << 32, keys)
        # A group that was never divided has no entry: most groups are small and cost nothing here.
        lists, bounds = flat(found.values, SIZES), flat(found.values, BOUNDS)
        lengths = lists.value_lengths().fill_null(0).to_numpy()
        sizes: Sizes = np.zeros((len(first), LEVELS), dtype=np.int64)
        sizes[np.arange(LEVELS) < lengths[:, None]] = lists.flatten().to_numpy()
        highest = (lengths - 1).clip(0).astype(np.int64)
        rows = pa.Table.from_struct_array(bounds.flatten()).cast(widen(self.columns))
        starts = np.cumsum(highest) - highest
        return LevelGroups(prefixes, keys, highest, sizes, rows, starts), of_row

    def single_levels(self, net: Net) -> tuple[LevelGroups, Ints]:
        """The groups of rows that are never divided."""
        return self.groups_of(StateTable(self.levels), net)

    def changed(self, table: StateTable, net: Net, groups: LevelGroups, of_row: Ints) -> Changed:
        """What the rows of a batch make of those that are stored, each in its level."""
        level = self._level_of(net.rows, of_row, groups)
        # The level is part of the hash, so that the rows of a level are one range of the state: the first level is read
        # without touching the others.
        hashes = _at_level(net.hashes, level)
        order = np.argsort(hashes, kind="stable")
        net = Net(take_table(net.rows, order), hashes[order], net.weights[order])
        return Changed(self.rows.delta(table, net), of_row[order], level[order], net.weights)

    def _level_of(self, rows: pa.Table, of_row: Ints, groups: LevelGroups) -> Ints:
        """How many bounds come before each row. A row that equals a bound does not come after it."""
        level: Ints = np.zeros(rows.num_rows, dtype=np.int64)
        among = np.flatnonzero(groups.highest[of_row])
        if not len(among):
            return level
        of_bound = np.repeat(np.arange(len(groups)), groups.highest)
        numbers = np.concatenate([of_row[among], of_bound])
        is_bound = np.arange(len(numbers)) >= len(among)
        both = concat([take_table(rows, among), groups.bounds])
        # Rows and bounds are sorted together, once for all groups: a binary search per group would be a loop in Python.
        order = order_rows(both, numbers, self.order, [is_bound.astype(np.int64)]).order
        before: Ints = np.empty(len(numbers), dtype=np.int64)
        before[order] = np.cumsum(is_bound[order]) - groups.bound_starts[numbers[order]]
        level[among] = before[: len(among)]
        return level

    def read(self, table: StateTable, groups: LevelGroups, wanted: Ints, top: Ints) -> Heads:
        """All stored rows of the wanted groups in their levels up to `top` (given for all groups)."""
        prefixes = groups.prefixes[wanted]
        low = distinct(prefixes) << 32
        highest = np.zeros(len(low), dtype=np.int64)  # two groups may share a prefix
        np.maximum.at(highest, np.searchsorted(low, prefixes << 32), top[wanted])
        found = self.rows.scan_all(table, low, low + ((highest + 1) << _SHIFT) - 1)
        hashes = flat(found, HASH).to_numpy()
        mine, theirs = [key.take(pa.array(wanted)) for key in groups.keys], key_columns(found, self.partition)
        of_row = owners(prefixes, mine, hashes >> 32, theirs)
        of_row = np.where(of_row < 0, -1, wanted[of_row])
        level = (hashes >> _SHIFT) & (LEVELS - 1)
        heads = Heads(found, of_row, flat(found, COUNT).to_numpy(), np.zeros_like(of_row))
        return heads.take(np.flatnonzero((of_row >= 0) & (level <= top[of_row])))

    def applied(self, heads: Heads, changes: Heads) -> Heads:
        """The rows as they are with the changes."""
        together = concat([changes.rows.select(heads.rows.column_names), heads.rows])
        keys = [flat(together, name) for name in self.columns.names]
        ids = group_rows(flat(together, HASH).to_numpy(), keys).of_row
        mine = len(changes.groups)
        # A changed row replaces its stored version; with a count of 0 it is gone.
        kept = np.concatenate([changes.counts != 0, ~np.isin(ids[mine:], ids[:mine])])
        groups, stored = (np.concatenate(p) for p in ((changes.groups, heads.groups), (changes.stored, heads.stored)))
        return Heads(together, groups, stored, np.zeros_like(ids)).take(np.flatnonzero(kept))

    def in_order(self, heads: Heads) -> Heads:
        ordered = order_rows(heads.rows.select(self.columns.names), heads.groups, self.order)
        heads = heads.take(ordered.order)
        return Heads(heads.rows, heads.groups, heads.stored, np.cumsum(ordered.peer_starts))

    def top_of_division(self, sizes: Sequence[int], highest: int, least: int, *, short: bool) -> int | None:
        """Up to which level a group must be divided again: because a level has too many rows, or the first one is
        `short` of rows. `least` are the rows that the first level needs. None if all is well."""
        capacity = self.capacity
        # Levels grow geometrically, so a row moves O(log n) times in its life, as in a merge tree.
        over = [n for n in range(1, highest + 1) if sizes[n] > capacity[n]]
        if sizes[0] > max(capacity[0], 2 * least):
            over.append(0)
        if not over and not short:
            return None
        top, total = max(over, default=0), 0
        for level in range(LEVELS):
            total += sizes[level]
            # A level takes part if it, and all below it, can be left half full: then many rows may come before the next
            # division.
            reached = level >= top and (total >= capacity[0] // 2 or level >= highest)
            if reached and total - sum(capacity[:level]) // 2 <= max(capacity[level], 2 * least):
                return level
        return LEVELS - 1

    def divided(self, wanted: Ints, heads: Heads, least: Ints, top: Ints) -> Division:
        """New levels, each half full, the first one with at least `least` rows; what is left goes to the level `top`.
        Both are given for all groups."""
        place = np.arange(len(heads.groups)) - np.searchsorted(heads.groups, heads.groups)
        level: Ints = np.zeros(len(place), dtype=np.int64)
        # Half full, so that the next rows on either side of a bound do not divide the group again at once.
        end = np.maximum(self.capacity[0] // 2, least)[heads.groups]
        for number in range(1, int(top[heads.groups].max(initial=0)) + 1):
            level += (place >= end) & (top[heads.groups] >= number)
            end = end + self.capacity[number] // 2
        return Division(wanted, heads, top, level)

    def write(self, table: StateTable, changed: Changed, division: Division | None) -> None:
        """Store what the batch changed, and the rows that have another level now."""
        rest = np.ones(len(changed.groups), dtype=np.bool_)
        parts = []
        if division is not None:
            divided = np.isin(changed.groups, division.groups) & (changed.levels <= division.top[changed.groups])
            # Rows of divided levels are written by `_moved`, under their new level; here they would be written twice,
            # once under the old one.
            rest = ~(divided & (changed.delta.counts != 0))
            parts = self._moved(division)
        new = changed.heads(rest)
        parts.append((new.hashes, new.rows, new.counts == 0))
        rows = concat([part.select([*self.columns.names, COUNT]) for _, part, _ in parts])
        keys = [flat(rows, name) for name in self.columns.names]
        hashes, gone = (np.concatenate([part[n] for part in parts]) for n in (0, 2))
        table.write(hashes, keys, [flat(rows, COUNT)], gone)

    def _moved(self, division: Division) -> list[tuple[Ints, pa.Table, Bools]]:
        """Hashes, rows, and whether they are gone, for the rows that are not stored as they are."""
        heads = division.heads
        new = _at_level(heads.hashes, division.level)
        # A row that moves leaves a tombstone at its old hash: the level is part of the key of the state.
        left = heads.take(np.flatnonzero((new != heads.hashes) & (heads.stored != 0)))
        other = np.flatnonzero((new != heads.hashes) | (heads.stored != heads.counts))
        parts = [(left.hashes, left.rows, np.ones(len(left.groups), dtype=np.bool_))]
        return [*parts, (new[other], take_table(heads.rows, other), np.zeros(len(other), dtype=np.bool_))]

    def store(self, levels: StateTable, groups: LevelGroups, division: Division | None) -> None:
        """The sizes of all groups that have several levels, and their bounds, which are new for divided ones."""
        sizes, bounds = groups.sizes, groups.bounds
        places = [list(range(s, s + n)) for s, n in zip(groups.bound_starts, groups.highest, strict=True)]
        if division is not None:
            bounds = concat([bounds, division.heads.rows.select(self.columns.names)])
            for group in division.groups.tolist():
                self._redivide(groups, division, group, places)
        several = [n for n, of_group in enumerate(places) if of_group or groups.highest[n]]
        if not several:
            return
        # A group that shrank to one level needs no entry any more.
        gone = np.array([not places[n] for n in several], dtype=np.bool_)
        kept = [sizes[n, : len(places[n]) + 1].tolist() for n in several]
        flat_places = np.array([place for n in several for place in places[n]], dtype=np.int64)
        rows = take_table(bounds, flat_places)
        offsets = np.cumsum([0, *(len(places[n]) for n in several)]).astype(np.int32)
        structs = pa.StructArray.from_arrays(
            [flat(rows, n) for n in rows.column_names], fields=list(widen(self.columns))
        )
        values = [pa.array(kept, pa.list_(pa.int64())), pa.ListArray.from_arrays(pa.array(offsets), structs)]
        keys = [key.take(pa.array(several, pa.int64())) for key in groups.keys]
        levels.write(groups.prefixes[several] << 32, keys, values, gone)

    def _redivide(self, groups: LevelGroups, division: Division, group: int, places: list[list[int]]) -> None:
        """The new sizes and bounds of one group: the last row of each new level; above them all is as it was."""
        top, highest = int(division.top[group]), int(groups.highest[group])
        start, stop = np.searchsorted(division.heads.groups, [group, group + 1])
        ends = np.searchsorted(division.level[start:stop], np.arange(top + 1), "right")
        groups.sizes[group, : top + 1] = np.diff(ends, prepend=0)
        reached = int(division.level[stop - 1]) if stop > start else 0
        new = (groups.bounds.num_rows + start + ends[:reached] - 1).tolist()
        # Levels that are empty now end where the last of them ended.
        if top < highest:
            new += [places[group][top]] * (top - reached + 1) + places[group][top + 1 :]
        places[group] = new


def _at_level(hashes: Ints, level: Ints) -> Ints:
    return np.asarray((hashes & ~np.int64(0xFFFFFFFF)) | (level << _SHIFT) | (hashes & _BELOW))
