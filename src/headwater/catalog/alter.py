"""ALTER TABLE … ADD, MODIFY, DROP and RENAME: the table as CREATE TABLE would have declared it.

A table whose columns have changed is declared from scratch, so that everything that holds for a new table is checked
again. What a computed column, the key or the watermark needs is neither dropped nor renamed.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headwater.catalog.tables import Table
from headwater.errors import SqlError
from headwater.options.closest import did_you_mean
from headwater.sql.statements import (
    AlterSchema,
    Column,
    ComputedColumn,
    CreateTable,
    DropFromSchema,
    RenameColumn,
    SchemaChange,
)

__all__ = ["altered", "own_part"]


def altered(table: Table, statement: SchemaChange) -> CreateTable:
    """What declares the table as it is after the statement."""
    declared = _declared(table, statement)
    match statement:
        case AlterSchema(action="ADD"):
            return _added(declared, statement)
        case AlterSchema():
            return _modified(declared, statement)
        case DropFromSchema():
            return _dropped(declared, statement)
        case RenameColumn():
            return _renamed(declared, statement)


def own_part(declared: CreateTable, statement: SchemaChange) -> CreateTable:
    """The part of the declaration that the statement itself has written: errors are shown there."""
    if isinstance(statement, AlterSchema):
        own = {column.name for column in statement.columns}
        columns = tuple(column for column in declared.columns if column.name in own)
        return replace(declared, columns=columns, watermark=statement.watermark)
    return replace(declared, columns=(), watermark=None)


def _declared(table: Table, statement: SchemaChange) -> CreateTable:
    return CreateTable(
        name=table.name,
        columns=table.columns,
        options=table.spelling.written,
        option_positions=table.option_positions,
        column_positions=statement.column_positions,
        primary_key=table.primary_key or None,
        watermark=table.watermark,
        partitioned_by=table.partitioned_by,
        comment=table.comment,
        temporary=table.temporary,
        text=statement.text,
        position=statement.position,
        script=statement.script,
        subject=statement.subject,
    )


def _added(table: CreateTable, new: AlterSchema) -> CreateTable:
    columns = list(table.columns)
    for column in new.columns:
        if _place(columns, column.name) is not None:
            hint = f"ALTER TABLE … MODIFY {column.name} changes it."
            raise _error(new, column.name, f"The table '{table.name}' already has a column '{column.name}'.", hint)
        columns.insert(_goes_to(columns, column.name, new, len(columns)), column)
    for what, old, given in _one_only(table, new):
        if old is not None and given is not None:
            raise new.error(f"The table '{table.name}' already has a {what}.", hint="ALTER TABLE … MODIFY changes it.")
    return _with(table, columns, new)


def _modified(table: CreateTable, new: AlterSchema) -> CreateTable:
    columns = list(table.columns)
    for column in new.columns:
        place = _existing(columns, column.name, new)
        del columns[place]
        columns.insert(_goes_to(columns, column.name, new, place), column)
    for what, old, given in _one_only(table, new):
        if old is None and given is not None:
            raise new.error(f"The table '{table.name}' has no {what} to modify.", hint="ALTER TABLE … ADD adds one.")
    return _with(table, columns, new)


def _one_only(table: CreateTable, new: AlterSchema) -> tuple[tuple[str, object, object], ...]:
    return ("PRIMARY KEY", table.primary_key, new.primary_key), ("WATERMARK", table.watermark, new.watermark)


def _with(table: CreateTable, columns: list[Column], new: AlterSchema) -> CreateTable:
    key, watermark = new.primary_key or table.primary_key, new.watermark or table.watermark
    return replace(table, columns=tuple(columns), primary_key=key, watermark=watermark)


def _dropped(table: CreateTable, statement: DropFromSchema) -> CreateTable:
    if statement.what != "COLUMNS":
        there = table.primary_key if statement.what == "PRIMARY KEY" else table.watermark
        if there is None:
            raise statement.error(f"The table '{table.name}' has no {statement.what} to drop.")
        key = statement.what == "PRIMARY KEY"
        return replace(table, primary_key=None) if key else replace(table, watermark=None)
    for name in statement.columns:
        _existing(table.columns, name, statement)
    columns = tuple(column for column in table.columns if column.name not in statement.columns)
    left = replace(table, columns=columns)
    for name in statement.columns:
        used = _users(left, name)
        if name in (table.primary_key or ()):
            used.insert(0, "the primary key")
        if used:
            raise _error(statement, name, f"The column '{name}' cannot be dropped: {used[0]} needs it.")
    return left


def _renamed(table: CreateTable, statement: RenameColumn) -> CreateTable:
    old, new = statement.old, statement.new
    place = _existing(table.columns, old, statement)
    if _place(table.columns, new) is not None:
        raise _error(statement, new, f"The table '{table.name}' already has a column '{new}'.")
    if used := _users(table, old):
        raise _error(statement, old, f"The column '{old}' cannot be renamed: {used[0]} needs it.")
    columns = list(table.columns)
    columns[place] = replace(columns[place], name=new)
    key = tuple(new if name == old else name for name in table.primary_key) if table.primary_key is not None else None
    return replace(table, columns=tuple(columns), primary_key=key)


def _users(table: CreateTable, name: str) -> list[str]:
    """What of the table names the column, in words."""
    used = [
        f"the computed column '{c.name}'"
        for c in table.columns
        if isinstance(c, ComputedColumn) and _names(c.expression, name)
    ]
    watermark = table.watermark
    if watermark is not None and (watermark.column == name or _names(watermark.expression, name)):
        used.append("the watermark")
    if name in table.partitioned_by:
        used.append("PARTITIONED BY")
    return used


def _names(expression: exp.Expr, name: str) -> bool:
    """A qualifier counts as well: `a.b` may be the field b of a column a."""
    return any(part.name == name for column in expression.find_all(exp.Column) for part in column.parts)


def _goes_to(columns: list[Column], name: str, statement: AlterSchema, otherwise: int) -> int:
    if name not in statement.places:
        return otherwise
    after = statement.places[name]
    return 0 if after is None else _existing(columns, after, statement, at=name) + 1


def _existing(columns: tuple[Column, ...] | list[Column], name: str, statement: SchemaChange, at: str = "") -> int:
    place = _place(columns, name)
    if place is None:
        near = did_you_mean(name, (column.name for column in columns))
        hint = near or f"The columns are: {', '.join(column.name for column in columns)}."
        raise _error(statement, at or name, f"There is no column '{name}'.", hint)
    return place


def _place(columns: tuple[Column, ...] | list[Column], name: str) -> int | None:
    return next((place for place, column in enumerate(columns) if column.name == name), None)


def _error(statement: SchemaChange, column: str, fact: str, hint: str = "") -> SqlError:
    found = statement.error(fact, hint=hint)
    found.position = statement.column_positions.get(column, found.position)
    return found
