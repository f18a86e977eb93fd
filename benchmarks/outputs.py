"""Topics: created, and read back as the table that their messages add up to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from generate import PARTITIONS, Table

__all__ = ["Outcome", "create_topic", "drop_topic", "fingerprint", "read_outcome"]


@dataclass(frozen=True)
class Outcome:
    """The last value of every key, and how many messages it took to get there."""

    table: Table
    messages: int


def create_topic(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 4})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)


def drop_topic(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 4})
    admin.delete_topics([topic])[topic].result(30)


def read_outcome(servers: str, topic: str, sink_format: str) -> Outcome:
    """Read a topic from beginning to end; a null value takes its key away."""
    decode = _from_json if sink_format == "json" else _from_avro
    table: Table = {}
    messages = 0
    for key, value in _messages(servers, topic):
        messages += 1
        name = decode(key)[0]
        if value is None:
            table.pop(str(name), None)
        else:
            _, first, second = decode(value)
            table[str(name)] = (int(first), int(second))
    return Outcome(table, messages)


def fingerprint(servers: str, topic: str) -> tuple[int, int]:
    """How many messages a topic has, and a number that comes from all their values, in whatever order they are. Equal
    only for equal messages, and only in this process."""
    messages = total = 0
    for _, value in _messages(servers, topic):
        messages += 1
        total += hash(value)
    return messages, total % 2**64


def _messages(servers: str, topic: str) -> Iterator[tuple[bytes, bytes | None]]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "benchmarks",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
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
    """Our results' Avro: a text that is never null, then numbers that may be (a union of null and long)."""
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
    """A zigzag number at a place, and the place after it."""
    result = shift = 0
    while True:
        byte = data[at]
        result |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), at
