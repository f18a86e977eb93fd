"""A keyed table made of immutable layers, as in a log-structured merge tree.

A layer is an Arrow table sorted by key hash: `HASH`, `DEAD` (the key was deleted), the key columns, the value columns.
A step appends one layer with the keys it changed; layers of similar size are merged, so there are few of them and a
key is rewritten O(log n) times. Deleted keys vanish when they are merged into the oldest layer. Lookups are binary
searches over whole batches, newest layer first. Hashes only find candidates: keys are always compared.

Layers are never changed after they are written, so any number of readers may map the same file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools, Ints, concat, equal_rows, flat, widen
from headwater.changelog.kinds import HASH

__all__ = ["DEAD", "MERGE_FACTOR", "Found", "Layer", "StateTable", "TableSpec"]

DEAD = "__dead"
MERGE_FACTOR = 1.5
"""A new layer swallows older ones while they are at most this many times its size."""


@dataclass(frozen=True)
class TableSpec:
    """The columns of a state table. The pair (name, schema) is part of a job's checkpoint signature."""

    name: str
    keys: pa.Schema
    values: pa.Schema

    @property
    def layer_schema(self) -> pa.Schema:
        head = [pa.field(HASH, pa.int64()), pa.field(DEAD, pa.bool_())]
        return pa.schema([*head, *widen(self.keys), *widen(self.values)])


@dataclass(frozen=True)
class Layer:
    """`id` is empty until the layer is stored."""

    table: pa.Table
    id: str = ""

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    @property
    def hashes(self) -> Ints:
        hashes: Ints = flat(self.table, HASH).to_numpy(zero_copy_only=True)
        return hashes


@dataclass(frozen=True)
class Found:
    """The answer to a lookup: `hit` per probe, and the value columns aligned with the probes (NULL where no hit)."""

    hit: Bools
    values: pa.Table


