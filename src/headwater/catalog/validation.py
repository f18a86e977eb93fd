"""What must hold for a table: its columns, key and watermark, whatever its connector; and what more if it is read or
written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from headwater.catalog.connector import Connector
from headwater.catalog.tables import Table
from headwater.errors import Position, ValidationError
from headwater.options.closest import did_you_mean
from headwater.options.problems import OptionContext, Problem, problems_error
from headwater.sql.statements import Column, CreateTable, MetadataColumn, PhysicalColumn
from headwater.sql.types import TIMESTAMPS, SqlType

__all__ = ["can_cast", "check_sink", "check_source", "schema_problems", "with_key_not_null"]


def schema_problems(table: CreateTable, connector: Connector) -> list[Problem]:
    return [
        *_columns(table),
        *_primary_key(table),
        *_watermark(table),
        *_partitions(table),
        *_metadata(table, connector),
    ]


def with_key_not_null(table: CreateTable) -> tuple[Column, ...]:
    """The columns, with those of the primary key NOT NULL."""
    key = set(table.primary_key or ())
    return tuple(
        replace(column, type=column.type.not_null())
        if isinstance(column, PhysicalColumn) and column.name in key
        else column
        for column in table.columns
    )


def _columns(table: CreateTable) -> Iterator[Problem]:
    if not table.columns:
        yield Problem("A table needs at least one column.")
    for name, times in Counter(column.name for column in table.columns).items():
        if times > 1:
            yield Problem(f"Schema must not contain duplicate column names: '{name}' is declared {times} times.")


def _primary_key(table: CreateTable) -> Iterator[Problem]:
    key = table.primary_key or ()
    for name, times in Counter(key).items():
        column = _find(table, name)
        if times > 1:
            yield Problem(f"Invalid primary key: column '{name}' is in it {times} times.")
        if column is None:
            near = did_you_mean(name, (c.name for c in table.columns))
            yield Problem(f"Invalid primary key: column '{name}' does not exist. {near}".strip())
        elif not isinstance(column, PhysicalColumn):
            yield Problem(f"Invalid primary key: column '{name}' is not a physical column.")
        elif column.type.name in {"MAP", "MULTISET"}:
            yield Problem(f"Invalid primary key: column '{name}' is a {column.type.name}, which cannot be compared.")


def _watermark(table: CreateTable) -> Iterator[Problem]:
    if table.watermark is None:
        return
    name = table.watermark.column
    column = _find(table, name)
    if column is None:
        near = did_you_mean(name, (c.name for c in table.columns))
        yield Problem(f"Invalid column name '{name}' for rowtime attribute in watermark declaration. {near}".strip())
    elif isinstance(column, PhysicalColumn | MetadataColumn) and (
        column.type.name not in TIMESTAMPS or (column.type.precision or 0) > 6
    ):
        yield Problem(
            f"Invalid data type of time field for watermark definition: '{name}' is {column.type}. "
            "The field must be of type TIMESTAMP(p) or TIMESTAMP_LTZ(p) with a precision of at most 6.",
            position=_place(table, column),
        )


def _partitions(table: CreateTable) -> Iterator[Problem]:
    for name in table.partitioned_by:
        if not isinstance(_find(table, name), PhysicalColumn):
            near = did_you_mean(name, (c.name for c in table.columns if isinstance(c, PhysicalColumn)))
            yield Problem(f"PARTITIONED BY names '{name}', which is not a physical column. {near}".strip())


def _metadata(table: CreateTable, connector: Connector) -> Iterator[Problem]:
    known = {metadata.key: metadata for metadata in connector.metadata_of(table.options)}
    for column in (c for c in table.columns if isinstance(c, MetadataColumn)):
        metadata = known.get(column.key)
        if metadata is None:
            text = f"Invalid metadata key '{column.key}' in column '{column.name}': connector '{connector.identifier}' "
            keys = f"has {', '.join(known)}." if known else "has no metadata."
            yield Problem(f"{text}{keys} {did_you_mean(column.key, known)}".strip(), position=_place(table, column))
        elif not can_cast(metadata.type, column.type):
            yield Problem(
                f"Invalid data type for metadata column '{column.name}': it is declared as {column.type}, but "
                f"'{column.key}' is {metadata.type}, which cannot be cast to that.",
                position=_place(table, column),
            )


def _place(table: CreateTable, column: Column) -> Position | None:
    return table.column_positions.get(column.name)


def _find(table: CreateTable, name: str) -> Column | None:
    return next((column for column in table.columns if column.name == name), None)


def can_cast(source: SqlType, target: SqlType) -> bool:
    """Whether CAST(source AS target) exists, for a metadata column of another type than the connector's. NOT NULL does
    not matter."""
    if target.is_nested or source.is_nested:
        return _can_cast_nested(source, target)
    if target.is_string or source.as_nullable() == target.as_nullable():
        return True
    if source.is_numeric:
        return target.is_numeric or target.name == "BOOLEAN"
    if source.name in TIMESTAMPS:
        return target.name in TIMESTAMPS or target.name in {"DATE", "TIME"}
    if source.is_binary:
        return target.is_binary
    return source.is_string or source.name == target.name


def _can_cast_nested(source: SqlType, target: SqlType) -> bool:
    if target.is_string:
        return False
    if source.name != target.name or len(source.fields) != len(target.fields):
        return False
    pairs = [(source.key, target.key), (source.element, target.element)]
    pairs += [(s.type, t.type) for s, t in zip(source.fields, target.fields, strict=True)]
    return all(s is None or t is None or can_cast(s, t) for s, t in pairs)


def check_source(table: Table) -> None:
    """Raises if no query can read the table."""
    _raise_for(
        table, f"Unable to create a source for reading table '{table.name}'", table.connector.validate_source(table)
    )


def check_sink(table: Table) -> None:
    """Raises if no query can write the table."""
    _raise_for(table, f"Unable to create a sink for writing table '{table.name}'", table.connector.validate_sink(table))


def _raise_for(table: Table, fact: str, problems: Sequence[Problem]) -> None:
    if not problems:
        return
    context = OptionContext(table.connector.identifier, given=table.spelling.written, positions=table.option_positions)
    error = problems_error("It", [table.spelling.of(problem) for problem in problems], context)
    raise ValidationError(f"{fact}.", detail=error.detail.strip())
