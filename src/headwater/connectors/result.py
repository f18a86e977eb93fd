"""The sink of a SELECT: chunks of Arrow bytes on their way from the job to whoever reads its rows.

No table can be declared with it. Between the job and the reader lies a `Channel` of bounded size: a reader that does
not read makes the job wait in the middle of its batch. Beside it the driver holds what one task of the batch has
answered.
"""

from __future__ import annotations

import threading
import uuid
from collections import deque
from typing import TYPE_CHECKING

from headwater.catalog.connector import Accepts, Connector
from headwater.connectors.arrow_chunks import arrow_chunks
from headwater.connectors.runtime import Renderer, RuntimeContext, Sink, SinkStart
from headwater.errors import ResultClosedError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from headwater.catalog.tables import Table

__all__ = ["Channel", "ResultConnector", "ResultSink"]

CHANNEL_BYTES = 8 << 20


class Channel:
    """Chunks in order, at most about `capacity` bytes of them. One thread puts, one takes."""

    def __init__(self, capacity: int = CHANNEL_BYTES) -> None:
        self.tag = f"headwater-{uuid.uuid4().hex[:12]}"  # of Spark's jobs, by which they can be cancelled
        self.schema: pa.Schema | None = None
        self._capacity = capacity
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._changed = threading.Condition()
        self._closed = self._finished = False

    def put(self, chunk: bytes) -> None:
        """Waits for room. Raises once nobody reads any more."""
        with self._changed:
            # One chunk is always let in: a single one larger than the capacity would otherwise wait for good.
            self._changed.wait_for(lambda: self._closed or not self._chunks or self._held < self._capacity)
            if self._closed:
                # Raised in the thread of the job: it ends the batch, and with it the query.
                raise ResultClosedError("Nobody reads the result any more.")
            self._chunks.append(chunk)
            self._held += len(chunk)
            self._changed.notify_all()

    def take(self, timeout: float | None = None) -> bytes | None:
        """The next chunk; None if none has come in this time, or none will."""
        with self._changed:
            self._changed.wait_for(lambda: self._chunks or self._finished or self._closed, timeout)
            if not self._chunks:
                return None
            chunk = self._chunks.popleft()
            self._held -= len(chunk)
            self._changed.notify_all()
            return chunk

    def finish(self) -> None:
        """Nothing more is put."""
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def close(self) -> None:
        """Nothing more is taken."""
        with self._changed:
            self._closed = True
            self._chunks.clear()
            self._held = 0
            self._changed.notify_all()

    @property
    def waiting(self) -> bool:
        """Whether something has not been taken yet."""
        return bool(self._chunks)


class ResultConnector(Connector):
    """Of the one table that a SELECT writes."""

    identifier = "result"
    summary = "The rows of a SELECT."
    options = ()
    accepts = Accepts.ALL

    def __init__(self) -> None:
        self.channel = Channel()

    def sink(self, table: Table, context: RuntimeContext) -> Sink:
        return ResultSink(self.channel, context)


class ResultSink(Sink):
    shows = True

    def __init__(self, channel: Channel, context: RuntimeContext) -> None:
        self._channel = channel
        self._context = context

    def start(self, job: SinkStart) -> None:
        """In the job's own thread, whose Spark jobs all carry the tag from here on."""
        self._context.spark.sparkContext.addJobTag(self._channel.tag)

    def encode(self, rows: DataFrame) -> DataFrame:
        from pyspark.sql.pandas.types import to_arrow_schema

        self._channel.schema = to_arrow_schema(rows.schema)
        return rows

    def renderer(self) -> Renderer:
        return arrow_chunks

    def show(self, chunk: bytes) -> int:
        rows = int.from_bytes(chunk[:8], "big")
        self._channel.put(chunk[8:])
        return rows

    def close(self) -> None:
        self._channel.finish()
