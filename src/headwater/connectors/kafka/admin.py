"""Questions to the broker, asked with the Kafka client inside Spark's JVM: `properties.*` mean the same everywhere.

Every call has a time limit and answers with plain Python values; every failure is one of our errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from headwater.errors import HeadwaterError, KafkaUnavailableError, SetupError

__all__ = ["KafkaAdmin", "Offsets", "TopicPartition"]

TopicPartition = tuple[str, int]
Offsets = dict[TopicPartition, int]

TIMEOUT_SECONDS = 15


class KafkaAdmin:
    """One client, kept open for the life of a job."""

    def __init__(self, spark: Any, properties: Mapping[str, str]) -> None:
        self._jvm = spark._jvm
        self._servers = properties.get("bootstrap.servers", "")
        self._partitions: dict[TopicPartition, Any] = {}
        self._client = self._open(properties)

    def _open(self, properties: Mapping[str, str]) -> Any:
        config = self._jvm.java.util.HashMap()
        for key, value in {**_LIMITS, **properties}.items():
            config.put(key, value)
        for key in _CONSUMER_ONLY & set(properties):
            config.remove(key)
        try:
            return self._jvm.org.apache.kafka.clients.admin.AdminClient.create(config)
        except TypeError as error:
            raise SetupError(
                "Spark's JVM has no Kafka client classes.",
                hint="Let headwater.connect() start Spark, or start it with the jars that `headwater fetch` lists.",
            ) from error
        except Py4JError as error:
            raise self._translate(error, "connect") from error

    def close(self) -> None:
        self._client.close(self._jvm.java.time.Duration.ofSeconds(1))

    def partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """All partitions of the topics; a topic that does not exist is an error."""
        names = self._jvm.java.util.ArrayList()
        for topic in topics:
            names.add(topic)
        described = self._get(self._client.describeTopics(names).allTopicNames(), ", ".join(names))
        return sorted((topic, p) for topic in described for p in range(described[topic].partitions().size()))

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._list(partitions, self._specs().earliest())

    def latest(self, partitions: Iterable[TopicPartition], read_committed: bool = False) -> Offsets:
        """The end of each partition: of all messages, or of those whose transactions are decided."""
        return self._list(partitions, self._specs().latest(), read_committed)

    def at_time(self, partitions: Iterable[TopicPartition], millis: int) -> Offsets:
        """The first offset whose message is not older than `millis`; the end where there is none."""
        found = self._list(partitions, self._specs().forTimestamp(millis))
        missing = [tp for tp, offset in found.items() if offset < 0]
        return {**found, **(self.latest(missing) if missing else {})}

    def _specs(self) -> Any:
        return self._jvm.org.apache.kafka.clients.admin.OffsetSpec

    def _list(self, partitions: Iterable[TopicPartition], spec: Any, read_committed: bool = False) -> Offsets:
        wanted = list(partitions)
        request = self._jvm.java.util.HashMap()
        for tp in wanted:
            request.put(self._java(tp), spec)
        levels = self._jvm.org.apache.kafka.common.IsolationLevel
        level = levels.READ_COMMITTED if read_committed else levels.READ_UNCOMMITTED
        options = self._jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
        answer = self._get(self._client.listOffsets(request, options).all(), _topics(wanted))
        return {tp: answer.get(self._java(tp)).offset() for tp in wanted}

    def committed(self, group: str) -> Offsets:
        """The offsets a consumer group has committed."""
        answer = self._get(self._client.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata(), group)
        entries = {(tp.topic(), tp.partition()): answer[tp] for tp in answer}
        return {tp: entry.offset() for tp, entry in entries.items() if entry is not None}

    def commit(self, group: str, offsets: Offsets) -> None:
        request = self._jvm.java.util.HashMap()
        for tp, offset in offsets.items():
            metadata = self._jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(offset)
            request.put(self._java(tp), metadata)
        self._get(self._client.alterConsumerGroupOffsets(group, request).all(), group)

    def _java(self, tp: TopicPartition) -> Any:
        if tp not in self._partitions:
            self._partitions[tp] = self._jvm.org.apache.kafka.common.TopicPartition(tp[0], tp[1])
        return self._partitions[tp]

    def _get(self, future: Any, about: str) -> Any:
        try:
            return future.get(TIMEOUT_SECONDS, self._jvm.java.util.concurrent.TimeUnit.SECONDS)
        except Py4JJavaError as error:
            raise self._translate(error, about) from error

    def _translate(self, error: Py4JError, about: str) -> HeadwaterError:
        java = getattr(error, "java_exception", None)
        while java is not None and java.getCause() is not None:
            java = java.getCause()
        name = java.getClass().getSimpleName() if java is not None else ""
        text = str(java.getMessage()) if java is not None else str(error)
        fact, hint = _MEANINGS.get(name, ("The broker refused a request about '{about}'.", ""))
        return KafkaUnavailableError(
            fact.format(about=about, servers=self._servers), detail=f"{name}: {text}", hint=hint.format(about=about)
        )


_LIMITS = {"default.api.timeout.ms": "12000", "request.timeout.ms": "10000", "client.id": "headwater-admin"}
_CONSUMER_ONLY = {"group.id", "auto.offset.reset", "enable.auto.commit", "isolation.level"}

_UNREACHABLE = (
    "No Kafka broker answers at '{servers}'.",
    "Check 'properties.bootstrap.servers' and that the broker runs; `headwater broker start` starts one here.",
)
_MEANINGS = {
    "TimeoutException": _UNREACHABLE,
    "DisconnectException": _UNREACHABLE,
    "ConfigException": ("The Kafka client refused the table's properties.", "Check the 'properties.*' options."),
    "KafkaException": ("The Kafka client refused the table's properties.", "Check the 'properties.*' options."),
    "UnknownTopicOrPartitionException": (
        "Topic '{about}' does not exist at '{servers}'.",
        "Create it, or correct the table's 'topic' option.",
    ),
    "InvalidTopicException": ("'{about}' is not a valid topic name.", "Use letters, digits, '.', '_' and '-'."),
    "TopicAuthorizationException": ("Not allowed to use topic '{about}'.", "Ask for the ACLs, or use another user."),
    "GroupAuthorizationException": ("Not allowed to use group '{about}'.", "Ask for the ACLs, or use another group."),
    "SaslAuthenticationException": ("The broker at '{servers}' refused the login.", "Check user name and password."),
    "SslAuthenticationException": (
        "The TLS handshake with '{servers}' failed.",
        "Check certificate, trust store and host name.",
    ),
}


def _topics(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(sorted({topic for topic, _ in partitions}))
