"""The worker side of a SELECT: rows as chunks of Arrow bytes. Imports nothing else: a worker loads it while a query
waits for its first row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

__all__ = ["arrow_chunks"]

_CHUNK_BYTES = 1 << 20


def arrow_chunks(_: int, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """The number of rows, and the rows as an Arrow stream."""
    for batch in batches:
        # Chunks of about a megabyte: the driver can show the first rows while the rest is on its way.
        rows = max(1, batch.num_rows * _CHUNK_BYTES // max(batch.nbytes, 1))
        for first in range(0, batch.num_rows, rows):
            piece, buffer = batch.slice(first, rows), pa.BufferOutputStream()
            with pa.ipc.new_stream(buffer, piece.schema) as stream:
                stream.write_batch(piece)
            yield piece.num_rows.to_bytes(8, "big") + buffer.getvalue().to_pybytes()
