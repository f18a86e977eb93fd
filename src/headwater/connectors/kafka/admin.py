"""Questions to the broker, asked with the Kafka client inside Spark's JVM: `properties.*` mean the same everywhere.

Every call has a time limit and answers with plain Python values; every failure is one of our errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from headwater.connectors.kafka.client import NOT_FOR_CLIENTS
from headwater.connectors.kafka.refusals import UnknownTopicError, client_error
from headwater.errors import HeadwaterError, SetupError, ValidationError
from headwater.options.secrets import hidden_in

__all__ = ["KafkaAdmin", "Offsets", "TopicPartition"]

TopicPartition = tuple[str, int]
Offsets = dict[TopicPartition, int]

TIMEOUT_SECONDS = 10
_LIMITS = {"default.api.timeout.ms": "8000", "request.timeout.ms": "6000", "client.id": "headwater-admin"}
_NOT_HERE = NOT_FOR_CLIENTS | {"isolation.level"}


class KafkaAdmin:
    """One client, kept open for the life of a job."""

    def __init__(self, spark: Any, properties: Mapping[str, str]) -> None:
        self._jvm = spark._jvm
        self._properties = properties
        self._partitions: dict[TopicPartition, Any] = {}
        self._client = self._open(properties)

    def _open(self, properties: Mapping[str, str]) -> Any:
        config = self._jvm.java.util.HashMap()
        for key, value in {**_LIMITS, **properties}.items():
            if key not in _NOT_HERE:
                config.put(key, value)
        try:
            return self._jvm.org.apache.kafka.clients.admin.AdminClient.create(config)
        except TypeError as error:
            raise SetupError(
                "Spark's JVM has no Kafka client classes.",
                hint="Let headwater.connect() start Spark, or start it with the jars that `headwater fetch` lists.",
            ) from error
        except (Py4JError, PySparkException) as error:
            raise self._translate(error, "connect") from None

    def close(self) -> None:
        self._client.close(self._jvm.java.time.Duration.ofSeconds(1))

    def topics(self, pattern: str) -> list[str]:
        """The topics whose whole names match a regular expression as Java knows them; not Kafka's own."""
        try:
            matcher = self._jvm.java.util.regex.Pattern.compile(pattern)
        except PySparkException as error:
            raise ValidationError(
                f"'topic-pattern' = '{pattern}' is not a regular expression.", detail=str(error)
            ) from None
        names = self._get(self._client.listTopics().names(), pattern)
        return sorted(name for name in names if matcher.matcher(name).matches())

    def partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        """How many partitions each topic has; a topic that does not exist is not in the answer."""
        names = self._jvm.java.util.ArrayList()
        for topic in topics:
            names.add(topic)
        found = {}
        for topic, future in self._client.describeTopics(names).topicNameValues().items():
            try:
                found[topic] = self._get(future, topic).partitions().size()
            except UnknownTopicError:
                continue
        return found

    def partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """All partitions of the topics; a topic that does not exist is an error."""
        wanted = list(topics)
        counts = self.partition_counts(wanted)
        for topic in wanted:
            if topic not in counts:
                raise UnknownTopicError.of(topic, self._properties.get("bootstrap.servers", ""))
        return sorted((topic, p) for topic, count in counts.items() for p in range(count))

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
            # The Java trace behind it may hold what must not be shown.
            raise self._translate(error, about) from None

    def _translate(self, error: Exception, about: str) -> HeadwaterError:
        servers = self._properties.get("bootstrap.servers", "")
        java, chain = getattr(error, "java_exception", None), []
        while java is not None:
            chain.append((str(java.getClass().getSimpleName()), str(java.getMessage())))
            java = java.getCause()
        if not chain:
            chain.append(("ConfigException", str(error).split("\n\nJVM stacktrace")[0]))
        return client_error([(name, hidden_in(text, self._properties)) for name, text in chain], about, servers)


def _topics(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(sorted({topic for topic, _ in partitions}))
