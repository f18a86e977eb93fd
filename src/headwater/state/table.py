"""A keyed table made of immutable sorted runs, as in a log-structured merge tree.

A step appends one run with the keys it changed, and merges small runs; large ones are left to compactions (see
`compaction`). Lookups are binary searches over whole batches, newest run first; they compare keys, hashes only find
candidates. Tombstones vanish when they are merged into the oldest run.

Runs are never changed after they are written, so any number of readers may map the same file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.state.columns import Bools, Ints, concat, equal_rows, expand, flat, widen
from headwater.state.compaction import first_merged
from headwater.state.merge import merged
from headwater.state.runs import BATCH_ROWS, TOMBSTONE, Run, TableSpec

__all__ = ["Lookup", "StateTable", "TableSpec"]

_UNSEEN, _DELETED = -1, -2


@dataclass(frozen=True)
class Lookup:
    """The answer to a lookup: `hit` per probe, and the value columns aligned with the probes (NULL where no hit)."""

    hit: Bools
    values: pa.Table


class StateTable:
    """One version of a keyed table: runs oldest first. `write` makes the next version in place."""

    def __init__(self, spec: TableSpec, runs: Iterable[Run] = ()) -> None:
        self.spec = spec
        self.runs = list(runs)

    @property
    def rows(self) -> int:
        """Entries in all runs: an upper bound of the number of live keys."""
        return sum(run.rows for run in self.runs)

    def lookup(self, hashes: Ints, keys: Sequence[pa.Array]) -> Lookup:
        """The current values of `keys`. `hashes` may be in any order; sorted ones are faster."""
        # Operators group their input by hash, so probes nearly always come sorted; the others pay for two
        # permutations.
        if not (hashes[1:] < hashes[:-1]).any():
            return self._lookup(hashes, keys)
        order = np.argsort(hashes, kind="stable")
        found = self._lookup(hashes[order], [key.take(pa.array(order)) for key in keys])
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return Lookup(found.hit[back], found.values.take(pa.array(back)))

    def _lookup(self, hashes: Ints, keys: Sequence[pa.Array]) -> Lookup:
        place: Ints = np.full(len(hashes), _UNSEEN, dtype=np.int64)
        pieces: list[pa.Table] = []
        taken = 0
        # Newest first: what a newer run says of a key, a tombstone included, hides all older versions of it. Probes
        # that were answered are not asked again.
        for run in reversed(self.runs):
            pending = np.flatnonzero(place == _UNSEEN)
            for probes, piece in self._matches(run, hashes, keys, pending):
                # A deleted key counts as answered too, or an older run would bring it back to life.
                live = ~flat(piece, TOMBSTONE).to_numpy(zero_copy_only=False)
                place[probes] = np.where(live, taken + np.arange(len(probes)), _DELETED)
                taken += len(probes)
                pieces.append(piece.select(self.spec.values.names))
        return Lookup(place >= 0, self._assemble(pieces, place))

    def _matches(
        self, run: Run, hashes: Ints, keys: Sequence[pa.Array], probes: Ints
    ) -> Iterator[tuple[Ints, pa.Table]]:
        """Of these probes the ones whose key is in the run, and their rows. Of several keys with one hash the first is
        compared first; probes that asked for another one go on to the next row."""
        rows = run.rank(hashes[probes])
        while True:
            inside = rows < run.rows
            probes, rows = probes[inside], rows[inside]
            # A 64-bit hash of some million keys collides rarely, but it does: the keys themselves decide.
            candidates = run.hashes_at(rows) == hashes[probes]
            probes, rows = probes[candidates], rows[candidates]
            if not len(probes):
                return
            piece, wanted = run.take(rows), pa.array(probes)
            stored = [flat(piece, name) for name in self.spec.keys.names]
            same = equal_rows(stored, [key.take(wanted) for key in keys], len(probes))
            if same.all():
                yield probes, piece
                return
            yield probes[same], piece.filter(pa.array(same)).combine_chunks()
            probes, rows = probes[~same], rows[~same] + 1

    def _assemble(self, pieces: list[pa.Table], place: Ints) -> pa.Table:
        schema = widen(self.spec.values)
        if not pieces:
            return pa.table([pa.nulls(len(place), f.type) for f in schema], schema=schema)
        # A masked index takes NULL: that is the value of a probe without a hit.
        return concat(pieces).take(pa.array(place, mask=place < 0))

    def scan_prefix(self, prefixes: Ints) -> Iterator[pa.RecordBatch]:
        """All live rows whose hash has one of these upper halves (see `changelog.multiset`), newest version."""
        low = np.unique(prefixes) << 32
        return self.scan_range(low, low + 0xFFFFFFFF)

    def scan_range(self, low: Ints, high: Ints) -> Iterator[pa.RecordBatch]:
        """All live rows whose hash is in one of the ranges `low` to `high`, both inclusive, newest version, in the
        order of hashes. Ranges are in order and do not overlap. Where the lower half of a hash keeps the order of a
        column (seconds of a timestamp, say), these are the rows of a group in its order, up to a bound."""
        starts = [run.rank(low) for run in self.runs]
        stops = [run.rank(high, "right") for run in self.runs]
        sizes = sum((stop - start for start, stop in zip(starts, stops, strict=True)), np.zeros(len(low), np.int64))
        for part in _portions(sizes):
            # Many small ranges are cheaper taken together, as one small run each; a large one must not be copied.
            if part.stop - part.start == 1:  # may be large: it is merged where it lies
                ranges = [(int(a[part.start]), int(b[part.start])) for a, b in zip(starts, stops, strict=True)]
                yield from merged(self.spec, self.runs, drop_tombstones=True, ranges=ranges)
            else:
                rows = [expand(a[part], b[part]) for a, b in zip(starts, stops, strict=True)]
                cut = [Run.of(run.take(wanted)) for run, wanted in zip(self.runs, rows, strict=True)]
                yield from merged(self.spec, cut, drop_tombstones=True)

    def write(self, hashes: Ints, keys: Sequence[pa.Array], values: Sequence[pa.Array], gone: Bools) -> None:
        """Put rows whose keys are unique among themselves. Where `gone`, a tombstone; its values are ignored."""
        if not len(hashes):
            return
        columns = [pa.array(hashes), pa.array(gone), *keys, *values]
        schema = self.spec.run_schema
        arrays = [a.cast(f.type) if a.type != f.type else a for a, f in zip(columns, schema, strict=True)]
        rows = pa.table(arrays, schema=schema)
        if (hashes[1:] < hashes[:-1]).any():
            rows = rows.take(pa.array(np.argsort(hashes, kind="stable")))
        # Sorting is stable, and keys are unique among themselves: the order of equal hashes does not matter to
        # lookups.
        self.runs.append(Run.of(rows))
        self._merge()

    def keep_above(self, last: int, most: int) -> bool:
        """Remove all rows whose hash is at most `last`, if at most so many are above it: these are written again, which
        tombstones would cost, too. Whether it was done."""
        starts = [int(run.rank(np.array([last], dtype=np.int64), "right")[0]) for run in self.runs]
        if sum(run.rows - start for run, start in zip(self.runs, starts, strict=True)) > most:
            return False
        ranges = [(start, run.rows) for run, start in zip(self.runs, starts, strict=True)]
        kept = Run(self.spec.run_schema, list(merged(self.spec, self.runs, drop_tombstones=True, ranges=ranges)))
        self.runs[:] = [kept] if kept.rows else []
        return True

    def _merge(self) -> None:
        # Tombstones may go only with the oldest run: below them nothing is left that they would have to hide.
        first = first_merged(self.runs)
        parts, oldest = self.runs[first:], first == 0
        if len(parts) > 1:
            newest = Run(self.spec.run_schema, list(merged(self.spec, parts, drop_tombstones=oldest)))
        else:
            newest = parts[0].without_tombstones() if oldest else parts[0]
        self.runs[first:] = [newest] if newest.rows else []


def _portions(sizes: Ints) -> Iterator[slice]:
    """Parts of as many neighbours as have BATCH_ROWS together, or of one that has more."""
    start, total = 0, 0
    for number, size in enumerate(sizes.tolist()):
        if number > start and total + size > BATCH_ROWS:
            yield slice(start, number)
            start, total = number, 0
        total += size
    if total:
        yield slice(start, len(sizes))
