"""A query's columns on their way into a table: by place, or by the names that INSERT lists; Flink's implicit casts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from headwater.catalog.tables import Table
from headwater.errors import Position, SqlError, ValidationError
from headwater.plan import nodes as n
from headwater.plan.coerce import fits
from headwater.plan.display_names import shown_text
from headwater.plan.nodes.rows import column_reference
from headwater.sql.functions.casts import convert, with_length
from headwater.sql.statements import Insert
from headwater.sql.typed import Expr
from headwater.sql.types import BOOLEAN
from headwater.sql.writer import write_sql

__all__ = ["SinkRules", "fitted"]


@dataclass(frozen=True)
class SinkRules:
    """What the session says about all sinks. `not_null`: 'error' or 'drop' for a row with NULL in a NOT NULL column;
    `length`: 'ignore', 'trim_pad' or 'error' for a string or binary that has not the length of its column;
    `materialize`: 'auto', 'none' or 'force' for rows that the table's primary key does not tell apart."""

    not_null: str = "error"
    length: str = "ignore"
    materialize: str = "auto"


def fitted(query: n.Node, table: Table, statement: Insert, rules: SinkRules) -> n.Node:
    """The rows as the table takes them. Columns that INSERT does not name are NULL."""
    written = _target_columns(table, statement)
    given = list(statement.columns) or [c.name for c in written]
    if len(query.columns) != len(given):
        raise ValidationError(
            f"Column types of query result and sink for '{table.name}' do not match: different number of columns.",
            detail=f"Query: ({_typed(query.columns)})\nTable: ({_typed([c for c in written if c.name in given])})",
            hint=f"Select a value for each, or name the columns to write: INSERT INTO {table.name} (…) SELECT …",
        )
    given_columns = [_Given(*parts) for parts in zip(query.columns, *_sources(query, statement), strict=True)]
    by_name = dict(zip(given, given_columns, strict=True))
    expressions = tuple(_value(by_name.get(column.name), column, table, rules) for column in written)
    rows = n.Project(tuple(written), query, expressions)
    return _without_nulls(rows) if rules.not_null == "drop" else rows


@dataclass(frozen=True)
class _Given:
    """A column of the query; `text` and `position` are for messages."""

    column: n.Column
    text: str
    position: Position


def _sources(query: n.Node, statement: Insert) -> tuple[list[str], list[Position]]:
    """What the query says for each column, and where."""
    tree = statement.query
    if isinstance(tree, exp.Values):
        values = tree.expressions[0].expressions
        return [write_sql(value) for value in values], [statement.position_of(value) for value in values]
    items = tree.expressions if isinstance(tree, exp.Select) else []
    # A star stands for several columns; which of them an item is, is then not known here.
    same = len(items) == len(query.columns) and not any(item.is_star for item in items)
    places = [statement.position_of(item) for item in items] if same else [statement.position] * len(query.columns)
    return _expression_strings(query), places


def _expression_strings(query: n.Node) -> list[str]:
    """The names of columns may be those that the planner has made."""
    if not isinstance(query, n.Project):
        return list(query.names)
    return [shown_text(expression.text, query.input.display_names) for expression in query.expressions]


def _value(given: _Given | None, column: n.Column, table: Table, rules: SinkRules) -> Expr:
    if given is None:
        return convert(Expr("NULL", column.type.as_nullable(), frozenset(), "NULL"), column.type)
    if not fits(given.column.type, column.type):
        raise _incompatible(table, column, given)
    value = convert(column_reference(given.column), column.type)
    if rules.length == "ignore":
        return value
    return with_length(value, column.type, "error" if rules.length == "error" else "trim-pad")


def _without_nulls(rows: n.Project) -> n.Node:
    """Without rows that have NULL in a NOT NULL column."""
    pairs = zip(rows.columns, rows.expressions, strict=True)
    # Only columns whose value may be NULL by its type: a filter that is always true would still cost, and stop other
    # filters from moving.
    strict = [column for column, value in pairs if not column.type.nullable and value.type.nullable]
    if not strict:
        return rows
    references = [column_reference(column) for column in strict]
    sql = " AND ".join(f"({reference.sql} IS NOT NULL)" for reference in references)
    text = " AND ".join(f"{reference.text} IS NOT NULL" for reference in references)
    predicate = Expr(f"({sql})", BOOLEAN.not_null(), frozenset(c.name for c in strict), text)
    return n.Filter(rows.columns, rows, predicate)


def _target_columns(table: Table, statement: Insert) -> list[n.Column]:
    """The columns of the table that are written: physical ones and writable metadata."""
    written = [n.Column(c.name, c.type) for c in table.written_columns]
    unknown = [name for name in statement.columns if name not in {c.name for c in written}]
    if unknown:
        raise SqlError(
            f"Table '{table.name}' has no column '{unknown[0]}' that can be written.",
            position=statement.position,
            hint=f"It has: {', '.join(c.name for c in written)}.",
        )
    if len(set(statement.columns)) < len(statement.columns):
        raise SqlError("A column is named twice in INSERT INTO.", position=statement.position)
    return written


def _incompatible(table: Table, column: n.Column, given: _Given) -> ValidationError:
    return ValidationError(
        f"Incompatible types for sink column '{column.name}' of table '{table.name}'.",
        position=given.position,
        detail=f"The query returns {given.column.type}, the table has {column.type}.",
        hint=f"Write CAST({given.text} AS {column.type.as_nullable()}) in the query, or change the table.",
    )


def _typed(columns: Sequence[n.Column]) -> str:
    return ", ".join(f"{c.name} {c.type}" for c in columns)
