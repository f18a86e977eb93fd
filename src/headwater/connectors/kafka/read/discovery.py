"""Which partitions a table reads: those of its topics, or of all topics that match its pattern, as of the last look."""

from __future__ import annotations

import time

from headwater.catalog.tables import Table
from headwater.connectors.kafka.clients.admin import Admin, TopicPartition
from headwater.connectors.kafka.clients.broker_errors import UnknownTopicError
from headwater.connectors.runtime import RuntimeContext

__all__ = ["Discovery"]


class Discovery:
    """`scan.topic-partition-discovery.interval` says how long an answer is good for; 0: for ever."""

    def __init__(self, table: Table, admin: Admin, context: RuntimeContext) -> None:
        self._table = table
        self._admin = admin
        self._context = context
        self._interval = table.options.duration("scan.topic-partition-discovery.interval").total_seconds()
        self._found: list[TopicPartition] | None = None
        self._looked_at = 0.0

    def partitions(self) -> list[TopicPartition]:
        """Asked for again after the interval."""
        due = self._interval > 0 and time.monotonic() - self._looked_at >= self._interval
        if self._found is None or due:
            return self.look()
        return self._found

    def look(self) -> list[TopicPartition]:
        """Now. Topics that do not exist (any more) are left out."""
        # What is gone is left out without a word: whether that is a loss is decided by DataLossPolicy, which knows
        # where the job stands.
        counts = self._admin.partition_counts(self._topics())
        self._looked_at = time.monotonic()
        self._found = sorted((topic, p) for topic, count in counts.items() for p in range(count))
        return self._found

    def look_for_all(self) -> list[TopicPartition]:
        """The same for a new job, which must find every topic of its list."""
        found = self.look()
        missing = set(self._table.options.strings("topic")) - {topic for topic, _ in found}
        if missing:
            servers = self._table.options.string("properties.bootstrap.servers")
            raise UnknownTopicError.of(min(missing), servers, there=self._admin.names_like(min(missing)))
        if not found:
            pattern = self._table.options.string("topic-pattern")
            self._context.warn(f"Table '{self._table.name}': no topic matches '{pattern}' yet.")
        return found

    def _topics(self) -> list[str]:
        pattern = self._table.options.string("topic-pattern")
        return self._admin.topics(pattern) if pattern else list(self._table.options.strings("topic"))
