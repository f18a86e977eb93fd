"""A table in words: the rows of DESCRIBE and the text of SHOW CREATE TABLE. Secrets are masked in both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.catalog.tables import Table, View
from headwater.options.secrets import masked, masked_sql
from headwater.sql.flink_text import flink_name, flink_string
from headwater.sql.paths import split
from headwater.sql.statements import Column, ComputedColumn, MetadataColumn, PhysicalColumn
from headwater.sql.types import SqlType
from headwater.sql.writer import write_sql

__all__ = ["DescribeRow", "describe_table", "describe_view", "show_create"]


@dataclass(frozen=True)
class DescribeRow:
    name: str
    type: str
    null: bool
    key: str
    extras: str
    watermark: str
    comment: str


def describe_table(table: Table, types: Mapping[str, SqlType]) -> list[DescribeRow]:
    """`types` are those of all columns: only a plan knows that of a computed one."""
    return [_row(table, column, types[column.name]) for column in table.columns]


def describe_view(types: Mapping[str, SqlType]) -> list[DescribeRow]:
    return [DescribeRow(name, str(t.as_nullable()), t.nullable, "", "", "", "") for name, t in types.items()]


def _row(table: Table, column: Column, kind: SqlType) -> DescribeRow:
    key = f"PRI({', '.join(table.primary_key)})" if column.name in table.primary_key else ""
    watermark = table.watermark
    return DescribeRow(
        column.name,
        str(kind.as_nullable()),
        kind.nullable,
        key,
        _extras(column),
        write_sql(watermark.expression) if watermark is not None and watermark.column == column.name else "",
        column.comment,
    )


def _extras(column: Column) -> str:
    match column:
        case PhysicalColumn():
            return ""
        case ComputedColumn():
            return f"AS {write_sql(column.expression)}"
        case MetadataColumn():
            source = f" FROM {flink_string(column.key)}" if column.key != column.name else ""
            return f"METADATA{source}{' VIRTUAL' if column.virtual else ''}"


def show_create(relation: Table | View) -> str:
    """A statement that creates the same table or view, but for its secrets."""
    if isinstance(relation, View):
        return masked_sql(relation.text)
    lines = [_column(column) for column in relation.columns]
    if relation.watermark is not None:
        lines.append(
            f"WATERMARK FOR {flink_name(relation.watermark.column)} AS {write_sql(relation.watermark.expression)}"
        )
    if relation.primary_key:
        lines.append(f"PRIMARY KEY ({', '.join(map(flink_name, relation.primary_key))}) NOT ENFORCED")
    options = ",\n".join(
        f"  {flink_string(k)} = {flink_string(v)}" for k, v in masked(relation.spelling.written).items()
    )
    path = ".".join(map(flink_name, split(relation.name)))
    partitions = ", ".join(map(flink_name, relation.partitioned_by))
    return "\n".join(
        [
            f"CREATE {'TEMPORARY ' if relation.temporary else ''}TABLE {path} (",
            ",\n".join(f"  {line}" for line in lines),
            ")",
            *([f"COMMENT {flink_string(relation.comment)}"] if relation.comment else []),
            *([f"PARTITIONED BY ({partitions})"] if partitions else []),
            f"WITH (\n{options}\n)",
        ]
    )


def _column(column: Column) -> str:
    comment = f" COMMENT {flink_string(column.comment)}" if column.comment else ""
    declared = "" if isinstance(column, ComputedColumn) else f" {column.type}"
    extras = _extras(column)
    return f"{flink_name(column.name)}{declared}{' ' + extras if extras else ''}{comment}"
