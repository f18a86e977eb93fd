"""A Kafka sink driven by hand: rows → `encode` → `writer` in Spark's workers, batch by batch, without a job around."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from headwater.catalog.tables import Table
from headwater.connectors.kafka.write.sink import KafkaSink
from headwater.connectors.runtime import RuntimeContext, Sink, SinkStart, Writer
from headwater.connectors.workers import in_worker
from headwater.execution.spark import job_session
from headwater.protocol.batch_ids import BatchId
from headwater.session import connect
from headwater.testing.kafka import Kafka, Record

TASKS = 2
NO_BATCH = BatchId(0, "")


def table_of(ddl: str, kafka: str) -> Table:
    """What a CREATE TABLE defines; '${kafka}' stands for the broker."""
    session = connect(variables={"kafka": kafka})
    session.sql(ddl)
    return next(iter(session.catalog.tables()))


def in_workers(writer: Writer, batch: BatchId) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow`. A function in a function travels as a value: this module is not on the workers' path."""

    def write(messages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        written = writer(context.partitionId(), batch, messages)
        yield pa.RecordBatch.from_pydict({"written": pa.array([written], pa.int64())})

    return write


class SinkLab:
    """One sink after the other for the same table, as runs of one job have them."""

    def __init__(self, spark: SparkSession, kafka: Kafka, ddl: str, checkpoint: str = "") -> None:
        self.spark = job_session(spark, TASKS, "UTC")
        self.kafka = kafka
        self.warnings: list[str] = []
        self.checkpoint = checkpoint or uuid.uuid4().hex[:8]
        self.table = table_of(ddl, kafka.bootstrap_servers)
        self.sink: Sink = self.open()

    def open(self) -> Sink:
        self.sink = KafkaSink(self.table, RuntimeContext(self.spark, "job", TASKS, self.warnings))
        return self.sink

    def start(self, committed: BatchId = NO_BATCH, pending: BatchId | None = None, **facts: Any) -> None:
        given = {"rerouted": False, "deterministic": True, "writers": TASKS, **facts}
        self.sink.start(SinkStart(self.checkpoint, committed, pending=pending, **given))

    def rows(self, schema: str, rows: Sequence[tuple[Any, ...]], tasks: int = TASKS) -> DataFrame:
        """The rows, in as many tasks, one part after the other."""
        return self.spark.createDataFrame(self.spark.sparkContext.parallelize(list(rows), tasks), schema)

    def write(self, rows: DataFrame, batch: BatchId) -> int:
        sent, writer = self.sink.encode(rows), self.sink.writer()
        if writer is None:
            return self.sink.save(sent) or 0
        written = sent.mapInArrow(in_worker(in_workers(writer, batch)), "written BIGINT").collect()
        return sum(row[0] for row in written)

    def messages(self, topic: str, partitions: int) -> list[Record]:
        """All messages of a topic that are committed."""
        ends = {p: end for (_, p), end in self.kafka.ends({topic: partitions}).items()}
        return self.kafka.read(topic, {}, ends)
