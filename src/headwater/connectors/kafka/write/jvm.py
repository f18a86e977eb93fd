"""The fallback where librdkafka cannot take a table's properties: Spark's own Kafka writer, inside the JVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark import Accumulator, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StructType

from headwater.connectors.kafka.clients.spark_options import spark_connector, writer_options
from headwater.connectors.kafka.write.partitions import RECORD, ROW, Partitioning
from headwater.connectors.workers import Batches

__all__ = ["JvmWriter"]


class JvmWriter:
    """Writes one batch of messages after the other."""

    def __init__(self, spark: SparkSession, properties: Mapping[str, str]) -> None:
        self._spark = spark
        self._properties = properties
        self._written: Accumulator[int] = spark.sparkContext.accumulator(0)
        self._saved = 0

    def save(self, messages: DataFrame, partitioning: Partitioning, settings: Mapping[str, str]) -> int:
        """Answers how many messages were written; a task that Spark runs again is counted again."""
        before = self._written.value
        self._saved += 1
        step = _placed(partitioning, self._saved, self._written)
        writer = messages.mapInArrow(step, _schema(messages, partitioning)).write.format("kafka").mode("append")
        options = writer_options({**settings, **self._properties})
        if "topic" not in messages.columns:
            options["topic"] = partitioning.topic
        with spark_connector(self._spark, self._properties):
            writer.options(**options).save()
        return self._written.value - before


def _placed(partitioning: Partitioning, batch: int, written: Accumulator[int]) -> Callable[[Batches], Batches]:
    """Spark's writer does not tell how many messages it wrote where it hides its options; so they are counted here."""

    def place(messages: Batches) -> Batches:
        context = TaskContext.get()
        for part in partitioning.place(context.partitionId() if context is not None else 0, batch, messages):
            written.add(part.num_rows)
            yield part

    return place


def _schema(messages: DataFrame, partitioning: Partitioning) -> StructType:
    kept = StructType([field for field in messages.schema.fields if field.name not in (RECORD, ROW)])
    return kept.add("partition", IntegerType()) if partitioning.chooses(messages.columns) else kept
