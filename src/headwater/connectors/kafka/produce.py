"""Messages in Arrow batches → a librdkafka producer, inside Spark's Python workers."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as Sent

from headwater.connectors.kafka import native
from headwater.errors import HeadwaterError, JobError, KafkaRefusedError, KafkaUnavailableError

__all__ = ["PlainWriter", "TransactionSender", "Trouble", "is_refusal", "plain_writer", "translated"]

_NO_PARTITION = -1
_NO_TIMESTAMP = 0
_FLUSH_SECONDS = 120.0
_PAUSE_SECONDS = 0.002

ROWS_AT_ONCE = 50_000
BYTES_AT_ONCE = 16 << 20

_REFUSALS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "Ask for the ACL READ on a topic that is read, WRITE on one that is "
    "written, or use another user.",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "'exactly-once' notes its progress in groups that start with the prefix of "
    "its transactions: ask for the ACL READ on them, and on the topic.",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Ask for the ACLs WRITE and DESCRIBE on transactional ids that "
    "start with 'sink.transactional-id-prefix'.",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "Ask for the ACL IDEMPOTENT_WRITE on the cluster.",
    KafkaError._AUTHENTICATION: "Check user name, password and 'properties.sasl.*'.",
    KafkaError._SSL: "Check the certificates and 'properties.ssl.*'.",
    KafkaError.SASL_AUTHENTICATION_FAILED: "Check user name, password and 'properties.sasl.*'.",
}
_FOR_GOOD = {
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "Lower 'properties.transaction.timeout.ms', or raise the broker's "
    "'transaction.max.timeout.ms'.",
    KafkaError.MSG_SIZE_TOO_LARGE: "Raise 'properties.max.request.size' and the topic's 'max.message.bytes'.",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "Create the topic, or correct the table's 'topic' option.",
    KafkaError._UNKNOWN_TOPIC: "Create the topic, or correct the table's 'topic' option.",
    KafkaError._UNKNOWN_PARTITION: "The partitioner chose a partition that the topic does not have.",
    KafkaError.INVALID_TIMESTAMP: "The topic refuses the time that the row gives.",
}


class Trouble:
    """Listens to a client: what it complained about last explains a call that then runs into its time limit."""

    def __init__(self) -> None:
        self.last: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        if self.last is None or error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.last = error


def is_refusal(error: KafkaError) -> bool:
    """Whether waiting is of no use."""
    return error.code() in _REFUSALS


def translated(error: KafkaException, doing: str, trouble: Trouble | None = None) -> HeadwaterError:
    """A failure of the client as one of ours; `doing` says at what. What may pass by itself is KafkaUnavailable."""
    cause: KafkaError = error.args[0]
    last = trouble.last if trouble is not None else None
    if last is not None and last.code() in _REFUSALS and cause.code() == KafkaError._TIMED_OUT:
        cause = last
    detail = f"{cause.name()}: {cause.str()}"
    if cause.code() in _REFUSALS:
        return KafkaRefusedError(f"The broker refused {doing}.", detail=detail, hint=_REFUSALS[cause.code()])
    if cause.code() in _FOR_GOOD:
        return JobError(f"Kafka does not take {doing}.", detail=detail, hint=_FOR_GOOD[cause.code()])
    if last is not None and last is not cause:
        detail += f"\nThe client said before: {last.name()}: {last.str()}"
    hint = "Check that the brokers run and can be reached from all executors."
    return KafkaUnavailableError(f"The broker does not answer: {doing}.", detail=detail, hint=hint)


def produce(producer: Producer, topic: str, batch: pa.RecordBatch) -> int:
    """Hand the messages of a batch to the client, which sends them in the background. `topic` is for rows that do not
    name theirs."""
    names = batch.schema.names

    def column(name: str, otherwise: Any) -> Iterable[Any]:
        return batch.column(name).to_pylist() if name in names else repeat(otherwise, batch.num_rows)

    send = producer.produce
    rows = zip(
        column("topic", topic),
        batch.column("value").to_pylist(),
        column("key", None),
        column("partition", _NO_PARTITION),
        column("timestamp", _NO_TIMESTAMP),
        column("headers", None),
        strict=True,
    )
    for name, value, key, partition, time, headers in rows:
        extra = [(h["key"], h["value"]) for h in headers] if headers else None
        while True:
            try:
                send(name, value, key, partition, None, None, time or _NO_TIMESTAMP, extra)
                break
            except BufferError:
                producer.poll(0.1)
    producer.poll(0)
    return int(batch.num_rows)


class TransactionSender:
    """Sends messages in columns, if they have neither headers nor times of their own. Only for transactions: of a
    message that fails later on, the client then tells nobody but whoever commits. `client` are its settings, with its
    `error_cb`."""

    def __init__(self, producer: Producer, client: Mapping[str, Any]) -> None:
        self._producer = producer
        self._in_columns = native.is_available(producer, client["error_cb"])
        self._most = min(BYTES_AT_ONCE, int(client["queue.buffering.max.kbytes"]) * 1024 // 3)
        self._last = pa.RecordBatch.from_pydict({})
        self._topics: dict[str, native.Topic] = {}

    def send(self, topic: str, batch: pa.RecordBatch) -> int:
        """As `produce`."""
        names = batch.schema.names
        if {"headers", "timestamp"} & set(names) or not self._in_columns:
            return produce(self._producer, topic, batch)
        if "topic" not in names:
            self._send_columns(topic, batch)
        else:
            named = batch.column("topic")
            for name in pc.unique(named).to_pylist():
                self._send_columns(name, batch.filter(pc.equal(named, name)))
        self._producer.poll(0)
        return int(batch.num_rows)

    def _send_columns(self, topic: str, batch: pa.RecordBatch) -> None:
        """No more than two parts are with the client at a time, so that it has room for all of a part: one message it
        had no room for would be overtaken by the next."""
        at_once = max(1, min(ROWS_AT_ONCE, self._most * batch.num_rows // max(1, batch.nbytes)))
        for start in range(0, batch.num_rows, at_once):
            part = batch.slice(start, at_once)
            small = max(self._last.nbytes, part.nbytes) <= self._most
            self._wait(self._last.num_rows if small else 0)
            self._topic(topic).send(part)
            self._last = part

    def _topic(self, name: str) -> native.Topic:
        if name not in self._topics:
            self._topics[name] = native.Topic(self._producer, name)
        return self._topics[name]

    def _wait(self, most: int) -> None:
        while len(self._producer) > most:
            self._producer.poll(_PAUSE_SECONDS)

    def close(self) -> None:
        for topic in self._topics.values():
            topic.close()
        self._topics = {}


class PlainWriter:
    """A producer without transactions, kept by the worker process from batch to batch."""

    def __init__(self, client: Mapping[str, Any]) -> None:
        self._trouble = Trouble()
        self._failure: KafkaError | None = None
        self._producer = Producer({**client, "error_cb": self._trouble, "on_delivery": self._delivered})

    def write(self, topic: str, batches: Iterable[pa.RecordBatch]) -> int:
        """Returns when the broker has all messages, as 'acks' defines it."""
        self._failure = None
        try:
            written = sum(produce(self._producer, topic, batch) for batch in batches)
            waiting = self._producer.flush(_FLUSH_SECONDS)
        except KafkaException as error:
            raise translated(error, f"messages to topic '{topic}'", self._trouble) from error
        if waiting and self._failure is None:
            self._producer.purge()
            self._failure = KafkaError(KafkaError._TIMED_OUT, f"{waiting} messages were not taken")
        if self._failure is not None:
            raise translated(KafkaException(self._failure), f"messages to topic '{topic}'", self._trouble)
        return written

    def _delivered(self, error: KafkaError | None, _: Sent) -> None:
        if error is not None:
            self._failure = error


_writers: dict[frozenset[tuple[str, Any]], PlainWriter] = {}
_writers_lock = threading.Lock()


def plain_writer(client: Mapping[str, Any]) -> PlainWriter:
    with _writers_lock:
        key = frozenset(client.items())
        if key not in _writers:
            _writers[key] = PlainWriter(client)
        return _writers[key]
