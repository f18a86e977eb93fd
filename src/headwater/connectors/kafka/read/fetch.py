"""Splits → messages in Arrow batches, inside Spark's Python workers.

Messages come split by split, in the order of the splits, and batches end at places that depend on the messages alone:
reading a split again gives the same batches. Neighbouring small splits are fetched together, because the broker answers
one fetch request of a client at a time, and each waits a little for more messages.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaException

from headwater.connectors.kafka.clients.settings import consumer_settings
from headwater.connectors.kafka.read.consumer import SplitConsumer, borrowed_consumer, give_back_consumer
from headwater.connectors.kafka.read.message_columns import Run, message_batch
from headwater.connectors.kafka.read.progress import OnDataLoss
from headwater.connectors.kafka.read.splits import KafkaSplit
from headwater.errors import ValidationError
from headwater.options.session import CHUNK_ROWS

__all__ = ["CHUNK_BYTES", "Fetch", "client_settings"]

CHUNK_BYTES = 16 << 20


def client_settings(properties: Mapping[str, str]) -> dict[str, Any] | None:
    """Settings of the client for these `properties.*`, or None if it cannot do as they say."""
    try:
        settings = consumer_settings(properties)
        # librdkafka checks settings when a client is made. Trying it here finds out on the driver what workers could
        # not do.
        Consumer(settings).close()
    except (ValidationError, KafkaException):
        return None
    return settings


@dataclass(frozen=True)
class Fetch:
    """`client` are the settings of a consumer. With `on_loss` = 'continue', messages that are gone are passed over. A
    batch has `chunk_rows` messages, or fewer where they are large or the splits end."""

    client: Mapping[str, Any]
    on_loss: OnDataLoss = "fail"
    chunk_rows: int = CHUNK_ROWS
    chunk_bytes: int = CHUNK_BYTES

    def __call__(self, splits: Sequence[KafkaSplit], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The messages, as columns of `schema`, whose names are those of Spark's Kafka source."""
        consumer = borrowed_consumer(self.client)
        try:
            with _no_search_for_cycles():
                received = (message_batch(runs, schema) for runs in self._received(consumer, splits))
                yield from _chunks(received, self.chunk_rows, self.chunk_bytes)
        # A consumer in the middle of a fetch would give its messages to the next task that borrows it.
        except BaseException:  # the task may also be given up between two batches
            consumer.close()
            raise
        give_back_consumer(self.client, consumer)

    def _received(self, consumer: SplitConsumer, splits: Sequence[KafkaSplit]) -> Iterator[list[Run]]:
        for group in _groups(splits, self.chunk_rows):
            # Too large to be kept together: fetched one by one then, so that the order of splits holds.
            together = consumer.gathered(group, self.on_loss, self.chunk_bytes) if len(group) > 1 else None
            if together is None:
                for split in group:
                    yield from consumer.received([split], self.on_loss)
            elif together:
                yield together


def _groups(splits: Sequence[KafkaSplit], most: int) -> Iterator[list[KafkaSplit]]:
    """Neighbouring splits of different partitions that have no more than so many messages together."""
    group: list[KafkaSplit] = []
    for split in splits:
        # One assignment for several small splits: each costs a round trip before its first message.
        fits = sum(s.size for s in group) + split.size <= most and all(s.place != split.place for s in group)
        if group and not fits:
            yield group
            group = []
        group.append(split)
    if group:
        yield group


def _chunks(batches: Iterable[pa.RecordBatch], rows: int, size: int) -> Iterator[pa.RecordBatch]:
    """The same messages in chunks: each ends with the message that makes so many rows or bytes, and only there."""
    waiting: list[pa.RecordBatch] = []
    rows_left, bytes_left = rows, size
    for received in batches:
        batch = received
        while batch.num_rows:
            sizes = np.cumsum(_payload_sizes(batch))
            # Counted in messages, never by what happened to arrive together: a repeated read must end its batches at
            # the same places.
            taken = min(rows_left, batch.num_rows, int(np.searchsorted(sizes, bytes_left)) + 1)
            waiting.append(batch.slice(0, taken))
            rows_left, bytes_left = rows_left - taken, bytes_left - int(sizes[taken - 1])
            batch = batch.slice(taken)
            if rows_left == 0 or bytes_left <= 0:
                yield _joined(waiting)
                waiting, rows_left, bytes_left = [], rows, size
    if waiting:
        yield _joined(waiting)


def _payload_sizes(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    sizes = np.zeros(batch.num_rows, np.int64)
    for name in ("key", "value"):
        if name in batch.schema.names:
            sizes += pc.fill_null(pc.binary_length(batch.column(name)), 0).to_numpy()
    return sizes


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Thousands of messages at a time keep Python looking for garbage in them, which takes longer than making them."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
