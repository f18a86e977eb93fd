"""Questions to the brokers of a cluster: the port, and who answers it for a table's `properties.*`.

Every call has a time limit and answers with plain values; every failure is one of our errors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from headwater.connectors.kafka.clients.broker_errors import UnknownTopicError
from headwater.errors import KafkaUnavailableError, ValidationError
from headwater.spark_internals import jvm

__all__ = ["Admin", "Bounds", "Isolation", "Look", "NewTopic", "Offsets", "TopicPartition", "open_admin"]

TopicPartition = tuple[str, int]
Offsets = dict[TopicPartition, int]
Isolation = Literal["read_committed", "read_uncommitted"]
Bounds = Literal["latest", "both"]
"""Which offsets are asked for: the ends of partitions, or their beginnings too."""

TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True)
class NewTopic:
    """`partitions` and `replicas`: -1 leaves it to the broker."""

    name: str
    partitions: int
    replicas: int
    config: Mapping[str, str]


@dataclass(frozen=True)
class Look:
    """What was found out about some partitions at once: where they end, where they begin if that was asked, and the ids
    of their topics where the client knows such."""

    latest: Offsets
    earliest: Offsets = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)


class Admin(ABC):
    """One client, kept open for the life of a job. `spark` is None before Spark runs; then patterns cannot be asked."""

    def __init__(self, spark: Any, properties: Mapping[str, str]) -> None:
        self._spark = spark
        self._servers = properties.get("bootstrap.servers", "")

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def all_topics(self) -> list[str]:
        """Not Kafka's own."""

    @abstractmethod
    def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        """How many partitions each topic has; a topic that does not exist is not in the answer."""

    @abstractmethod
    def look(self, partitions: Collection[TopicPartition], isolation: Isolation, bounds: Bounds) -> Look:
        """Where partitions end: of all messages, or of those whose transactions are decided; and where they begin."""

    @abstractmethod
    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets: ...

    @abstractmethod
    def latest(self, partitions: Iterable[TopicPartition], isolation: Isolation = "read_uncommitted") -> Offsets: ...

    @abstractmethod
    def at_time(self, partitions: Iterable[TopicPartition], millis: int) -> Offsets:
        """The first offset whose message is not older than `millis`; the end where there is none."""

    @abstractmethod
    def committed(self, group: str, partitions: Collection[TopicPartition]) -> Offsets:
        """The offsets a consumer group has committed, of those partitions where it has."""

    @abstractmethod
    def commit(self, group: str, offsets: Offsets) -> None: ...

    @abstractmethod
    def cluster_id(self) -> str:
        """'' if it is not known."""

    @abstractmethod
    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """Of the topics that exist. A topic that is deleted and created again has another one. Empty if not known."""

    @abstractmethod
    def create(self, topics: Collection[NewTopic]) -> None:
        """A topic that exists stays as it is."""

    @abstractmethod
    def topic_setting(self, topic: str, key: str) -> str | None:
        """None if there is no such setting, or this user may not see it."""

    @abstractmethod
    def broker_setting(self, key: str) -> str | None:
        """The same for some broker."""

    def partitions(self, topics: Collection[str], option: str = "topic") -> list[TopicPartition]:
        """All partitions of the topics; a topic that does not exist is an error, which names the table's `option`."""
        counts = self.partition_counts(topics)
        for topic in topics:
            if topic not in counts:
                raise UnknownTopicError.of(topic, self._servers, option=option, there=self.names_like(topic))
        return sorted((topic, p) for topic, count in counts.items() for p in range(count))

    def names_like(self, topic: str) -> list[str]:
        """Topics that may have been meant; none if this user may not see them."""
        try:
            return [name for name in self.all_topics() if not name.startswith("__") and name != topic]
        except KafkaUnavailableError:
            return []

    def topics(self, pattern: str) -> list[str]:
        """The topics whose whole names match a regular expression as Java knows them; not Kafka's own."""
        try:
            # Python's expressions are not quite Java's, and patterns are copied from Flink.
            matcher = getattr(jvm(self._spark), "java.util.regex.Pattern").compile(pattern)
        except (Py4JError, PySparkException) as error:
            raise ValidationError(
                f"'topic-pattern' = '{pattern}' is not a regular expression.", detail=str(error)
            ) from None
        return sorted(name for name in self.all_topics() if matcher.matcher(name).matches())


def open_admin(spark: Any, properties: Mapping[str, str]) -> Admin:
    """By librdkafka, or by the JVM's client where only that understands the properties."""
    from headwater.connectors.kafka.clients.jvm_admin import JvmAdmin
    from headwater.connectors.kafka.clients.rdkafka_admin import RdKafkaAdmin
    from headwater.connectors.kafka.clients.settings import admin_settings

    try:
        settings = admin_settings(properties)
    # A login module or a key store that only Java can read is no error of the table: Spark's client understands it.
    except ValidationError:
        return JvmAdmin(spark, properties)
    return RdKafkaAdmin(spark, properties, settings)
