"""The topics of a sink: made if they are missing and the table asks for it, and looked at before the first row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from headwater.catalog.tables import Table
from headwater.connectors.io import IoContext
from headwater.connectors.kafka.admin import KafkaAdmin
from headwater.connectors.kafka.options import PROPERTIES, TOPIC_CONFIG
from headwater.errors import KafkaUnavailableError, ValidationError

__all__ = ["SinkTopics"]

_TIMEOUT_KEY = "transaction.timeout.ms"
_LONGEST_KEY = "transaction.max.timeout.ms"
TRANSACTION_MILLIS = 300_000
_AS_THE_BROKER_LIKES = -1


class SinkTopics(KafkaAdmin):
    """Questions and requests about the topics that one table writes."""

    def __init__(self, table: Table, context: IoContext) -> None:
        super().__init__(context.spark, table.options.family(PROPERTIES))
        self._table = table
        self._context = context

    def prepare(self) -> dict[str, int]:
        """The number of partitions of every topic that rows may go to. Missing ones are made, or are an error."""
        topics = list(self._table.options.strings("topic")) or self._matching()
        found = self.partition_counts(topics)
        missing = [topic for topic in topics if topic not in found]
        if missing and self._table.options.flag("sink.topic.create"):
            self._create(missing)
        if self._table.connector.reads_upserts:
            self._warn_if_not_compacted(list(found))
        added = Counter(topic for topic, _ in self.partitions(missing)) if missing else {}
        return {topic: {**found, **added}[topic] for topic in topics}

    def _matching(self) -> list[str]:
        pattern = re.compile(self._table.options.string("topic-pattern"))
        topics = sorted(topic for topic in self.all_topics() if pattern.fullmatch(topic))
        if not topics:
            raise KafkaUnavailableError(
                f"No topic matches the 'topic-pattern' of table '{self._table.name}'.",
                detail=f"Pattern: {pattern.pattern}",
                hint="Create the topics before the job starts.",
            )
        return topics

    def transaction_millis(self) -> int:
        """For how long a transaction may be open, or an error if the broker would not allow it."""
        asked = self._table.options.family(PROPERTIES).get(_TIMEOUT_KEY)
        longest = self._longest_transaction()
        if asked is None:
            return min(TRANSACTION_MILLIS, longest) if longest else TRANSACTION_MILLIS
        if longest and int(asked) > longest:
            raise ValidationError(
                f"'properties.{_TIMEOUT_KEY}' of table '{self._table.name}' is more than the broker allows.",
                detail=f"Asked for: {asked} ms. The broker's '{_LONGEST_KEY}': {longest} ms.",
                hint=f"Lower it, or leave it out (then it is {TRANSACTION_MILLIS} ms), or raise the broker's limit.",
            )
        return int(asked)

    def _create(self, topics: list[str]) -> None:
        options = self._table.options
        config = {"cleanup.policy": "compact"} if self._table.primary_key else {}
        config |= options.family(TOPIC_CONFIG)
        request = self._class("java.util.ArrayList")()
        for topic in topics:
            request.add(self._new_topic(topic, config))
        try:
            self._get(self._client.createTopics(request).all(), ", ".join(topics))
        except KafkaUnavailableError as error:
            if "TopicExistsException" not in error.detail:
                raise
        self._await_leaders(topics)

    def _await_leaders(self, topics: list[str]) -> None:
        """A topic that was just made may not be known everywhere yet."""
        for _ in range(100):
            try:
                self.latest(self.partitions(topics))
                return
            except KafkaUnavailableError as error:
                if not re.search("UnknownTopic|LeaderNotAvailable|NotLeader", error.detail):
                    raise
        self.latest(self.partitions(topics))

    def _new_topic(self, topic: str, config: Mapping[str, str]) -> Any:
        partitions = self._table.options.integer("sink.topic.partitions") or _AS_THE_BROKER_LIKES
        replicas = self._table.options.integer("sink.topic.replication-factor") or _AS_THE_BROKER_LIKES
        settings = self._class("java.util.HashMap")()
        for key, value in config.items():
            settings.put(key, value)
        made = self._class("org.apache.kafka.clients.admin.NewTopic")(topic, partitions, replicas)
        return made.configs(settings)

    def _warn_if_not_compacted(self, topics: list[str]) -> None:
        for topic in topics:
            policy = self._setting("TOPIC", topic, "cleanup.policy")
            if policy is not None and "compact" not in policy:
                self._context.warn(
                    f"Topic '{topic}' of table '{self._table.name}' is not compacted ('cleanup.policy' = '{policy}'): "
                    "it keeps superseded rows, and may lose rows that do not change for long."
                )

    def _longest_transaction(self) -> int | None:
        nodes = self._get(self._client.describeCluster().nodes(), "the cluster")
        broker = nodes.iterator().next().idString()
        value = self._setting("BROKER", broker, _LONGEST_KEY)
        return None if value is None else int(value)

    def _setting(self, kind: str, name: str, key: str) -> str | None:
        """A setting of a topic or broker; None if this user may not see it."""
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
