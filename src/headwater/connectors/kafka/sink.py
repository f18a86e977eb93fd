"""Writing a topic: rows → messages → Kafka, as often as the table's delivery guarantee says.

Two things write. Spark's own Kafka writer is used where it can do all that is asked. librdkafka, in Spark's Python
workers, is used for transactions and for messages that bring their own timestamp, which Spark's writer cannot set.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from headwater.catalog.tables import Table
from headwater.connectors.io import IoContext, Pace, Sink, SinkStart
from headwater.connectors.kafka.client import has_secrets, spark_connector, writer_options
from headwater.connectors.kafka.layout import registered_sides
from headwater.connectors.kafka.librdkafka import producer_settings
from headwater.connectors.kafka.messages import ROW, messages
from headwater.connectors.kafka.options import PARTITIONERS, PROPERTIES
from headwater.connectors.kafka.partitioners import load_partitioner, with_built_in, with_custom
from headwater.connectors.kafka.produce import plain_writer
from headwater.connectors.kafka.topics import SinkTopics
from headwater.connectors.kafka.transactions import Transactions, Writer, write_once
from headwater.errors import IncompatibleCheckpointError
from headwater.options.secrets import is_secret
from headwater.runtime.keyed import in_worker

__all__ = ["KafkaSink"]


class KafkaSink(Sink):
    """A `kafka` or `upsert-kafka` table being written."""

    def __init__(self, table: Table, context: IoContext) -> None:
        self._table = table
        self._options = table.options
        self._context = context
        self._properties = table.options.family(PROPERTIES)
        self._guarantee = table.options.string("sink.delivery-guarantee")
        self._partitioner = table.options.string("sink.partitioner")
        if table.primary_key and self._partitioner == "round-robin":
            context.warn(
                "'sink.partitioner' = 'round-robin' spreads the messages of one key over partitions: readers of the "
                f"topic of table '{table.name}' cannot tell which of them is the newest."
            )
        self._topics = SinkTopics(table, context)
        self._counts: dict[str, int] = {}
        self._transactions: Transactions | None = None
        self._writers = table.options.integer("sink.parallelism") or 0
        self.pace = _pace(table)
        self.whole = self._guarantee == "exactly-once"

    def start(self, job: SinkStart) -> dict[str, Any]:
        self._counts = self._topics.prepare()
        for _, format_, side in registered_sides(self._table):
            format_.before_writing(side.fields, side.options)
        if self._guarantee != "exactly-once":
            return {}
        settings = {**producer_settings(self._properties), "transaction.timeout.ms": self._topics.transaction_millis()}
        prefix = self._options.string("sink.transactional-id-prefix") or f"headwater-{job.checkpoint}"
        stem = f"{prefix}-{self._context.job}"
        self._transactions = Transactions(stem, job.checkpoint, tuple(self._counts), _bounded(settings))
        facts = self._facts(job)
        if job.begun and job.remembered:
            facts = self._continued(job, facts)
        self._writers = int(facts["writers"])
        return facts

    def _facts(self, job: SinkStart) -> dict[str, Any]:
        """What decides which rows a writer gets. Rows that come out differently the second time must all be in one
        transaction, which is there as a whole or not at all."""
        own = self._writers or int(self._context.spark.conf.get("spark.sql.shuffle.partitions") or 1)
        told = {k: v for k, v in self._options.given.items() if not k.startswith(PROPERTIES) and not is_secret(k)}
        digest = hashlib.sha256(json.dumps([job.plan, sorted(told.items())]).encode()).hexdigest()
        return {"writers": own if job.repeatable else 1, "rows": digest[:16]}

    def _continued(self, job: SinkStart, facts: dict[str, Any]) -> dict[str, Any]:
        """A batch was begun: it is finished by the same writers. If other rows would come out now, none of them may
        have been written yet. Opening the writers also ends what killed ones have left open."""
        assert self._transactions is not None
        marks = [_mark(self._transactions, number) for number in range(int(job.remembered["writers"]))]
        if facts["rows"] == job.remembered["rows"]:
            return dict(job.remembered)
        if any(mark >= job.batch for mark in marks):
            raise IncompatibleCheckpointError(
                f"Batch {job.batch} of job '{self._context.job}' was written in part by another query.",
                detail="'exactly-once' can finish it only with the very SQL and table options it was begun with.",
                hint="Undo the change, run the job until that batch is done, stop it, and then change it.",
            )
        return facts

    def write(self, rows: DataFrame, batch: int, *, steady: bool) -> int | None:
        sent = self._sent(rows, batch, steady)
        if self._transactions is not None:
            return _counted(sent, _Once(self._transactions, batch))
        if "timestamp" in sent.columns:
            settings = {**producer_settings(self._properties), **self._acks()}
            return _counted(sent, _Plain(self._topic, settings))
        return self._write_by_spark(sent)

    def close(self) -> None:
        self._topics.close()

    @property
    def _topic(self) -> str:
        """Where rows go that do not name their topic."""
        return next(iter(self._counts))

    def _sent(self, rows: DataFrame, batch: int, steady: bool) -> DataFrame:
        """Messages, in the tasks that write them, with the partition that the partitioner chooses. Transactions of
        `steady` rows need no shuffle: their writers get the same share another time, too."""
        custom = self._partitioner not in PARTITIONERS
        sent = messages(rows, self._table, with_record=custom)
        if custom:
            sent = with_custom(sent, load_partitioner(self._partitioner), self._topic, self._counts)
        keyed = "key" in sent.columns
        if self._writers == 1:
            sent = sent.repartition(1)
        elif self._transactions is not None and steady:
            sent = sent.coalesce(self._writers)
        elif self._writers:
            sent = sent.repartition(self._writers, next(c for c in ("key", ROW, "value") if c in sent.columns))
        elif keyed and self._partitioner == "fixed":
            sent = sent.repartition("key")  # keeps a key in the partition where it was
        return with_built_in(sent, self._partitioner, self._counts, batch)

    def _write_by_spark(self, sent: DataFrame) -> int:
        if has_secrets(self._properties):  # then Spark does not tell what it wrote
            before = self._length()
            self._save(sent)
            return self._length() - before
        written = Observation()
        self._save(sent.observe(written, F.count(F.lit(1)).alias("rows")))
        return int(written.get["rows"])

    def _save(self, sent: DataFrame) -> None:
        options = writer_options({**self._acks(), **self._properties})
        writer = sent.write.format("kafka").options(**options).mode("append")
        if "topic" not in sent.columns:
            writer = writer.option("topic", self._topic)
        with spark_connector(self._context.spark, self._properties):
            writer.save()

    def _length(self) -> int:
        """How many messages the topics have ever got."""
        return sum(self._topics.latest([(topic, p) for topic, n in self._counts.items() for p in range(n)]).values())

    def _acks(self) -> dict[str, str]:
        """'none' does not wait for replicas."""
        return {"acks": "1", "enable.idempotence": "false"} if self._guarantee == "none" else {}


def _pace(table: Table) -> Pace | None:
    if not table.options.values.get("sink.buffer-flush.max-rows"):
        return None
    interval = table.options.duration("sink.buffer-flush.interval")
    return Pace(table.options.integer("sink.buffer-flush.max-rows") or 0, interval.total_seconds())


def _bounded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A message must be given up before its transaction is."""
    longest = int(settings["transaction.timeout.ms"])
    return {**settings, "message.timeout.ms": min(int(settings["message.timeout.ms"]), longest)}


def _mark(transactions: Transactions, number: int) -> int:
    writer = Writer(transactions, number)
    try:
        return writer.done
    finally:
        writer.close()


def _counted(sent: DataFrame, write: _Once | _Plain) -> int:
    """Run `write` in every task and add up what it wrote."""
    return sum(int(row[0]) for row in sent.mapInArrow(in_worker(write), "written BIGINT").collect())


@dataclass(frozen=True)
class _Once:
    """In a worker: the rows of one writer, in one transaction."""

    transactions: Transactions
    batch: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        yield _number(write_once(self.transactions, number, self.batch, batches))


@dataclass(frozen=True)
class _Plain:
    """In a worker: the rows of one task, without a transaction."""

    topic: str
    settings: Mapping[str, Any]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        yield _number(plain_writer(self.settings).write(self.topic, batches))


def _number(written: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"written": pa.array([written], pa.int64())})
