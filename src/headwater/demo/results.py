"""Reading topics back: following a table as it changes, and recounting the input. Plain Kafka and plain Python."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

__all__ = ["Counts", "Follower", "avro_counts", "csv_counts", "end_offsets", "read_all", "recount"]

Counts = dict[str, tuple[int, int]]  # region → page views, visitors
Row = tuple[str, int, int]


def avro_counts(value: bytes) -> Row:
    """One record {user_region: string, pv: nullable long, uv: nullable long}, by the book of Avro."""
    reader = _Avro(value)
    return reader.text(), reader.nullable_long(), reader.nullable_long()


def csv_counts(value: bytes) -> Row:
    region, pv, uv = next(csv.reader([value.decode()]))
    return region, int(pv), int(uv)


class _Avro:
    def __init__(self, data: bytes) -> None:
        self._data = iter(data)

    def long(self) -> int:
        number = shift = 0
        for byte in self._data:
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return (number >> 1) ^ -(number & 1)

    def text(self) -> str:
        return bytes(next(self._data) for _ in range(self.long())).decode()

    def nullable_long(self) -> int:
        """A union of null and long; a count is never null."""
        assert self.long() == 1
        return self.long()


class Follower:
    """The table that a topic holds, from its beginning and as it changes. `counts` is replaced, never changed."""

    def __init__(self, servers: str, topic: str, decode: Callable[[bytes], Row]) -> None:
        self.counts: Counts = {}
        self.messages = 0
        self._consumer = _consumer(servers, topic)
        self._decode = decode
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"headwater-demo-{topic}", daemon=True)

    def start(self) -> Follower:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            batch = [m for m in self._consumer.consume(500, 0.1) if m.error() is None]
            if batch:
                self.messages += len(batch)
                self.counts = _applied(self.counts, batch, self._decode)


def _applied(counts: Counts, batch: list[Message], decode: Callable[[bytes], Row]) -> Counts:
    changed = dict(counts)
    for message in batch:
        value = message.value()
        if value is not None:
            region, pv, uv = decode(value)
            changed[region] = (pv, uv)
    return changed


def recount(servers: str, topic: str) -> Counts:
    """Count the input topic from its first message to its last."""
    views: dict[str, int] = {}
    users: dict[str, set[int]] = {}
    for value in read_all(servers, topic):
        view = json.loads(value)
        region = view["user_region"]
        views[region] = views.get(region, 0) + 1
        users.setdefault(region, set()).add(view["user_id"])
    return {region: (views[region], len(users[region])) for region in views}


def read_all(servers: str, topic: str) -> Iterator[bytes]:
    """The value of every message that is in the topic now."""
    consumer = _consumer(servers, topic)
    try:
        left = sum(end_offsets(servers, topic))
        while left:
            for message in consumer.consume(min(left, 10_000), 1.0):
                if message.error() is None:
                    left -= 1
                    yield message.value() or b""
    finally:
        consumer.close()


def end_offsets(servers: str, topic: str) -> list[int]:
    """How many messages each partition has been given."""
    from confluent_kafka import TopicPartition

    consumer = _consumer(servers, topic)
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        return [consumer.get_watermark_offsets(TopicPartition(topic, p), 30)[1] for p in sorted(partitions)]
    finally:
        consumer.close()


def _consumer(servers: str, topic: str) -> Consumer:
    """Reads all partitions from their beginning, as a member of no group."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    alone = {"group.id": "headwater-demo", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({"bootstrap.servers": servers, **alone})
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
    return consumer
