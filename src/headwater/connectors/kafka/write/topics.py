"""The topics of a sink: made if they are missing and the table asks for it, and looked at before the first row."""

from __future__ import annotations

import re
import time
from collections import Counter

from headwater.catalog.tables import Table
from headwater.connectors.kafka.clients.admin import NewTopic, open_admin
from headwater.connectors.kafka.clients.broker_errors import UnknownTopicError
from headwater.connectors.kafka.table.options import PROPERTIES, TOPIC_CONFIG
from headwater.connectors.runtime import RuntimeContext
from headwater.errors import KafkaRefusedError, KafkaUnavailableError, ValidationError

__all__ = ["SinkTopics"]

_TIMEOUT_KEY = "transaction.timeout.ms"
_LONGEST_KEY = "transaction.max.timeout.ms"
TRANSACTION_MILLIS = 300_000
_AS_THE_BROKER_LIKES = -1
_ATTEMPTS = 100
_PAUSE_SECONDS = 0.05


class SinkTopics:
    """Questions and requests about the topics that one table writes."""

    def __init__(self, table: Table, context: RuntimeContext) -> None:
        self._admin = open_admin(context.spark, table.options.family(PROPERTIES))
        self._table = table
        self._context = context

    def close(self) -> None:
        self._admin.close()

    def prepare(self) -> dict[str, int]:
        """The number of partitions of every topic that rows may go to. Missing ones are made, or are an error."""
        topics = list(self._table.options.strings("topic")) or self._matching()
        found = self._admin.partition_counts(topics)
        missing = [topic for topic in topics if topic not in found]
        if missing and self._table.options.flag("sink.topic.create"):
            self._create(missing)
        if self._table.connector.reads_upserts:
            # Only topics that were there before: those made here have the policy that the table asks for.
            self._warn_if_not_compacted(list(found))
        added = Counter(topic for topic, _ in self._admin.partitions(missing)) if missing else {}
        return {topic: {**found, **added}[topic] for topic in topics}

    def _matching(self) -> list[str]:
        pattern = re.compile(self._table.options.string("topic-pattern"))
        topics = sorted(topic for topic in self._admin.all_topics() if pattern.fullmatch(topic))
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
            # Nobody has asked for our default, so a broker that allows less is no error.
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
        # Retention by time would delete rows that are still current, so a keyed topic is compacted unless the table
        # says otherwise.
        config = {"cleanup.policy": "compact"} if self._table.primary_key else {}
        config |= options.family(TOPIC_CONFIG)
        partitions = options.integer("sink.topic.partitions") or _AS_THE_BROKER_LIKES
        replicas = options.integer("sink.topic.replication-factor") or _AS_THE_BROKER_LIKES
        self._admin.create([NewTopic(topic, partitions, replicas, config) for topic in topics])
        self._await_leaders(topics)

    def _await_leaders(self, topics: list[str]) -> None:
        """A topic that was just made may not be known everywhere yet."""
        for _ in range(_ATTEMPTS):
            try:
                self._admin.latest(self._admin.partitions(topics))
                return
            # A permanent error elsewhere; here it only means that the answering broker has not heard of the topic yet.
            except UnknownTopicError:
                pass
            except KafkaRefusedError:
                raise
            except KafkaUnavailableError:
                pass
            time.sleep(_PAUSE_SECONDS)
        self._admin.latest(self._admin.partitions(topics))

    def _warn_if_not_compacted(self, topics: list[str]) -> None:
        for topic in topics:
            policy = self._admin.topic_setting(topic, "cleanup.policy")
            if policy is not None and "compact" not in policy:
                self._context.warn(
                    f"Topic '{topic}' of table '{self._table.name}' is not compacted ('cleanup.policy' = '{policy}'): "
                    "it keeps superseded rows, and may lose rows that do not change for long."
                )

    def _longest_transaction(self) -> int | None:
        value = self._admin.broker_setting(_LONGEST_KEY)
        return None if value is None else int(value)
