"""Topics: created, and read back as the table that their messages add up to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient
from generate import PARTITIONS, Table, log_table

from headwater.testing.kafka import Kafka

__all__ = ["Outcome", "create_topic", "drop_topic", "fingerprint", "messages", "read_outcome"]


@dataclass(frozen=True)
class Outcome:
    """The last value of every key (for a log, see `log_table`), and how many messages it took to get there."""

    table: Table
    messages: int


def create_topic(servers: str, topic: str) -> None:
    """Returns when it has leaders: a job that starts before would fail, as in Flink."""
    Kafka(servers).create({topic: PARTITIONS})


def drop_topic(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 4})
    admin.delete_topics([topic])[topic].result(30)


def read_outcome(servers: str, topic: str, result: str) -> Outcome:
    """Read a topic from beginning to end; in an upsert topic a null value deletes its key."""
    if result == "log":
        log = log_table(value for _, value in messages(servers, topic))
        return Outcome(log, next(iter(log.values()))[0])
    decode = _from_json if result == "json table" else _from_avro
    table: Table = {}
    count = 0
    for key, value in messages(servers, topic):
        count += 1
        name = decode(key)[0]
        if value is None:
            table.pop(str(name), None)
        else:
            table[str(name)] = tuple(map(int, decode(value)[1:]))
    return Outcome(table, count)


def fingerprint(servers: str, topic: str) -> tuple[int, ...]:
    """Of a log, see `log_table`."""
    return next(iter(log_table(value for _, value in messages(servers, topic)).values()))


def messages(servers: str, topic: str) -> Iterator[tuple[bytes, bytes | None]]:
    """Keys and values, from the beginning to the end; the order of every partition is kept."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "benchmarks",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    ended: set[int] = set()
    try:
        while len(ended) < PARTITIONS:
            for message in consumer.consume(10_000, timeout=0.2):
                error = message.error()
                if error is None:
                    yield message.key() or b"", message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(int(message.partition() or 0))
                else:
                    raise RuntimeError(f"Topic '{topic}': {error}")
    finally:
        consumer.close()


def _from_json(data: bytes) -> list[str | int]:
    return list(json.loads(data).values())


def _from_avro(data: bytes) -> list[str | int]:
    """Our results' Avro: a string that is never null, then numbers that may be (a union of null and long)."""
    size, at = _varint(data, 0)
    fields: list[str | int] = [data[at : at + size].decode()]
    at += size
    while at < len(data):
        branch, at = _varint(data, at)
        if branch != 1:
            raise ValueError(f"expected a number in {data!r}")
        number, at = _varint(data, at)
        fields.append(number)
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint at a position, and the position after it."""
    result = shift = 0
    while True:
        byte = data[at]
        result |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), at
