"""Queries that bring their own table: CREATE TABLE … AS SELECT."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headwater.catalog.catalog import Catalog
from headwater.plan.nodes import Column
from headwater.plan.validation import query_columns
from headwater.sql import statements as s

__all__ = ["as_select", "insert_of"]


def as_select(statement: s.CreateTable, catalog: Catalog) -> s.CreateTable:
    """The statement with the columns of its query, as Flink puts them together: columns that only the statement has
    come first, then those of the query in its order, with the types that the statement declares for them."""
    assert statement.query is not None
    found = query_columns(statement.query, catalog, statement.position_of)
    names = [column.name for column in found]
    declared = {column.name: column for column in statement.columns}
    own = [column for column in statement.columns if column.name not in names]
    theirs = [declared.get(column.name) or s.PhysicalColumn(column.name, column.type) for column in found]
    for column in theirs:
        # Such a column is not written, so the query's values for it would be lost.
        if isinstance(column, s.ComputedColumn) or (isinstance(column, s.MetadataColumn) and column.virtual):
            fact = f"Column '{column.name}' comes from the query and cannot be computed or VIRTUAL."
            raise statement.error(fact, hint="Give one of the two another name.")
    return replace(statement, columns=(*own, *_ordered(statement, theirs)), query=None)


def _ordered(statement: s.CreateTable, columns: list[s.Column]) -> list[s.Column]:
    order = statement.query_columns
    if not order:
        return columns
    by_name = {column.name: column for column in columns}
    if set(order) != set(by_name):
        raise statement.error(
            "The columns of the table are not those of its query.",
            detail=f"Table: {', '.join(order)}\nQuery: {', '.join(by_name)}",
            hint="Name all of them, in any order, or leave the list out.",
        )
    return [by_name[name] for name in order]


def insert_of(statement: s.CreateTable, catalog: Catalog) -> s.Insert:
    """The INSERT that CREATE TABLE … AS stands for."""
    assert statement.query is not None
    found = query_columns(statement.query, catalog, statement.position_of)
    return _insert(statement, statement.name, statement.query, found)


def _insert(statement: s.Statement, target: str, query: exp.Expr, columns: tuple[Column, ...]) -> s.Insert:
    return s.Insert(
        target=target,
        query=query,
        columns=tuple(column.name for column in columns),
        text=statement.text,
        position=statement.position,
        script=statement.script,
    )
