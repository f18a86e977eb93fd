"""The worker side of a Kafka sink: the messages of one task, with their partitions, to the broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException

from headwater.connectors.kafka.clients.client_errors import translated
from headwater.connectors.kafka.write.columns import send
from headwater.connectors.kafka.write.partitions import Partitioning
from headwater.connectors.kafka.write.pool import Pool
from headwater.connectors.kafka.write.producer import Producer
from headwater.connectors.kafka.write.transactions import CALL_SECONDS, Transactions, write_once
from headwater.protocol.batch_ids import BatchId

__all__ = ["KafkaWriter", "open_producers"]


@dataclass(frozen=True)
class KafkaWriter:
    """Writes in `transactions`, or with a plain producer of these `client` settings."""

    partitioning: Partitioning
    client: Mapping[str, Any]
    transactions: Transactions | None = None

    def __call__(self, task: int, batch: BatchId, messages: Iterable[pa.RecordBatch]) -> int:
        placed = self.partitioning.place(task, batch.number, messages)
        if self.transactions is not None:
            return write_once(self.transactions, task, batch, placed)
        return write_all(self.client, self.partitioning.topic, placed)


open_producers: Pool[Producer] = Pool()


def write_all(client: Mapping[str, Any], topic: str, messages: Iterable[pa.RecordBatch]) -> int:
    """Returns how many messages the broker has, as 'acks' defines it, or raises: then it may have some of them."""
    # Most tasks of a small batch have nothing to write: they neither open nor flush a producer.
    filled = (part for part in messages if part.num_rows)
    first = next(filled, None)
    if first is None:
        return 0
    key, what = tuple(sorted(client.items())), f"messages to topic '{topic}'"
    try:
        producer = open_producers.take(key, lambda: Producer(client))
    except KafkaException as error:
        raise translated(error, what) from error
    try:
        producer.topic(topic, CALL_SECONDS)
        written = sum(send(producer, topic, part) for part in chain([first], filled))
        # Longer than a message may wait: the message then fails with its own cause, before the flush runs out of time.
        producer.flush(float(client["message.timeout.ms"]) / 1000 + CALL_SECONDS)
    except KafkaException as error:
        producer.close()
        raise translated(error, what, producer.last_error) from error
    # Also if Spark cancels the task: the messages under way would be the problem of the producer's next user.
    except BaseException:
        producer.close()
        raise
    open_producers.give_back(key, producer)
    return written
