"""What a definition says in SQL, checked when it is created: a view's query, computed columns, the watermark."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from headwater.catalog.catalog import Catalog
from headwater.catalog.tables import Table, View
from headwater.errors import Position, SqlError
from headwater.plan import nodes as n
from headwater.plan.build import Builder
from headwater.sql.expressions import Scope, ScopeColumn, compile_expression
from headwater.sql.expressions.compiler import Locate
from headwater.sql.statements import ComputedColumn, CreateTable
from headwater.sql.types import TIMESTAMPS, SqlType

__all__ = ["check_table", "column_types", "query_columns", "view_columns"]


def query_columns(query: exp.Expr, catalog: Catalog, locate: Locate) -> tuple[n.Column, ...]:
    """The columns of a query. Raises for what is wrong in it."""
    return Builder(catalog, locate).query(query, {}).columns


def view_columns(view: View, catalog: Catalog) -> tuple[n.Column, ...]:
    """The columns of a view. Raises for what is wrong in its query."""
    return Builder(catalog, lambda _: view.position).view(view).columns


def column_types(table: Table, locate: Callable[[str, exp.Expr], Position | None] | None = None) -> dict[str, SqlType]:
    """The types of all columns, of computed ones as well. `locate` is given the column and the expression."""
    declared = {c.name: c.type for c in table.columns if not isinstance(c, ComputedColumn)}
    scope = _scope(table, declared)
    types = dict(declared)
    for column in table.computed_columns:
        name = column.name
        place = (lambda _: table.position) if locate is None else _at(locate, name)
        types[name] = compile_expression(column.expression, scope, place).type
    return types


def check_table(table: Table, statement: CreateTable) -> None:
    """Raises if a computed column or the watermark cannot be computed."""
    own = {column.name for column in statement.columns}

    def locate(column: str, node: exp.Expr) -> Position | None:
        # What LIKE has brought was written in another statement.
        return statement.position_of(node) if column in own else statement.position

    try:
        types = column_types(table, locate)
        _check_watermark(table, types, statement)
    except SqlError as error:
        error.script = error.script or (statement.script.name if statement.script is not None else "")
        raise


def _check_watermark(table: Table, types: Mapping[str, SqlType], statement: CreateTable) -> None:
    watermark = table.watermark
    if watermark is None:
        return
    own = statement.watermark is watermark

    def locate(node: exp.Expr) -> Position | None:
        return statement.position_of(node) if own else statement.position

    column, kind = watermark.column, types[watermark.column]
    if not _is_time(kind):
        raise SqlError(
            f"The time of a watermark must be a TIMESTAMP(p) or TIMESTAMP_LTZ(p) with p of at most 6: '{column}' is "
            f"{kind.as_nullable()}.",
            position=statement.column_positions.get(column, statement.position),
        )
    found = compile_expression(watermark.expression, _scope(table, types), locate).type
    if not _is_time(found):
        raise SqlError(
            f"A watermark must be a TIMESTAMP(p) or TIMESTAMP_LTZ(p): this is {found.as_nullable()}.",
            position=locate(watermark.expression),
            hint=f"For example: WATERMARK FOR {column} AS {column} - INTERVAL '5' SECOND.",
        )


def _is_time(kind: SqlType) -> bool:
    return kind.name in TIMESTAMPS and (kind.precision or 0) <= 6


def _scope(table: Table, types: Mapping[str, SqlType]) -> Scope:
    return Scope(tuple(ScopeColumn(table.name, name, name, kind) for name, kind in types.items()))


def _at(locate: Callable[[str, exp.Expr], Position | None], column: str) -> Locate:
    return lambda node: locate(column, node)
