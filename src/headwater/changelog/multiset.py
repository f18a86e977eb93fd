"""How often each value occurs in its group.

DISTINCT aggregates, and MIN and MAX over input with retractions, keep one such table per argument. A step turns weights
(+1 inserted, -1 retracted) into transitions: +1 where a value appeared, -1 where its last occurrence was retracted.

The upper half of a row's hash comes from the group, the lower half from the value, so that all values of a group lie
side by side in every sorted run and can be scanned when its smallest or largest value was retracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Ints, equal_rows, flat, widen
from headwater.changelog.grouping import group_rows
from headwater.changelog.kinds import HASH
from headwater.changelog.reduce import better, reduce_numbered
from headwater.state.table import StateTable, TableSpec

__all__ = ["GROUP", "Held", "Multiset", "prefix"]

COUNT = "__hw_count"
GROUP = "__hw_group"
"""The number of a row's group in the current batch."""
Held = Literal["value", "list"]


def prefix(hashes: Ints) -> Ints:
    """The part of a hash that all values of one group share."""
    shared: Ints = hashes >> 32
    return shared


@dataclass(frozen=True)
class Multiset:
    """`value` is an input column, `weight` and `hash_` the input columns with its weight and its hash. Rows
    that hold a 'list' have lists of values and of their hashes. Transitions have the column `arrival`, if there is one,
    of the first row with their value."""

    name: str
    groups: pa.Schema
    value: pa.Field
    weight: str
    hash_: str
    holds: Held = "value"
    arrival: str = ""

    @property
    def spec(self) -> TableSpec:
        return TableSpec(self.name, pa.schema([*self.groups, self.value]), pa.schema([(COUNT, pa.int64())]))

    def unpacked(self, rows: pa.Table, groups: Ints) -> tuple[pa.Table, Ints]:
        """One row per value, where a row holds a list of them, and the group of each."""
        if self.holds == "value":
            return rows, groups
        values = flat(rows, self.value.name)
        parents = pc.list_parent_indices(values)
        single, hashes = values.flatten(), flat(rows, self.hash_).flatten()
        columns = {name: flat(rows, name).take(parents) for name in self.groups.names}
        columns |= {self.value.name: single, self.hash_: hashes, self.weight: pc.is_valid(single).cast(pa.int64())}
        unpacked = pa.table(columns)
        return unpacked.cast(widen(unpacked.schema)), groups[parents.to_numpy()]

    def apply(self, table: StateTable, rows: pa.Table, groups: Ints) -> pa.Table:
        """Count the rows in, which belong to these groups of the batch; answer with GROUP, the value and `weight` (+1
        appeared, -1 disappeared)."""
        names = [*self.groups.names, self.value.name]
        more = [self.arrival] if self.arrival else []
        used = rows.select([self.hash_, *names, self.weight, *more]).append_column(GROUP, pa.array(groups))
        weights = flat(used, self.weight).to_numpy()
        if not weights.all():
            used, weights = used.filter(pa.array(weights != 0)).combine_chunks(), weights[weights != 0]
        # A value that is added and retracted in the same batch never reaches the state.
        net, weights = self._net(used, weights)
        hashes = flat(net, self.hash_).to_numpy()
        keys = [flat(net, name) for name in names]
        found = table.lookup(hashes, keys)
        before = np.where(found.hit, pc.fill_null(flat(found.values, COUNT), 0).to_numpy(), 0)
        after = before + weights
        table.write(hashes, keys, [pa.array(after)], after == 0)
        # Counts below 0 are kept (a retraction that came first), but such a value is not there.
        moved = np.sign(after).clip(0) - np.sign(before).clip(0)
        transitions = net.select([GROUP, self.value.name, *more]).append_column(self.weight, pa.array(moved))
        return transitions.filter(pa.array(moved != 0)).combine_chunks()

    def _net(self, rows: pa.Table, weights: Ints) -> tuple[pa.Table, Ints]:
        """One row per value of a group, sorted by hash, and its net weight, which is not 0."""
        keys = [flat(rows, name) for name in (*self.groups.names, self.value.name)]
        values = group_rows(flat(rows, self.hash_).to_numpy(), keys)
        net = np.zeros(len(values), dtype=np.int64)
        # `add.at`: with plain indexing numpy would add only one of several rows with the same value.
        np.add.at(net, values.of_row, weights)
        left = net != 0
        first = values.first
        if self.arrival:
            order = np.lexsort([flat(rows, self.arrival).to_numpy(), values.of_row])
            first = order[np.searchsorted(values.of_row[order], np.arange(len(values)))]
        return rows.take(pa.array(first[left])), net[left]

    def extremes(self, table: StateTable, groups: Sequence[pa.Array], hashes: Ints, function: str) -> pa.Array:
        """MIN or MAX of each group, from all its values; NULL for a group without any. `hashes` are in order."""
        best = pa.nulls(len(hashes), widen(pa.schema([self.value])).field(0).type)
        # Values of a group lie together, because their hashes share its upper half: a scan reads them and little
        # else.
        for batch in table.scan_prefix(prefix(hashes)):
            rows = pa.Table.from_batches([batch])
            rows = rows.filter(pc.greater(rows.column(COUNT), 0)).combine_chunks()
            owners = self._owners(rows, groups, prefix(hashes))
            mine = owners >= 0
            values = flat(rows, self.value.name).filter(pa.array(mine))
            best = better(best, reduce_numbered(values, owners[mine], len(hashes), function), function)
        return best

    def _owners(self, rows: pa.Table, groups: Sequence[pa.Array], prefixes: Ints) -> Ints:
        """Which of the groups each row belongs to, or -1. The upper half of the hash finds a candidate, the key
        decides; groups with the same upper half stand side by side."""
        wanted, keys = prefix(flat(rows, HASH).to_numpy()), [flat(rows, n) for n in self.groups.names]
        owners: Ints = np.full(len(wanted), -1, dtype=np.int64)
        places, candidates = np.arange(len(wanted)), np.searchsorted(prefixes, wanted)
        while True:
            inside = candidates < len(prefixes)
            inside[inside] = prefixes[candidates[inside]] == wanted[places[inside]]
            places, candidates = places[inside], candidates[inside]
            if not len(places):
                return owners
            here, there = pa.array(places), pa.array(candidates)
            same = equal_rows([k.take(here) for k in keys], [g.take(there) for g in groups], len(places))
            owners[places[same]] = candidates[same]
            places, candidates = places[~same], candidates[~same] + 1
