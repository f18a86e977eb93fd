"""A table and the columns that a query wants → how they are read: for workers, and as Spark SQL behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import cast

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    StructField,
    StructType,
)

from headwater.catalog.connector import Emits
from headwater.catalog.tables import Table
from headwater.changelog.conditions import Condition
from headwater.changelog.kinds import KIND
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION
from headwater.changelog.preaggregate import PreAggregation
from headwater.connectors.kafka.read.columns import PayloadColumns
from headwater.connectors.kafka.read.expressions import (
    REST,
    RowExpressions,
    carried_columns,
    keeps_late_rows,
    only_topic,
)
from headwater.connectors.kafka.read.local_aggregation import LocalGroups
from headwater.connectors.kafka.read.payloads import (
    WantedPayload,
    holds_changes,
    payload_of,
    present_payloads,
    wanted_payloads,
)
from headwater.connectors.kafka.read.reader import MESSAGE, READ, WHOLE, MessageDecoding, RowFilter
from headwater.connectors.kafka.table.metadata import MESSAGE_WITH_HEADERS
from headwater.connectors.runtime import LocalAggregation, ReadColumns
from headwater.connectors.spark_types import partial_type, type_sql
from headwater.sql.spark_text import quote_name
from headwater.sql.statements import MetadataColumn

__all__ = ["TableScan"]


@dataclass(frozen=True)
class TableScan:
    """`tolerant`: bad messages are counted under the name `metric` and left out. `placed`: every row is wanted, with
    its partition as PLACE. Of other rows those for which `where` is not TRUE may be left out. `ordered`: changes have
    the columns that tell their order."""

    table: Table
    columns: tuple[str, ...]
    tolerant: bool
    metric: str = ""
    placed: bool = False
    where: Condition | None = None
    ordered: bool = True

    @cached_property
    def payloads(self) -> list[WantedPayload]:
        return wanted_payloads(self.table, self.columns)

    @property
    def expressions(self) -> RowExpressions:
        metric = self.metric if self.tolerant else ""
        return RowExpressions(
            self.table, self.columns, tuple(self.payloads), metric, placed=self.placed, ordered=self.ordered
        )

    @property
    def rows(self) -> StructType:
        """What a reader gives."""
        return self._schema(self._carried)

    def decoding(self) -> MessageDecoding:
        """What a reader does with messages."""
        return replace(self._decoding(self._carried, self.rows), where=self._filter)

    @property
    def _filter(self) -> RowFilter | None:
        """None where it takes more than what column readers read."""
        if self.where is None or self.placed or self._fallible:
            return None
        plain = {column: name for payload in self.payloads for column, name in _plain_columns(payload).items()}
        if not self.reads_columns or not self.where.columns <= plain.keys():
            return None
        return RowFilter(self.where, {column: plain[column] for column in sorted(self.where.columns)})

    def read_columns(self) -> ReadColumns | None:
        """None where column readers do not read all columns as they are, where that may still fail, and where late
        rows are kept, one by one."""
        if not self.placed or not self.reads_columns or self._fallible or keeps_late_rows(self.table):
            return None
        # A message of changes may be several rows, which the expressions make of it.
        if holds_changes(self.table):
            return None
        place = ("partition",) if only_topic(self.table) is not None else ("topic", "partition")
        names = {**self._plain_names, **self._metadata_names}
        order = (KIND, ORDER, PARTITION, OFFSET) if self.table.connector.reads_upserts else ()
        if not names.keys() >= {*self.columns, *order}:
            return None
        return ReadColumns(
            names, MESSAGE, place, lambda rows, kept: replace(self.expressions, kept=tuple(kept)).rows(rows)
        )

    @property
    def _plain_names(self) -> dict[str, str]:
        """Columns that are read as they are. One that key and value have is read from one of them: of a tombstone only
        the key is there."""
        return {
            column: name
            for payload in self.payloads
            for column, name in _plain_columns(payload).items()
            if payload_of(column, self.table) == payload.name
        }

    @property
    def _metadata_names(self) -> dict[str, str]:
        """Columns of messages that rows have as they are: the time of a message, which is the most common event time,
        and of changes what says in which order they came. With several topics, their partition is computed."""
        times = [c.name for c in self.table.metadata_columns if c.name in self.columns and _is_message_time(c)]
        names = dict.fromkeys(times, "timestamp")
        if self.table.connector.reads_upserts and only_topic(self.table) is not None:
            names |= {KIND: KIND, ORDER: "timestamp", PARTITION: "partition", OFFSET: "offset"}
        return names

    @property
    def _carried(self) -> list[str]:
        return carried_columns(self.table, self.columns, placed=self.placed, ordered=self.ordered)

    def doubtful(self) -> tuple[StructType, MessageDecoding]:
        """The same for messages that may be bad, whole: with all columns of messages, and without what is read."""
        whole = [name for name in _message().names if name not in WHOLE.values()]
        carried = [*WHOLE, *(name for name in whole if name not in {"timestamp", "timestampType"})]
        schema = self._schema(carried)
        return schema, replace(self._decoding(carried, schema), doubtful=True)

    def local(self, wanted: LocalAggregation) -> _LocalScan | None:
        """None if it takes more than column readers to make the columns of rows that were read. Rows of an upsert table
        replace each other: they cannot be added up before their keys have met."""
        if self.table.connector.gives(self.table) is not Emits.APPEND:
            return None
        used = wanted_payloads(self.table, wanted.columns)
        metadata = {c.name for c in self.table.metadata_columns}
        if not all(map(_is_plain, used)) or metadata & set(wanted.columns):
            return None
        return _LocalScan(replace(self, columns=wanted.columns), wanted)

    @property
    def reads_columns(self) -> bool:
        """Whether column readers can read all that is wanted."""
        return all(p.reader is not None for p in self.payloads)

    def _decoding(self, carried: Sequence[str], schema: StructType) -> MessageDecoding:
        present = present_payloads(self.table)
        upserts = self.table.connector.reads_upserts
        message = schema[MESSAGE].dataType
        assert isinstance(message, ArrayType)
        assert isinstance(message.elementType, StructType)
        shown = {f.name for f in message.elementType if f.name != READ}
        used = {*present, *shown, *(WHOLE.get(name, name) for name in carried)}
        used |= {"key", "value", "partition"} if upserts else set()
        return MessageDecoding(
            to_arrow_schema(StructType([f for f in _message() if f.name in used])),
            present,
            tuple(self._columns_of(p) for p in self.payloads),
            self._fallible,
            tuple(carried),
            upserts,
            self._superseding,
            to_arrow_schema(schema),
        )

    @property
    def _superseding(self) -> str | None:
        """A message that gives no row supersedes none. Where bad ones stop the job, only a message without rows can be
        one, and those are left out before."""
        if self.placed or not self.table.connector.reads_upserts:
            return None
        lenient = any(p.side.options.get("ignore-parse-errors") for p in self.payloads)
        return "sure" if self.tolerant or lenient else "any"

    @property
    def _fallible(self) -> bool:
        return self.reads_columns and any(p.fallible for p in self.payloads)

    def _columns_of(self, payload: WantedPayload) -> PayloadColumns:
        reader = payload.reader if self.reads_columns else None
        types = tuple(to_arrow_type(DataType.fromDDL(t)) for t in reader.types) if reader is not None else ()
        return PayloadColumns(payload.name, types, reader, payload.decoder.rows)

    def _schema(self, carried: Sequence[str]) -> StructType:
        schema = StructType()
        for payload in self.payloads if self.reads_columns else ():
            assert payload.reader is not None
            for name, kind in zip(payload.names, payload.reader.types, strict=True):
                schema.add(name, DataType.fromDDL(kind))
        for name in carried:
            schema.add(name, _message()[WHOLE.get(name, name)].dataType)
        if self.table.connector.reads_upserts:
            schema.add(KIND, ByteType())
        return schema.add(MESSAGE, ArrayType(self._message_type()))

    def _message_type(self) -> StructType:
        """What must be known of a message that was refused, or whose conversion may fail."""
        fields = [StructField(READ, BooleanType())] if self._fallible else []
        fields += [StructField(p.name, BinaryType()) for p in self.payloads]
        names = ["partition", "offset"] if only_topic(self.table) is not None else ["topic", "partition", "offset"]
        return StructType([*fields, *(_message()[name] for name in names)])


@dataclass(frozen=True)
class _LocalScan:
    """Groups and partial aggregates of the columns in `scan`."""

    scan: TableScan
    wanted: LocalAggregation

    @property
    def schema(self) -> StructType:
        schema = StructType()
        for field in self._output:
            schema.add(f"__hw_local_{field.name}", field.dataType)
        return schema.add(self.scan.rows[MESSAGE])

    def decoding(self) -> MessageDecoding:
        rows = self.scan.rows
        names = {column: self._read_name(column) for column in self.wanted.columns}
        output = to_arrow_schema(self.schema)
        local = LocalGroups(self.wanted.groups, names, to_arrow_schema(rows), output, self.wanted.where)
        return replace(self.scan.decoding(), local=local, output=output)

    def decode(self, frame: DataFrame) -> DataFrame:
        """Groups as they are, and messages that were refused as groups of one row."""
        local = [f"__hw_local_{field.name}" for field in self._output]
        rest = replace(self.scan.expressions, kept=(*local, REST)).rows(self._as_rows(frame))
        # Groups have passed the condition in the worker; messages that were refused there have not.
        if self.wanted.where_sql:
            rest = rest.where(f"{REST} IS NULL OR {self.wanted.where_sql}")
        items = []
        for field, name in zip(self._output, local, strict=True):
            alone = f"CAST({self.wanted.sql[field.name]} AS {type_sql(field.dataType)})"
            items.append(f"IF({REST} IS NULL, {quote_name(name)}, {alone}) AS {quote_name(field.name)}")
        return rest.selectExpr(*items)

    def _as_rows(self, frame: DataFrame) -> DataFrame:
        """With a NULL for every column that a reader would have read."""
        missing = [f for f in self.scan.rows if f.name not in frame.columns]
        return frame.selectExpr(
            "*", *(f"CAST(NULL AS {type_sql(f.dataType)}) AS {quote_name(f.name)}" for f in missing)
        )

    def _read_name(self, column: str) -> str:
        payload = next(p for p in self.scan.payloads if p.name == payload_of(column, self.scan.table))
        return payload.names[payload.wanted.index(column)]

    @cached_property
    def _output(self) -> list[StructField]:
        rows = self.scan.rows
        types = {column: rows[self._read_name(column)].dataType for column in self.wanted.groups.columns}
        groups: PreAggregation = self.wanted.groups
        fields = [StructField(name, types[column]) for column, name in groups.groups]
        return [*fields, *(StructField(c.name, partial_type(c, types)) for c in groups.partials)]


def _is_message_time(column: MetadataColumn) -> bool:
    return column.key == "timestamp" and column.type.name == "TIMESTAMP_LTZ" and (column.type.precision or 0) >= 3


def _is_plain(payload: WantedPayload) -> bool:
    """Whether what its reader reads are the columns, without conversion and without errors."""
    return len(_plain_columns(payload)) == len(payload.wanted)


def _plain_columns(payload: WantedPayload) -> dict[str, str]:
    """The columns that its reader reads as they are, without conversion and without errors, and what they are called
    then."""
    if payload.reader is None or payload.fallible or payload.decoder.changes is not None:
        return {}
    read = zip(payload.wanted, payload.names, payload.reader.columns(payload.names), strict=True)
    return {column: name for column, name, sql in read if sql == quote_name(name)}


@cache
def _message() -> StructType:
    """A message, as Spark's Kafka source has it."""
    return cast("StructType", StructType.fromDDL(MESSAGE_WITH_HEADERS))
