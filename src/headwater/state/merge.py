"""Several sorted runs into one, in chunks of bounded size.

All runs are cut at the same hash, so that the rows of a key are in the same chunk of every run and a chunk can be
merged on its own: its memory is all that is needed. Of several rows with one key the newest stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.state.columns import HASH, Bools, Ints, concat, equal_rows, flat
from headwater.state.runs import TOMBSTONE, Run, TableSpec, batch_rows

__all__ = ["merged"]

NEAR = 8
"""How many rows with one hash are compared one by one."""
_PLACE = "__hw_place"


def merged(
    spec: TableSpec,
    runs: Sequence[Run],
    *,
    drop_tombstones: bool,
    ranges: Sequence[tuple[int, int]] | None = None,
    chunk_rows: int = 0,
) -> Iterator[pa.RecordBatch]:
    """The rows of `runs`, oldest first; with `ranges`, only the rows from start to stop of each. Tombstones may be
    dropped if nothing older than these runs exists. A chunk has as many rows as a record batch, unless it is said."""
    at = np.array([start for start, _ in ranges or [(0, 0)] * len(runs)], dtype=np.int64)
    end = np.array([stop for _, stop in ranges] if ranges else [run.rows for run in runs], dtype=np.int64)
    rows = chunk_rows or batch_rows(sum(run.bytes for run in runs), sum(run.rows for run in runs))
    while (at < end).any():
        stops = _cut(runs, at, end, rows)
        pieces = [run.between(int(low), int(high)) for run, low, high in zip(runs, at, stops, strict=True)]
        # Stable sorting keeps this order among rows of one key, so that the first of them is the newest.
        newest_first = [batch for piece in reversed(pieces) for batch in piece]
        chunk = concat([pa.Table.from_batches(newest_first, spec.run_schema)])
        if sum(map(bool, pieces)) > 1:  # a single run is sorted, and has no key twice
            chunk = _newest(spec, chunk)
        if drop_tombstones:
            chunk = chunk.filter(pc.invert(chunk.column(TOMBSTONE)))
        # Filtering leaves slices of larger buffers; combining frees those before the next chunk is read.
        yield from chunk.combine_chunks().to_batches()
        at = stops


def _cut(runs: Sequence[Run], at: Ints, end: Ints, rows: int) -> Ints:
    """Where the next chunk ends in each run: after the greatest hash that leaves it about `rows` rows. Each run offers
    rows in proportion to what it has left, and the least of the hashes they end with is the cut."""
    left = end - at
    if left.sum() <= rows:
        return end
    # Proportional shares make chunks of about equal size whatever the sizes of the runs; at least one row, or it
    # would not end.
    offered = np.minimum(left, left * rows // left.sum() + 1)
    ends = [int(run.hashes_at(at[n : n + 1] + offered[n] - 1)[0]) for n, run in enumerate(runs) if left[n]]
    cut = np.array([min(ends)], dtype=np.int64)
    # All rows with this hash belong to this chunk, in every run: a key is never split between two chunks.
    after = np.array([int(run.rank(cut, "right")[0]) for run in runs], dtype=np.int64)
    stops: Ints = np.clip(after, at, end)
    return stops


def _newest(spec: TableSpec, rows: pa.Table) -> pa.Table:
    """Sorted by hash, of each key the first of these rows."""
    hashes = flat(rows, HASH).to_numpy()
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    # Comparing keys costs far more than comparing hashes: only where a hash repeats are they looked at.
    twins = np.flatnonzero(hashes[1:] == hashes[:-1]) + 1
    if len(twins):
        keys = [flat(rows, name) for name in spec.keys.names]
        keep: Bools = np.ones(len(order), dtype=np.bool_)
        keep[_shadowed(keys, hashes, order, twins)] = False
        order = order[keep]
    return rows.take(pa.array(order))


def _shadowed(keys: Sequence[pa.Array], hashes: Ints, order: Ints, twins: Ints) -> Ints:
    """Of the places whose hash occurs before them, those whose key does. Nearly always that is the place before; where
    keys share a hash, look further back, as far as the hash goes."""
    found = []
    distance = 1
    while len(twins):
        if distance > NEAR and all(map(_groupable, keys)):
            found.append(_shadowed_in_groups(keys, hashes, order, twins))
            break
        here, before = pa.array(order[twins]), pa.array(order[twins - distance])
        same = equal_rows([k.take(here) for k in keys], [k.take(before) for k in keys], len(twins))
        found.append(twins[same])
        distance += 1
        # The rest shares a hash with another key. One step further back, as long as the hash is the same.
        twins = twins[~same & (twins >= distance)]
        twins = twins[hashes[twins] == hashes[twins - distance]]
    return np.concatenate(found)


def _shadowed_in_groups(keys: Sequence[pa.Array], hashes: Ints, order: Ints, twins: Ints) -> Ints:
    """The same for hashes that very many keys share, as rows that wait for the end of one window do: stepping back from
    row to row would take the square of their number."""
    places = np.flatnonzero(np.isin(hashes, hashes[twins]))
    names = [str(number) for number in range(len(keys))]
    columns = [key.take(pa.array(order[places])) for key in keys]
    rows = pa.table([pa.array(hashes[places]), *columns, pa.array(places)], names=[HASH, *names, _PLACE])
    first = rows.group_by([HASH, *names], use_threads=False).aggregate([(_PLACE, "min")])
    left: Bools = np.zeros(len(hashes), dtype=np.bool_)
    left[flat(first, f"{_PLACE}_min").to_numpy()] = True
    return places[~left[places]]


def _groupable(key: pa.Array) -> bool:
    """Whether Arrow groups what is equal here: it takes no nested values, and has other rules for NaN and -0.0."""
    return not pa.types.is_nested(key.type) and not pa.types.is_floating(key.type)
