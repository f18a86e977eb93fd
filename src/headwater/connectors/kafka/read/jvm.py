"""The fallback where librdkafka cannot take a table's properties: messages fetched by Spark's own Kafka reader."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headwater.connectors.kafka.clients.admin import Offsets
from headwater.connectors.kafka.clients.spark_options import reader_options, spark_connector, writer_options
from headwater.connectors.kafka.read.reader import MessageDecoding
from headwater.connectors.kafka.read.splits import splits_of
from headwater.connectors.kafka.table.metadata import MESSAGE_WITH_HEADERS
from headwater.connectors.runtime import Split

__all__ = ["JvmReader"]


@dataclass(frozen=True)
class JvmReader:
    """`parallelism`: in about how many tasks a batch is read; 0: one per partition."""

    spark: SparkSession
    job: str
    properties: Mapping[str, str]
    continues: bool
    parallelism: int

    def rows(self, splits: Sequence[Sequence[Split]], decoding: MessageDecoding, schema: StructType) -> DataFrame:
        """As `KafkaReader` gives them: only who fetches the messages differs. Spark decides on the tasks."""
        return self.messages(splits).selectExpr(*decoding.messages.names).mapInArrow(decoding, schema)

    def messages(self, splits: Sequence[Sequence[Split]]) -> DataFrame:
        """All messages of the splits."""
        first: Offsets = {}
        end: Offsets = {}
        for split in splits_of(split for mine in splits for split in mine):
            first[split.place] = min(split.first, first.get(split.place, split.first))
            end[split.place] = max(split.end, end.get(split.place, split.end))
        if not end:
            return self.spark.createDataFrame([], MESSAGE_WITH_HEADERS)
        assigned: dict[str, list[int]] = {}
        for topic, partition in end:
            assigned.setdefault(topic, []).append(partition)
        reader = (
            self.spark.read.format("kafka")
            .options(**reader_options(self.properties, self.job))
            .option("failOnDataLoss", "false" if self.continues else "true")
            .option("assign", json.dumps(assigned))
            .option("startingOffsets", _as_json(first))
            .option("endingOffsets", _as_json(end))
            .option("includeHeaders", "true")
        )
        # Spark then divides large partitions; otherwise each is one task, however large it is.
        if self.parallelism:
            reader = reader.option("minPartitions", str(self.parallelism))
        with spark_connector(self.spark, self.properties):
            return reader.load()

    def write(self, messages: DataFrame, topic: str) -> None:
        """Messages of `key`, `value` and `headers`."""
        with spark_connector(self.spark, self.properties):
            writer = messages.write.format("kafka").options(**writer_options(self.properties))
            writer.option("topic", topic).mode("append").save()


def _as_json(offsets: Offsets) -> str:
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        nested.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(nested)
