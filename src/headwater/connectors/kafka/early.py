"""GROUP BY begun in the workers that read the messages, where all it needs are fields that Arrow reads as they are.

It is a short cut for ordinary messages: one that Arrow refuses ends it for the whole batch, with an error that says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, LongType, StructType

from headwater.catalog.tables import Table
from headwater.changelog.early import Contribution, EarlyGroups
from headwater.connectors.kafka.ingest import Messages, Treatment, field_names, ingest_groups
from headwater.connectors.kafka.sides import Side, payload_of, present_payloads, used_sides
from headwater.formats.base import ColumnReader

__all__ = ["read_groups"]


def read_groups(messages: Messages, table: Table, early: EarlyGroups) -> DataFrame | None:
    """Rows of groups and contributions; None if it takes more than this to read the columns."""
    sides = used_sides(table, early.columns)
    readers = {side.payload: reader for side in sides if (reader := _plain_reader(side)) is not None}
    if len(readers) < len(sides) or any(c.name in early.columns for c in table.metadata_columns):
        return None
    present = present_payloads(table)
    payloads = tuple(dict.fromkeys([*present, *readers]))
    treatment = Treatment(payloads, present, keyed=False, keeps_payloads=False)
    fields = {column: _field(column, table, sides, readers) for column in early.columns}
    types = {column: DataType.fromDDL(kind) for column, (_, kind) in fields.items()}
    names = {column: name for column, (name, _) in fields.items()}
    return ingest_groups(messages, readers, treatment, names, early, _schema(early, types))


def _plain_reader(side: Side) -> ColumnReader | None:
    """The reader, if what it reads are the columns, without conversion and without errors."""
    reader = side.decoder.reader
    if reader is None or side.decoder.changes is not None:
        return None
    names = field_names(side.payload, reader)
    plain = reader.error(names) is None and list(reader.columns(names)) == [f"`{name}`" for name in names]
    return reader if plain else None


def _field(column: str, table: Table, sides: list[Side], readers: Mapping[str, ColumnReader]) -> tuple[str, str]:
    """The name and Spark's type of what was read for a column."""
    side = next(s for s in sides if s.payload == payload_of(column, table))
    place, reader = side.wanted.index(column), readers[side.payload]
    return field_names(side.payload, reader)[place], reader.types[place]


def _schema(early: EarlyGroups, types: Mapping[str, DataType]) -> StructType:
    schema = StructType()
    for column, name in early.groups:
        schema.add(name, types[column])
    for contribution in early.contributions:
        schema.add(contribution.name, _type(contribution, types))
    return schema


def _type(contribution: Contribution, types: Mapping[str, DataType]) -> DataType:
    match contribution.how:
        case "rows" | "present":
            return LongType()
        case "sum":
            return DoubleType() if isinstance(types[contribution.column], DoubleType | FloatType) else LongType()
        case "values":
            return ArrayType(types[contribution.column])
    return types[contribution.column]
