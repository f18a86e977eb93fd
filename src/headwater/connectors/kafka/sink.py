"""Writing a topic: rows → messages, at least once, by Spark's own Kafka writer."""

from __future__ import annotations

from pyspark.sql import DataFrame

from headwater.catalog.tables import Table
from headwater.changelog.kinds import INSERT, KIND, SHORT_NAMES
from headwater.connectors.io import IoContext
from headwater.connectors.kafka.admin import KafkaAdmin, Offsets
from headwater.connectors.kafka.client import writer_options
from headwater.connectors.kafka.layout import MessageSide, message_layout
from headwater.connectors.rows import checked_not_null

__all__ = ["KafkaSink"]

ROWKIND = "rowkind"
GONE = f"{KIND} IN (1, 3)"


class KafkaSink:
    """A `kafka` or `upsert-kafka` table being written.

    A keyed table gets one message per change: the row, or for a delete a null value. Kafka's own partitioner (murmur2
    of the key's bytes) keeps all messages of a key in one partition, and one task writes them in order.

    With 'sink.changelog' = 'retract' every change is a message with its kind in the header ROWKIND. A `kafka` table
    then has the row that is taken back as its value; in an `upsert-kafka` table a null value still takes a key back.
    """

    def __init__(self, table: Table, context: IoContext) -> None:
        self._table = table
        self._layout = message_layout(table)
        self._properties = table.options.family("properties.")
        self._topic = table.options.strings("topic")[0]
        partitioner = table.options.string("sink.partitioner")
        if self._layout.upserts and partitioner in ("fixed", "round-robin"):
            context.warn(
                f"'sink.partitioner' = '{partitioner}' spreads the messages of one key over partitions: readers of the "
                f"topic of table '{table.name}' cannot tell which of them is the newest."
            )
        self._admin = KafkaAdmin(context.spark, self._properties)
        self._retract = table.options.string("sink.changelog") == "retract"
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
        if changing and self._table.options.flag("sink.ignore-retractions"):
            rows = rows.where(f"NOT {GONE}")
        value = _encoded(self._layout.value)
        nulls = changing and not (self._retract and self._table.connector.identifier == "kafka")
        columns = [f"{f'IF({GONE}, NULL, {value})' if nulls else value} AS value"]
        if self._layout.key is not None:
            columns.append(f"{_encoded(self._layout.key)} AS key")
        columns += self._headers(changing)
        partition = self._partition()
        if partition:
            columns.append(f"CAST({partition} AS INT) AS partition")
        return rows.selectExpr(*columns)

    def _headers(self, changing: bool) -> list[str]:
        """Those of the row, and the kind of the change if it is asked for."""
        written = {c.key: c.name for c in self._table.metadata_columns if not c.virtual}
        parts = []
        if "headers" in written:
            parts.append(f"map_entries({_quoted(written['headers'])})")
        if "header-list" in written:
            parts.append(_quoted(written["header-list"]))
        parts = [f"coalesce(transform({p}, e -> named_struct('key', e.key, 'value', e.value)), array())" for p in parts]
        if self._retract:
            names = ", ".join(f"'{name}'" for name in SHORT_NAMES)
            kind = f"element_at(array({names}), {KIND} + 1)" if changing else f"'{SHORT_NAMES[INSERT]}'"
            parts.append(f"array(named_struct('key', '{ROWKIND}', 'value', CAST({kind} AS BINARY)))")
        return [f"concat({', '.join(parts)}) AS headers"] if parts else []

    def _partition(self) -> str:
        partitioner = self._table.options.string("sink.partitioner")
        if partitioner == "fixed":
            return f"spark_partition_id() % {self._partitions}"
        if partitioner == "round-robin":
            return f"(monotonically_increasing_id() + spark_partition_id()) % {self._partitions}"
        return ""


def _encoded(side: MessageSide) -> str:
    return side.format.encoder(side.fields, [_quoted(c) for c in side.columns], side.options)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
