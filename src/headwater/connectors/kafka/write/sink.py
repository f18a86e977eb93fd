"""Writing a topic, on the driver: topics and schemas are made ready, rows become messages, writers get their settings.

The guarantee is a setting of the one writer: `none` does not wait for replicas, `at-least-once` waits for all of them,
`exactly-once` puts the messages of each writer and batch into one transaction. Where librdkafka cannot log in
(Kerberos, login modules of one's own), Spark's Kafka writer takes its place; `rules` then refuse exactly-once.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from headwater.catalog.tables import Table
from headwater.changelog.kinds import KIND
from headwater.connectors.kafka.clients.answering import unanswered
from headwater.connectors.kafka.table.layout import key_side, registered_sides
from headwater.connectors.kafka.table.options import PARTITIONERS, PROPERTIES
from headwater.connectors.kafka.write.committed_batches import check_batches
from headwater.connectors.kafka.write.jvm import JvmWriter
from headwater.connectors.kafka.write.messages import messages, pairs_updates, writes_timestamps
from headwater.connectors.kafka.write.partitions import ROW, Partitioning, load_partitioner
from headwater.connectors.kafka.write.settings import acknowledgements, transactional, usable_settings
from headwater.connectors.kafka.write.topics import SinkTopics
from headwater.connectors.kafka.write.transactions import Transactions
from headwater.connectors.kafka.write.writer import KafkaWriter
from headwater.connectors.runtime import FlushInterval, RuntimeContext, Sink, SinkStart, Writer
from headwater.errors import ValidationError
from headwater.sql.spark_text import quote_name

__all__ = ["KafkaSink"]


class KafkaSink(Sink):
    """A `kafka` or `upsert-kafka` table being written. The order is `start`, `encode`, `writer`."""

    def __init__(self, table: Table, context: RuntimeContext) -> None:
        self._table = table
        self._context = context
        self._properties = table.options.family(PROPERTIES)
        self._guarantee = table.options.string("sink.delivery-guarantee")
        self._partitioner = table.options.string("sink.partitioner")
        self._custom = None if self._partitioner in PARTITIONERS else load_partitioner(self._partitioner)
        self._topics = SinkTopics(table, context)
        self._counts: dict[str, int] = {}
        self._transactions: Transactions | None = None
        self._tasks = 0
        # Settled here and not in the workers: a table that cannot be written should fail before the job starts.
        self._client = self._translated()
        self._jvm = JvmWriter(context.spark, self._properties) if self._client is None else None
        self.saves = self._jvm is not None
        self.writers = _writers(table, context)
        self.flush_interval = _flush_interval(table)
        if table.primary_key and self._partitioner == "round-robin":
            context.warn(
                "'sink.partitioner' = 'round-robin' spreads the messages of one key over partitions: readers of the "
                f"topic of table '{table.name}' cannot tell which of them is the newest."
            )

    def _translated(self) -> dict[str, Any] | None:
        """Settings for librdkafka; None if only a client in the JVM can write."""
        try:
            return usable_settings(self._properties, self._guarantee)
        except ValidationError as error:
            if self._guarantee == "exactly-once" or writes_timestamps(self._table):
                raise
            name = self._table.name
            self._context.warn(f"Table '{name}' is written by Spark's Kafka writer, which is slower: {error.fact}")
            return None

    def start(self, job: SinkStart) -> None:
        self._counts = self._topics.prepare()
        for _, format_, side in registered_sides(self._table):
            format_.before_writing(side.fields, side.options)
        if self._guarantee != "exactly-once":
            return
        if not job.deterministic:
            # Rows may come out differently the second time, and reach other writers: all of them go into one
            # transaction.
            self.writers = 1
        # Batch ids are kept per writer: what an earlier run has committed can only be found under the numbers that it
        # used.
        earlier = int(job.remembered.get("writers", 0))
        if self.writers and job.pending is not None and not job.rerouted:
            self.writers = earlier or self.writers  # a pending batch is finished by the same writers
        self._tasks = job.writers
        self._transactions = self._named(job)
        check_batches(self._transactions, max(self.writers or self._tasks, earlier), job)

    def _named(self, job: SinkStart) -> Transactions:
        prefix = self._table.options.string("sink.transactional-id-prefix") or f"headwater-{job.checkpoint}"
        assert self._client is not None
        settings = transactional(self._client, self._topics.transaction_millis())
        stem, earlier = f"{prefix}-{self._context.job}", str(job.remembered.get("topic", ""))
        return Transactions(stem, job.checkpoint, next(iter(self._counts)), settings, earlier)

    def facts(self) -> dict[str, Any]:
        if self._transactions is None:
            return {}
        return {"writers": self.writers or self._tasks, "topic": self._transactions.topic}

    def encode(self, rows: DataFrame) -> DataFrame:
        """Rows stay in their tasks, unless a number of writers is set."""
        writers, pairs = self.writers, KIND in rows.columns and pairs_updates(self._table)
        # Repartitioned by the primary key before old and new rows are paired: the two halves of an update must be in
        # one task.
        if writers is not None and pairs:
            rows = rows.repartition(writers, *map(quote_name, self._table.primary_key))
        sent = messages(rows, self._table, with_record=self._custom is not None)
        if writers is None or pairs:
            return sent
        if writers == 1:
            return sent.repartition(1)
        # By the message key where there is one, so that the messages of a key leave from one task, in order.
        return sent.repartition(writers, next(c for c in ("key", ROW, "value") if c in sent.columns))

    def writer(self) -> Writer | None:
        if self._client is None:
            return None
        return KafkaWriter(self._partitioning, self._client, self._transactions)

    def save(self, messages: DataFrame) -> int | None:
        assert self._jvm is not None
        return self._jvm.save(messages, self._partitioning, acknowledgements(self._guarantee))

    @property
    def _partitioning(self) -> Partitioning:
        return Partitioning(self._partitioner, self._counts, self._custom)

    def unanswered(self) -> str:
        return unanswered(self._table.name, self._properties)

    def close(self) -> None:
        self._topics.close()


def _writers(table: Table, context: RuntimeContext) -> int | None:
    """A number that is asked for; or one that stays the same, where all messages of a key must come from one task."""
    asked = table.options.integer("sink.parallelism")
    keyed = key_side(table) is not None
    if asked:
        return asked
    if pairs_updates(table) or (keyed and table.options.string("sink.partitioner") == "fixed"):
        return context.tasks
    return None


def _flush_interval(table: Table) -> FlushInterval | None:
    if not table.options.values.get("sink.buffer-flush.max-rows"):
        return None
    interval = table.options.duration("sink.buffer-flush.interval")
    return FlushInterval(table.options.integer("sink.buffer-flush.max-rows") or 0, interval.total_seconds())
