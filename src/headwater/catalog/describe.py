"""A table in words: the rows of DESCRIBE and the text of SHOW CREATE TABLE. Secrets are masked in both."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headwater.catalog.tables import Table, View
from headwater.options.secrets import masked
from headwater.sql.dialect import Flink
from headwater.sql.statements import Column, ComputedColumn, MetadataColumn, PhysicalColumn

__all__ = ["DescribeRow", "describe_table", "show_create"]


@dataclass(frozen=True)
class DescribeRow:
    """`type` of a computed column is empty: only a plan knows it."""

    name: str
    type: str
    null: bool | None
    key: str
    extras: str
    watermark: str
    comment: str


def describe_table(table: Table) -> list[DescribeRow]:
    return [_row(table, column) for column in table.columns]


def _row(table: Table, column: Column) -> DescribeRow:
    declared = None if isinstance(column, ComputedColumn) else column.type
    key = f"PRI({', '.join(table.primary_key)})" if column.name in table.primary_key else ""
    watermark = table.watermark
    return DescribeRow(
        column.name,
        "" if declared is None else str(declared.as_nullable()),
        None if declared is None else declared.nullable,
        key,
        _extras(column),
        _sql(watermark.expression) if watermark is not None and watermark.column == column.name else "",
        column.comment,
    )


def _extras(column: Column) -> str:
    match column:
        case PhysicalColumn():
            return ""
        case ComputedColumn():
            return f"AS {_sql(column.expression)}"
        case MetadataColumn():
            source = f" FROM {_text(column.key)}" if column.key != column.name else ""
            return f"METADATA{source}{' VIRTUAL' if column.virtual else ''}"


def show_create(relation: Table | View) -> str:
    """A statement that creates the same table or view, but for its secrets."""
    if isinstance(relation, View):
        return relation.text
    lines = [_column(column) for column in relation.columns]
    if relation.watermark is not None:
        lines.append(f"WATERMARK FOR {_name(relation.watermark.column)} AS {_sql(relation.watermark.expression)}")
    if relation.primary_key:
        lines.append(f"PRIMARY KEY ({', '.join(map(_name, relation.primary_key))}) NOT ENFORCED")
    options = ",\n".join(f"  {_text(k)} = {_text(v)}" for k, v in masked(relation.spelling.written).items())
    partitions = ", ".join(map(_name, relation.partitioned_by))
    return "\n".join(
        [
            f"CREATE {'TEMPORARY ' if relation.temporary else ''}TABLE {_name(relation.name)} (",
            ",\n".join(f"  {line}" for line in lines),
            ")",
            *([f"COMMENT {_text(relation.comment)}"] if relation.comment else []),
            *([f"PARTITIONED BY ({partitions})"] if partitions else []),
            f"WITH (\n{options}\n)",
        ]
    )


def _column(column: Column) -> str:
    comment = f" COMMENT {_text(column.comment)}" if column.comment else ""
    declared = "" if isinstance(column, ComputedColumn) else f" {column.type}"
    extras = _extras(column)
    return f"{_name(column.name)}{declared}{' ' + extras if extras else ''}{comment}"


def _sql(expression: exp.Expr) -> str:
    return expression.sql(dialect=Flink)


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