class StateTable:
    """One version of a keyed table: layers oldest first. `write` makes the next version in place."""

    def __init__(self, spec: TableSpec, layers: Iterable[Layer] = ()) -> None:
        self.spec = spec
        self.layers = list(layers)

    @property
    def rows(self) -> int:
        """Entries in all layers: an upper bound of the number of live keys."""
        return sum(layer.rows for layer in self.layers)

    def lookup(self, hashes: Ints, keys: Sequence[pa.Array]) -> Found:
        """The current values of `keys`. `hashes` may be in any order; sorted ones are faster."""
        count = len(hashes)
        place: Ints = np.full(count, -1, dtype=np.int64)
        open_: Ints = np.arange(count, dtype=np.int64)
        pieces: list[pa.Table] = []
        taken = 0
        for layer in reversed(self.layers):
            if not len(open_):
                break
            rows = self._search(layer, hashes, keys, open_)
            hit = rows >= 0
            if hit.any():
                piece = layer.table.take(pa.array(rows[hit]))
                live = ~flat(piece, DEAD).to_numpy(zero_copy_only=False)
                at = taken + np.arange(piece.num_rows, dtype=np.int64)
                place[open_[hit]] = np.where(live, at, -1)
                taken += piece.num_rows
                pieces.append(piece.select(self.spec.values.names))
                open_ = open_[~hit]
        return Found(place >= 0, self._assemble(pieces, place))

    def _assemble(self, pieces: list[pa.Table], place: Ints) -> pa.Table:
        schema = widen(self.spec.values)
        if not pieces:
            return pa.table([pa.nulls(len(place), f.type) for f in schema], schema=schema)
        return concat(pieces).take(pa.array(place, mask=place < 0))

    def _search(self, layer: Layer, hashes: Ints, keys: Sequence[pa.Array], probes: Ints) -> Ints:
        """The row of each probe's key in this layer, or -1."""
        wanted = hashes[probes]
        rows = np.searchsorted(layer.hashes, wanted, side="left").astype(np.int64)
        inside = rows < layer.rows
        inside[inside] = layer.hashes[rows[inside]] == wanted[inside]
        rows[~inside] = -1
        candidates = np.flatnonzero(inside)
        if not len(candidates):
            return rows
        chosen = pa.array(rows[candidates])
        stored = [flat(layer.table, name).take(chosen) for name in self.spec.keys.names]
        probed = [key.take(pa.array(probes[candidates])) for key in keys]
        wrong = candidates[~equal_rows(stored, probed, len(candidates))]
        for index in wrong:  # two keys with one hash: look at the neighbours
            rows[index] = self._scan_equal_hashes(layer, int(rows[index]), keys, int(probes[index]))
        return rows

    def _scan_equal_hashes(self, layer: Layer, row: int, keys: Sequence[pa.Array], probe: int) -> int:
        hashes, wanted = layer.hashes, _key_at(keys, probe)
        stored = [flat(layer.table, name) for name in self.spec.keys.names]
        start = hashes[row]
        while row < layer.rows and hashes[row] == start:
            if _key_at(stored, row) == wanted:
                return row
            row += 1
        return -1

    def write(self, hashes: Ints, keys: Sequence[pa.Array], values: Sequence[pa.Array], dead: Bools) -> None:
        """Put rows whose keys are unique among themselves. Values of dead rows are ignored."""
        if not len(hashes):
            return
        columns = [pa.array(hashes), pa.array(dead), *keys, *values]
        schema = self.spec.layer_schema
        arrays = [a.cast(f.type) if a.type != f.type else a for a, f in zip(columns, schema, strict=True)]
        layer = pa.table(arrays, schema=schema)
        if (hashes[1:] < hashes[:-1]).any():
            layer = layer.take(pa.array(np.argsort(hashes)))
        self.layers.append(Layer(layer))
        self._merge()

    def _merge(self) -> None:
        newest = self.layers.pop()
        while self.layers and self.layers[-1].rows <= MERGE_FACTOR * newest.rows:
            older = self.layers.pop()
            newest = self._merged(older, newest)
        if not self.layers:
            newest = _without_dead(newest)
        if newest.rows or self.layers:
            self.layers.append(newest)

    def _merged(self, older: Layer, newer: Layer) -> Layer:
        both = concat([newer.table, older.table])
        hashes = flat(both, HASH).to_numpy(zero_copy_only=True)
        order = np.argsort(hashes, kind="stable").astype(np.int64)
        hashes = hashes[order]
        twin = np.flatnonzero(hashes[1:] == hashes[:-1]) + 1
        if not len(twin):
            return Layer(both.take(pa.array(order)))
        keep: Bools = np.ones(len(order), dtype=np.bool_)
        keys = [flat(both, name) for name in self.spec.keys.names]
        first, second = pa.array(order[twin - 1]), pa.array(order[twin])
        same = equal_rows([k.take(first) for k in keys], [k.take(second) for k in keys], len(twin))
        keep[twin[same]] = False
        if not same.all():
            _drop_shadowed(keep, hashes, order, keys, twin[~same])
        return Layer(both.take(pa.array(order[keep])))

    def scan_prefix(self, prefixes: Ints) -> pa.Table:
        """All live rows whose hash has one of these upper halves (see `multiset`): keys and values, newest version."""
        found = [self._rows_with_prefix(layer, prefixes) for layer in reversed(self.layers)]
        if not found:
            return self.spec.layer_schema.empty_table()
        both = concat(found)
        ranked = both.append_column("__row", pa.array(np.arange(both.num_rows)))
        names = [HASH, *self.spec.keys.names]
        newest = ranked.group_by(names, use_threads=False).aggregate([("__row", "min")])
        rows = both.take(newest.column("__row_min"))
        return rows.filter(pc.invert(rows.column(DEAD)))

    def _rows_with_prefix(self, layer: Layer, prefixes: Ints) -> pa.Table:
        low = prefixes << 32
        start = np.searchsorted(layer.hashes, low, side="left")
        stop = np.searchsorted(layer.hashes, low + 0xFFFFFFFF, side="right")
        counts = stop - start
        if not counts.sum():
            return layer.table.slice(0, 0)
        offsets = np.repeat(start - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        return layer.table.take(pa.array(np.arange(counts.sum()) + offsets))


def _without_dead(layer: Layer) -> Layer:
    dead = flat(layer.table, DEAD)
    if dead.true_count == 0:
        return layer
    return Layer(layer.table.filter(pc.invert(dead)))


def _drop_shadowed(keep: Bools, hashes: Ints, order: Ints, keys: Sequence[pa.Array], suspects: Ints) -> None:
    """Runs of one hash that hold more than one key: keep the first (newest) row of each key."""
    for value in np.unique(hashes[suspects]):
        run = range(np.searchsorted(hashes, value, side="left"), np.searchsorted(hashes, value, side="right"))
        seen: set[str] = set()
        for index in run:
            key = _key_at(keys, int(order[index]))
            keep[index] = key not in seen
            seen.add(key)


def _key_at(columns: Sequence[pa.Array], row: int) -> str:
    """Equal for equal keys, as in `equal_rows`: NaN equals NaN."""
    return repr([column[row].as_py() for column in columns])
