"""A sorted run: immutable rows, sorted by the hash of their key, each key at most once.

The columns are `HASH`, `TOMBSTONE` (the key was deleted), the key columns, the value columns. The rows lie in record
batches of bounded size, so that a run can be written and merged piece by piece. A search first finds the record batch,
by the last hash of each, and then the row in it: of a run that is mapped from a file only the pages are touched that
hold the rows asked for, and a few of its hashes. Hashes only find candidates: whoever asks compares the keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.state.columns import HASH, Ints, widen
from headwater.state.manifest import RunFile

__all__ = ["BATCH_BYTES", "BATCH_ROWS", "TOMBSTONE", "Run", "TableSpec", "batch_rows"]

TOMBSTONE = "__hw_tombstone"
_KEYS = b"headwater.key-columns"
_BY_TIME = b"headwater.by-time"

BATCH_ROWS = 1 << 19
BATCH_BYTES = 32 << 20
"""The most rows of a record batch, and about how many bytes it may have if rows are wide. Of fewer rows a merge would
need less memory, but a lookup visits every record batch that its keys are spread over: 1,000 keys in a mapped run of 20
million rows take 10 ms with batches of 65,536 rows, 3.5 ms with 262,144, 1.7 ms with a million."""


@dataclass(frozen=True)
class TableSpec:
    """The columns of a state table. The pair (name, schema) is part of a job's plan fingerprint.

    In a table that is ordered `by_time` the upper half of a hash is a time, and the hash of the key that decides about
    the state partition is its lower half."""

    name: str
    keys: pa.Schema
    values: pa.Schema
    by_time: bool = False

    @property
    def run_schema(self) -> pa.Schema:
        """A file says itself how many of its columns are the key, so that state can be rewritten without its query."""
        head = [pa.field(HASH, pa.int64()), pa.field(TOMBSTONE, pa.bool_())]
        # In the metadata of the Arrow schema, which is part of the file.
        facts = {_KEYS: str(len(self.keys)), **({_BY_TIME: "true"} if self.by_time else {})}
        return pa.schema([*head, *widen(self.keys), *widen(self.values)], facts)

    def key_hashes(self, hashes: Ints) -> Ints:
        """Hashes that have that of the partitioning key in their upper half."""
        return hashes << 32 if self.by_time else hashes

    @staticmethod
    def of_run(name: str, schema: pa.Schema) -> TableSpec:
        """The table that a file with this schema is a run of."""
        columns, keys = list(schema)[2:], int(schema.metadata[_KEYS])
        return TableSpec(name, pa.schema(columns[:keys]), pa.schema(columns[keys:]), _BY_TIME in schema.metadata)


class Run:
    """`file` says where it is stored; None for a run of the current step."""

    def __init__(self, schema: pa.Schema, batches: Sequence[pa.RecordBatch], file: RunFile | None = None) -> None:
        self.schema = schema
        self.batches = [batch for batch in batches if batch.num_rows]
        self.file = file
        self._hashes: list[Ints] = [batch.column(HASH).to_numpy() for batch in self.batches]
        # The last hash of each record batch: reading it touches one page of a mapped file, and is remembered.
        self._lasts: Ints = np.array([hashes[-1] for hashes in self._hashes], dtype=np.int64)
        self._starts: Ints = np.cumsum([0, *map(len, self._hashes)], dtype=np.int64)

    @classmethod
    def of(cls, table: pa.Table) -> Run:
        """A run in memory, of rows that are sorted."""
        return cls(table.schema, table.to_batches(max_chunksize=batch_rows(table.nbytes, table.num_rows)))

    @property
    def rows(self) -> int:
        return int(self._starts[-1])

    @cached_property
    def bytes(self) -> int:
        return self.file.bytes if self.file else sum(batch.nbytes for batch in self.batches)

    @property
    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches, self.schema)

    def rank(self, hashes: Ints, side: Literal["left", "right"] = "left") -> Ints:
        """For each of these hashes, which are sorted, how many rows have a smaller one (or, on the right `side`, one
        that is not greater)."""
        if len(self.batches) == 1:
            return np.searchsorted(self._hashes[0], hashes, side)
        ranks: Ints = np.full(len(hashes), self.rows, dtype=np.int64)
        # First the record batch, then the row in it: a binary search over the whole run would touch pages all over
        # it.
        for batch, part in _parts(np.searchsorted(self._lasts, hashes, side), len(self.batches)):
            ranks[part] = self._starts[batch] + np.searchsorted(self._hashes[batch], hashes[part], side)
        return ranks

    def hashes_at(self, rows: Ints) -> Ints:
        """The hashes of these rows, which are in order."""
        found: Ints = np.empty(len(rows), dtype=np.int64)
        for batch, part in self._batches_of(rows):
            found[part] = self._hashes[batch][rows[part] - self._starts[batch]]
        return found

    def take(self, rows: Ints) -> pa.Table:
        """A copy of these rows, which are in order. Arrow itself would first copy a column of many pieces into one."""
        pieces = [
            self.batches[batch].take(pa.array(rows[part] - self._starts[batch]))
            for batch, part in self._batches_of(rows)
        ]
        return pa.Table.from_batches(pieces, self.schema).combine_chunks()

    def between(self, start: int, stop: int) -> list[pa.RecordBatch]:
        """The rows from `start` to `stop`, without a copy."""
        first, last = np.searchsorted(self._starts, [start, stop], "right") - 1
        pieces = []
        for number in range(first, min(int(last) + 1, len(self.batches))):
            begin = int(self._starts[number])
            low, high = max(start - begin, 0), min(stop - begin, self.batches[number].num_rows)
            if high > low:
                pieces.append(self.batches[number].slice(low, high - low))
        return pieces

    def _batches_of(self, rows: Ints) -> Iterator[tuple[int, slice]]:
        if len(self.batches) == 1:
            return iter([(0, slice(None))])
        return _parts(np.searchsorted(self._starts, rows, "right") - 1, len(self.batches))

    def without_tombstones(self) -> Run:
        if not any(pc.any(batch.column(TOMBSTONE)).as_py() for batch in self.batches):
            return self
        return Run(self.schema, [batch.filter(pc.invert(batch.column(TOMBSTONE))) for batch in self.batches])


def batch_rows(size: int, rows: int) -> int:
    """How many rows a record batch may have, given the bytes of so many rows."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES * rows // max(size, 1)))


def _parts(numbers: Ints, end: int) -> Iterator[tuple[int, slice]]:
    """The parts of `numbers`, which are sorted, that hold the same number; those from `end` on are left out."""
    if not len(numbers):
        return
    cuts = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
    for start, stop in pairwise(cuts):
        number = int(numbers[start])
        if number < end:
            yield number, slice(start, stop)
