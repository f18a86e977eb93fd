"""Writing a topic: rows → messages, at least once, by Spark's own Kafka writer."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from headwater.catalog.tables import Table
from headwater.changelog.kinds import KIND
from headwater.connectors.io import IoContext
from headwater.connectors.kafka.admin import KafkaAdmin, Offsets
from headwater.connectors.kafka.client import writer_options
from headwater.connectors.kafka.layout import MessageSide, message_layout
from headwater.connectors.rows import checked_not_null

__all__ = ["KafkaSink"]

GONE = f"{KIND} IN (1, 3)"


class KafkaSink:
    """A `kafka` or `upsert-kafka` table being written.

    A keyed table gets one message per change: the row, or for a delete a null value. Kafka's own partitioner (murmur2
    of the key's bytes) keeps all messages of a key in one partition, and one task writes them in order.
    """

    def __init__(self, table: Table, context: IoContext) -> None:
        self._table = table
        self._layout = message_layout(table)
        self._properties = table.options.family("properties.")
        self._topic = table.options.strings("topic")[0]
        self._admin = KafkaAdmin(context.spark, self._properties)
        self._partitions = 0
        self._ends: Offsets = {}

    def write(self, rows: DataFrame, batch: int) -> int | None:
        if not self._partitions:
            self._partitions = len(self._admin.partitions([self._topic]))
            self._appeared()
        parallelism = self._table.options.integer("sink.parallelism")
        if parallelism:
            rows = rows.coalesce(parallelism)  # joins whole partitions, so rows of a key stay in order
        writer = self._messages(rows).write.format("kafka").options(**writer_options(self._properties))
        writer.option("topic", self._topic).save()
        return self._appeared()

    def _appeared(self) -> int:
        """How many messages the topic has got since the last look. Spark's writer does not tell what it wrote."""
        ends = self._admin.latest([(self._topic, p) for p in range(self._partitions)])
        before, self._ends = self._ends, ends
        return sum(ends.values()) - sum(before.values())

    def close(self) -> None:
        self._admin.close()

    def _messages(self, rows: DataFrame) -> DataFrame:
        changing = KIND in rows.columns
        rows = checked_not_null(rows, self._table)
        value = _encoded(self._layout.value)
        columns = [f"{f'IF({GONE}, NULL, {value})' if changing else value} AS value"]
        if self._layout.key is not None:
            columns.append(f"{_encoded(self._layout.key)} AS key")
        columns += self._metadata()
        partition = self._partition()
        if partition:
            columns.append(f"CAST({partition} AS INT) AS partition")
        return rows.selectExpr(*columns)

    def _metadata(self) -> list[str]:
        written = {c.key: c.name for c in self._table.metadata_columns if not c.virtual}
        if "headers" in written:
            name = _quoted(written["headers"])
            return [f"transform(map_entries({name}), e -> named_struct('key', e.key, 'value', e.value)) AS headers"]
        if "header-list" in written:
            name = _quoted(written["header-list"])
            return [f"transform({name}, e -> named_struct('key', e.key, 'value', e.value)) AS headers"]
        return []

    def _partition(self) -> str:
        values: dict[str, Any] = dict(self._table.options.values)
        partitioner = values.get("sink.partitioner") or "default"
        if partitioner == "fixed":
            return f"spark_partition_id() % {self._partitions}"
        if partitioner == "round-robin":
            return f"(monotonically_increasing_id() + spark_partition_id()) % {self._partitions}"
        return ""


def _encoded(side: MessageSide) -> str:
    return side.format.encoder(side.fields, [_quoted(c) for c in side.columns], side.options)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
