"""The test's own side of Kafka: topics made and removed, messages sent and read, with a client that is not Spark's."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as Received
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from headwater.errors import KafkaUnavailableError

__all__ = ["Kafka", "Offsets", "Record"]

Offsets = dict[tuple[str, int], int]

_TIMEOUT = 30.0
# What a topic without a leader is called.
_TRANSIENT = (
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._NOENT,
)
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Record:
    """A message as Kafka has it. `partition` and `timestamp` None leave the choice to the producer."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


class Kafka:
    """Clients of one cluster, opened when first used and kept."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._common: dict[str, Any] = {"bootstrap.servers": bootstrap_servers, "log_level": 2}
        self._admin = AdminClient(dict(self._common))
        # Java clients place a key by murmur2; librdkafka's own default would put it elsewhere. One request at a time:
        # of several, the first one to a new topic may be lost and reported as delivered (see `clients/settings.py`).
        alone = {"enable.idempotence": True, "max.in.flight.requests.per.connection": 1}
        self._producer = Producer({**self._common, **alone, "partitioner": "murmur2_random", "linger.ms": 0})
        # Reads what is committed; the end of a partition is reported, because it may not be a message.
        reading = {"enable.auto.commit": False, "isolation.level": "read_committed", "enable.partition.eof": True}
        self._consumer = Consumer({**self._common, **reading, "group.id": "headwater-testing", "fetch.wait.max.ms": 10})

    def create(self, partitions: Mapping[str, int], *, compacted: bool = False) -> None:
        """Topics with these numbers of partitions; returns when they are there."""
        config = {"cleanup.policy": "compact"} if compacted else {}
        topics = [NewTopic(name, count, config=config) for name, count in partitions.items()]
        for name, done in self._admin.create_topics(topics, operation_timeout=_TIMEOUT).items() if topics else ():
            try:
                done.result(_TIMEOUT)
            except Exception as error:
                raise KafkaUnavailableError(f"Topic '{name}' could not be created.", detail=str(error)) from error
        self._await_leaders(partitions)

    def _await_leaders(self, topics: Iterable[str]) -> None:
        """A topic that was just created may have no leader for a moment; asking also renews what clients believe."""
        deadline = time.monotonic() + _TIMEOUT
        waiting = list(topics)
        while waiting and time.monotonic() < deadline:
            known = self._admin.list_topics(waiting[0], timeout=_TIMEOUT).topics.get(waiting[0])
            if known is not None and not known.error and all(p.leader >= 0 for p in known.partitions.values()):
                waiting.pop(0)
            else:
                time.sleep(0.02)

    def delete(self, topics: Sequence[str]) -> None:
        """Asked for, not waited for."""
        if topics:
            self._admin.delete_topics(list(topics))

    def produce(self, records: Iterable[Record]) -> None:
        """Returns when all of them are in Kafka."""
        failures: list[str] = []

        def delivered(error: KafkaError | None, message: Received) -> None:
            if error is not None:
                failures.append(str(error))
            # librdkafka concluded from a later message that this one must have arrived; no broker said so.
            elif message.offset() is None:
                failures.append("A message was reported as delivered without an offset.")

        for record in records:
            self._producer.produce(record.topic, record.value, record.key, on_delivery=delivered, **_choices(record))
            self._producer.poll(0)
        left = self._producer.flush(_TIMEOUT)
        if left or failures:
            detail = failures[0] if failures else f"{left} messages were not delivered in {_TIMEOUT:.0f} s."
            raise KafkaUnavailableError("Messages could not be produced.", detail=detail)

    def ends(self, partitions: Mapping[str, int]) -> Offsets:
        """Where each topic ends now; `partitions` are their numbers of partitions."""
        wanted = {TopicPartition(topic, p): _LATEST for topic, n in partitions.items() for p in range(n)}
        if not wanted:
            return {}
        deadline = time.monotonic() + _TIMEOUT
        while True:
            futures = self._admin.list_offsets(wanted, request_timeout=_TIMEOUT)
            try:
                return {(tp.topic, tp.partition): future.result(_TIMEOUT).offset for tp, future in futures.items()}
            except KafkaException as error:
                if error.args[0].code() not in _TRANSIENT or time.monotonic() > deadline:
                    raise KafkaUnavailableError("The ends of topics are not known.", detail=str(error)) from error
                self._await_leaders(partitions)

    def read(self, topic: str, start: Mapping[int, int], end: Mapping[int, int]) -> list[Record]:
        """The messages in between, partition by partition. A transaction ends a moment after its commit is confirmed:
        until then, what can be read ends before `end`, and the rest is waited for."""
        waiting = {p for p, stop in end.items() if stop > start.get(p, 0)}
        if not waiting:
            return []
        # A topic that the client has never asked about would be looked up by a timer that ticks once a second.
        self._consumer.list_topics(topic, timeout=_TIMEOUT)
        self._consumer.assign([TopicPartition(topic, p, start.get(p, OFFSET_BEGINNING)) for p in waiting])
        found: list[tuple[int, int, Record]] = []
        while waiting:
            message = self._consumer.poll(_TIMEOUT)
            if message is None:
                raise KafkaUnavailableError(f"Topic '{topic}' did not return the messages it has in {_TIMEOUT:.0f} s.")
            problem = message.error()
            ended = problem is not None and problem.code() == KafkaError._PARTITION_EOF
            if problem is not None and not ended:
                raise KafkaUnavailableError(f"Topic '{topic}' could not be read.", detail=str(problem))
            partition, offset = message.partition() or 0, message.offset() or 0
            if offset < end[partition] and not ended:
                found.append((partition, offset, _record(message)))
            if offset + (not ended) >= end[partition]:
                waiting.discard(partition)
        self._consumer.unassign()
        return [record for _, _, record in sorted(found, key=lambda entry: entry[:2])]

    def close(self) -> None:
        self._producer.flush(1)
        self._consumer.close()


def _choices(record: Record) -> dict[str, Any]:
    """What the record asks for beyond key and value."""
    asked = {"partition": record.partition, "timestamp": record.timestamp, "headers": list(record.headers) or None}
    return {name: value for name, value in asked.items() if value is not None}


def _record(message: Received) -> Record:
    headers: Any = message.headers() or ()
    return Record(
        message.topic() or "",
        _as_bytes(message.key()),
        _as_bytes(message.value()),
        message.partition(),
        message.timestamp()[1],
        tuple((name, _as_bytes(value) or b"") for name, value in headers),
    )


def _as_bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
