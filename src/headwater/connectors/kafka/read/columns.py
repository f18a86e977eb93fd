"""Payloads of messages → columns, by the formats' column readers, inside Spark's Python workers.

A column reader reads a chunk as a whole or refuses it, because of one message perhaps. A chunk that is refused is cut
into smaller pieces, and those again, so that few messages are left to Spark's expressions. Where nearly all pieces are
refused, trying costs time and gains nothing: then chunks are passed on as they are, and tried again now and then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import Bools, spread
from headwater.formats.base import ColumnReader, RowSplitter

__all__ = ["ColumnDecoder", "PayloadColumns", "expanded"]

CUT = 16
CUTS = 2
LONGEST_PAUSE = 64


@dataclass(frozen=True)
class PayloadColumns:
    """How one payload ('key' or 'value') is read: `types` are Arrow's, one per column. Without a `reader` all of its
    messages are left to the expressions."""

    payload: str
    types: tuple[pa.DataType, ...]
    reader: ColumnReader | None
    splitter: RowSplitter | None

    def read(self, payloads: pa.Array) -> list[pa.Array] | None:
        """NULL where the payload is; None if any message is refused."""
        if self.reader is None:
            return None
        # Column readers know nothing of NULL payloads (tombstones): those are left out and put back.
        found = payloads.drop_null() if payloads.null_count else payloads
        read = self.reader.read(found, self.types) if len(found) else [pa.nulls(0, t) for t in self.types]
        if read is None or len(found) == len(payloads):
            return read
        present = payloads.is_valid().to_numpy(zero_copy_only=False)
        return [spread(column, present) for column in read]


def expanded(batch: pa.RecordBatch, payloads: Sequence[PayloadColumns]) -> pa.RecordBatch:
    """One row for every row that the messages hold. A message of several has its other columns in each of them."""
    for one in payloads:
        found = one.splitter(batch.column(one.payload)) if one.splitter is not None else None
        if found is not None:
            # Split before reading: a refused element of an array then takes only its own row to the fallback.
            parts, places = found
            batch = batch.take(pa.array(places))
            batch = batch.set_column(batch.schema.get_field_index(one.payload), batch.schema.field(one.payload), parts)
    return batch


class ColumnDecoder:
    """Reads the rows of one task, which come about `chunk_rows` at a time; it remembers how much was refused so far."""

    def __init__(self, payloads: Sequence[PayloadColumns], chunk_rows: int) -> None:
        self._payloads = payloads
        self._able = bool(payloads) and all(one.reader is not None for one in payloads)
        self._smallest = max(1, chunk_rows // CUT**CUTS)
        self._effort = _Effort(self._smallest)

    def __call__(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], Bools]:
        """The columns of all payloads, and which rows were refused: those have NULL in all of them."""
        # Refused until read: a reader that answers nothing must never look like one that read NULLs.
        refused: Bools = np.ones(batch.num_rows, np.bool_)
        types = [t for one in self._payloads for t in one.types]
        if not self._able or batch.num_rows == 0:
            return [pa.nulls(batch.num_rows, t) for t in types], refused
        pieces: list[list[pa.Array]] = []
        place = 0
        for rows, columns in self._pieces(batch):
            refused[place : place + rows] = columns is None
            place += rows
            pieces.append(columns if columns is not None else [pa.nulls(rows, t) for t in types])
        if len(pieces) == 1:
            return pieces[0], refused
        return [pa.concat_arrays(parts) for parts in zip(*pieces, strict=True)], refused

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[tuple[int, list[pa.Array] | None]]:
        """The rows in order, in pieces: how many, and their columns unless they were refused."""
        effort, read = self._effort, 0
        size = effort.first_size(batch.num_rows)
        if size == 0:
            yield batch.num_rows, None
            return
        for rows, columns in self._cut(batch, size):
            read += rows if columns is not None else 0
            yield rows, columns
        effort.note(batch.num_rows, size, read)

    def _cut(self, batch: pa.RecordBatch, size: int) -> Iterator[tuple[int, list[pa.Array] | None]]:
        for start in range(0, batch.num_rows, size):
            piece = batch.slice(start, size)
            columns = self._read(piece)
            # Cutting further would cost more than letting Spark's expressions read a few good messages.
            if columns is not None or size <= self._smallest:
                yield piece.num_rows, columns
            else:
                yield from self._cut(piece, max(self._smallest, size // CUT))

    def _read(self, batch: pa.RecordBatch) -> list[pa.Array] | None:
        columns: list[pa.Array] = []
        for one in self._payloads:
            found = one.read(batch.column(one.payload))
            if found is None:
                return None
            columns += found
        return columns


class _Effort:
    """How large the pieces are that are tried first. A chunk of which all was read lets the next one be tried as a
    whole; one of which something was refused lets it be tried in pieces; one of which nearly all was refused makes a
    pause, of 1, 2, 4, … chunks, after which one piece is tried."""

    def __init__(self, smallest: int) -> None:
        self._smallest = smallest
        self._depth = 0
        self._pause = 0
        self._next_pause = 1

    def first_size(self, rows: int) -> int:
        """0: leave all of the chunk to the expressions."""
        # Backing off: where nearly everything is refused, trying costs as much as reading, and gains nothing.
        if self._pause > 0:
            self._pause -= 1
            return 0
        size = max(rows, self._smallest)
        for _ in range(self._depth):
            size = max(self._smallest, size // CUT)
        return size

    def note(self, rows: int, size: int, read: int) -> None:
        if read == rows:
            self._depth, self._next_pause = max(0, self._depth - 1), 1
        elif read * 4 >= rows:
            # Some of it is refused: smaller first pieces waste less on a refused one.
            self._depth, self._next_pause = 1 if read * 4 >= rows * 3 else 2, 1
        else:
            self._depth = 2
            self._pause, self._next_pause = self._next_pause, min(2 * self._next_pause, LONGEST_PAUSE)
