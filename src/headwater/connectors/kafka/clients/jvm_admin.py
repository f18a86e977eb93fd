"""Questions to the broker, asked with the Kafka client inside Spark's JVM, which understands all `properties.*`.

Jobs ask for the ends of their topics many times a second, so every call into the JVM counts: classes are looked up by
their full names (the JVM would search all its jars for every part of a name), and Java's iterators are not used (they
end with an exception, which PySpark is slow to translate).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from headwater.connectors.kafka.clients.admin import (
    TIMEOUT_SECONDS,
    Admin,
    Bounds,
    Isolation,
    Look,
    NewTopic,
    Offsets,
    TopicPartition,
)
from headwater.connectors.kafka.clients.broker_errors import UnknownTopicError, client_error
from headwater.connectors.kafka.clients.spark_options import NOT_FOR_CLIENTS
from headwater.errors import HeadwaterError, KafkaUnavailableError, SetupError
from headwater.options.secrets import hidden_in
from headwater.spark_internals import jvm

__all__ = ["JvmAdmin"]

_LIMITS = {"default.api.timeout.ms": "8000", "request.timeout.ms": "6000", "client.id": "headwater-admin"}
_NOT_HERE = NOT_FOR_CLIENTS | {"isolation.level"}


class JvmAdmin(Admin):
    def __init__(self, spark: Any, properties: Mapping[str, str]) -> None:
        super().__init__(spark, properties)
        self._properties = properties
        self._partitions: dict[TopicPartition, Any] = {}
        self._requests: dict[str, tuple[list[TopicPartition], Any]] = {}
        self._client = self._open(properties)
        self._specs = self._class("org.apache.kafka.clients.admin.OffsetSpec")
        self._seconds = self._class("java.util.concurrent.TimeUnit").SECONDS

    def _class(self, name: str) -> Any:
        return getattr(jvm(self._spark), name)

    def _open(self, properties: Mapping[str, str]) -> Any:
        config = self._class("java.util.HashMap")()
        for key, value in {**_LIMITS, **properties}.items():
            if key not in _NOT_HERE:
                config.put(key, value)
        try:
            return self._class("org.apache.kafka.clients.admin.AdminClient").create(config)
        # To py4j an unknown class is a package, and a package cannot be called.
        except TypeError as error:
            raise SetupError(
                "Spark's JVM has no Kafka client classes.",
                hint="Let headwater.connect() start Spark, or start it with the jars that `headwater fetch` lists.",
            ) from error
        except (Py4JError, PySparkException) as error:
            raise self._translate(error, "connect") from None

    def close(self) -> None:
        self._client.close(self._class("java.time.Duration").ofSeconds(1))

    def all_topics(self) -> list[str]:
        # Joined in the JVM, where one call does it: every element of a Java collection would be a round trip. Names of
        # topics have no commas.
        names = self._get(self._client.listTopics().names(), "all topics")
        return [name for name in self._class("java.lang.String").join(",", names).split(",") if name]

    def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        names = self._class("java.util.ArrayList")()
        for topic in topics:
            names.add(topic)
        futures = self._client.describeTopics(names).topicNameValues()
        found = {}
        for topic in topics:
            try:
                found[topic] = self._get(futures.get(topic), topic).partitions().size()
            except UnknownTopicError:
                continue
        return found

    def look(self, partitions: Collection[TopicPartition], isolation: Isolation, bounds: Bounds) -> Look:
        wanted = list(partitions)
        return Look(self.latest(wanted, isolation), self.earliest(wanted) if bounds == "both" else {})

    def cluster_id(self) -> str:
        return str(self._get(self._client.describeCluster().clusterId(), "the cluster"))

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """Nobody asks for them here: each would cost several calls into the JVM."""
        del topics
        return {}

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._list(self._request(list(partitions), "earliest"))

    def latest(self, partitions: Iterable[TopicPartition], isolation: Isolation = "read_uncommitted") -> Offsets:
        request = self._request(list(partitions), "latest")
        return self._list(request, self._read_committed()) if isolation == "read_committed" else self._list(request)

    def at_time(self, partitions: Iterable[TopicPartition], millis: int) -> Offsets:
        wanted = list(partitions)
        found = self._list((wanted, self._asking(wanted, self._specs.forTimestamp(millis))))
        # The broker answers -1 for a partition whose messages are all older.
        missing = [tp for tp, offset in found.items() if offset < 0]
        return {**found, **(self.latest(missing) if missing else {})}

    def _request(self, wanted: list[TopicPartition], what: str) -> tuple[list[TopicPartition], Any]:
        """The same question is asked again and again."""
        if what not in self._requests or self._requests[what][0] != wanted:
            self._requests[what] = (wanted, self._asking(wanted, getattr(self._specs, what)()))
        return self._requests[what]

    def _asking(self, wanted: list[TopicPartition], spec: Any) -> Any:
        request = self._class("java.util.HashMap")()
        for tp in wanted:
            request.put(self._java(tp), spec)
        return request

    def _read_committed(self) -> Any:
        level = self._class("org.apache.kafka.common.IsolationLevel").READ_COMMITTED
        return self._class("org.apache.kafka.clients.admin.ListOffsetsOptions")(level)

    def _list(self, request: tuple[list[TopicPartition], Any], *options: Any) -> Offsets:
        wanted, asked = request
        answer = self._get(self._client.listOffsets(asked, *options).all(), _topics(wanted))
        return {tp: answer.get(self._java(tp)).offset() for tp in wanted}

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> Offsets:
        answer = self._get(self._client.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata(), group)
        listed = self._class("java.util.ArrayList")(answer.keySet())
        found = [listed.get(place) for place in range(listed.size())]
        entries = {(tp.topic(), tp.partition()): answer.get(tp) for tp in found}
        return {tp: entry.offset() for tp, entry in entries.items() if entry is not None and tp in partitions}

    def commit(self, group: str, offsets: Offsets) -> None:
        request = self._class("java.util.HashMap")()
        metadata = self._class("org.apache.kafka.clients.consumer.OffsetAndMetadata")
        for tp, offset in offsets.items():
            request.put(self._java(tp), metadata(offset))
        self._get(self._client.alterConsumerGroupOffsets(group, request).all(), group)

    def create(self, topics: Collection[NewTopic]) -> None:
        request = self._class("java.util.ArrayList")()
        for topic in topics:
            request.add(self._new_topic(topic))
        try:
            self._get(self._client.createTopics(request).all(), ", ".join(t.name for t in topics))
        except KafkaUnavailableError as error:
            if "TopicExistsException" not in error.detail:
                raise

    def _new_topic(self, topic: NewTopic) -> Any:
        settings = self._class("java.util.HashMap")()
        for key, value in topic.config.items():
            settings.put(key, value)
        made = self._class("org.apache.kafka.clients.admin.NewTopic")(topic.name, topic.partitions, topic.replicas)
        return made.configs(settings)

    def topic_setting(self, topic: str, key: str) -> str | None:
        return self._setting("TOPIC", topic, key)

    def broker_setting(self, key: str) -> str | None:
        nodes = self._get(self._client.describeCluster().nodes(), "the cluster")
        return self._setting("BROKER", nodes.iterator().next().idString(), key)

    def _setting(self, kind: str, name: str, key: str) -> str | None:
        config = "org.apache.kafka.common.config.ConfigResource"
        resource = self._class(config)(getattr(self._class(f"{config}$Type"), kind), name)
        request = self._class("java.util.ArrayList")()
        request.add(resource)
        try:
            entry = self._get(self._client.describeConfigs(request).all(), name)[resource].get(key)
        except KafkaUnavailableError as error:
            if "Authorization" in error.detail:
                return None
            raise
        return None if entry is None else str(entry.value())

    def _java(self, tp: TopicPartition) -> Any:
        # Kept for the life of the job: making one is a round trip, and every request and every answer is keyed by them.
        if tp not in self._partitions:
            self._partitions[tp] = self._class("org.apache.kafka.common.TopicPartition")(tp[0], tp[1])
        return self._partitions[tp]

    def _get(self, future: Any, about: str) -> Any:
        try:
            return future.get(int(TIMEOUT_SECONDS), self._seconds)
        except Py4JJavaError as error:
            # The Java trace behind it may hold what must not be shown.
            raise self._translate(error, about) from None

    def _translate(self, error: Exception, about: str) -> HeadwaterError:
        java, chain = getattr(error, "java_exception", None), []
        while java is not None:
            chain.append((str(java.getClass().getSimpleName()), str(java.getMessage())))
            java = java.getCause()
        if not chain:
            chain.append(("ConfigException", str(error).split("\n\nJVM stacktrace")[0]))
        return client_error([(name, hidden_in(text, self._properties)) for name, text in chain], about, self._servers)


def _topics(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(sorted({topic for topic, _ in partitions}))
