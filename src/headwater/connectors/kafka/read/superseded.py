"""Messages of an upsert table that a later one of the same key supersedes: in a batch, only the last one counts.

All messages of a key are in one partition, in order, so each partition is looked at on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools
from headwater.connectors.workers import Batches

__all__ = ["newest_messages", "newest_rows", "partition_runs"]


def newest_messages(run: Sequence[pa.RecordBatch], chunk_rows: int) -> Iterator[pa.RecordBatch]:
    """Of the messages of one partition the last one of every key, in chunks of about so many."""
    # Before decoding: in a topic with hot keys most messages of a batch are superseded, and decoding is the larger part
    # of the cost.
    kept = _in_pieces(_last_of(_keys(run), None), run)
    left = (batch.filter(mask) for batch, mask in zip(run, kept, strict=True))
    return _rechunked(left, chunk_rows)


def newest_rows(run: Sequence[pa.RecordBatch], rows: Sequence[pa.RecordBatch], sure: Bools) -> Iterator[pa.RecordBatch]:
    """Of `rows`, one for each of the messages, those whose message is the last `sure` one of its key; and those that
    are not sure."""
    kept = _in_pieces(_last_of(_keys(run), sure), run)
    return (batch.filter(mask) for batch, mask in zip(rows, kept, strict=True))


def _keys(run: Sequence[pa.RecordBatch]) -> pa.ChunkedArray:
    return pa.chunked_array([batch.column("key") for batch in run])


def partition_runs(batches: Batches) -> Iterator[list[pa.RecordBatch]]:
    """The same rows, with those of each partition together: they follow each other already."""
    run: list[pa.RecordBatch] = []
    last: tuple[object, ...] | None = None
    for batch in batches:
        for piece in _of_one_partition(batch):
            here = tuple(piece.column(name)[0].as_py() for name in _place_of(piece))
            if run and here != last:
                yield run
                run = []
            run.append(piece)
            last = here
    if run:
        yield run


def _place_of(batch: pa.RecordBatch) -> list[str]:
    return [name for name in ("topic", "partition") if name in batch.schema.names]


def _of_one_partition(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows == 0:
        return
    changes: Bools = np.zeros(batch.num_rows - 1, np.bool_)
    for name in _place_of(batch):
        column = batch.column(name)
        # A task may read several partitions. Offsets, and so "later", mean something only within one of them.
        changes |= pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    edges = [0, *(int(place) + 1 for place in np.flatnonzero(changes)), batch.num_rows]
    for start, end in pairwise(edges):
        yield batch.slice(start, end - start)


def _last_of(keys: pa.ChunkedArray, sure: Bools | None) -> Bools:
    """Which rows are the last ones of their keys. With `sure`, only those supersede others, and are superseded."""
    # Codes of keys instead of keys: assigning all places to them in order leaves the last one, without a loop.
    encoded = keys.dictionary_encode()
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
    places = np.arange(len(codes)) if sure is None else np.flatnonzero(sure)
    last = np.full(len(encoded.chunk(0).dictionary), -1, np.int64)
    last[codes[places]] = places  # of several the last one stays
    kept: Bools = last[codes] == np.arange(len(codes))
    # A message that may be bad stays in any case: if it is good, it counts as the newest; the operator behind decides
    # by offset.
    return kept if sure is None else kept | ~sure


def _in_pieces(mask: Bools, run: Sequence[pa.RecordBatch]) -> Iterator[pa.Array]:
    start = 0
    for batch in run:
        yield pa.array(mask[start : start + batch.num_rows])
        start += batch.num_rows


def _rechunked(batches: Batches, rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of about so many."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= rows:
            yield pa.concat_batches(waiting)
            waiting = []
    if any(b.num_rows for b in waiting):
        yield pa.concat_batches(waiting)
