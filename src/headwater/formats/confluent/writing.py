"""The table's columns and the schema that they are written with: the one of 'schema', or else the one that Flink
derives from the table, to the letter, so that both find the same one in the registry.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from headwater.error_markers import RAISED
from headwater.formats.avro.schema import NUMBERS
from headwater.formats.base import FormatField
from headwater.formats.confluent.reading import SchemaMismatch
from headwater.formats.confluent.types import AvroType, Emitter, unwrapped
from headwater.sql.spark_text import field_of, quote_name, string_literal
from headwater.sql.types import SqlType

__all__ = ["Writing", "derived_schema", "write_record"]

_NAMESPACE, _NAME = "org.apache.flink.avro.generated", "record"
_UNITS = {f"{prefix}timestamp-{unit}": unit for prefix in ("", "local-") for unit in ("millis", "micros")}


def derived_schema(fields: Sequence[FormatField], *, nullable: bool = False) -> dict[str, Any] | list[Any]:
    """As Flink's AvroSchemaConverter makes it. Beyond it, a TIMESTAMP of up to 6 digits is timestamp-micros, and
    TIMESTAMP_LTZ is as TIMESTAMP."""
    record = {"type": "record", "name": _NAME, "namespace": _NAMESPACE, "fields": _members(fields, _NAME)}
    return ["null", record] if nullable else record


def _members(fields: Sequence[Any], record: str) -> list[dict[str, Any]]:
    return [
        {
            "name": f.name,
            "type": _derived(f.type, f"{record}_{f.name}"),
            # As Flink does. It also keeps schemas compatible: a registry rejects an added field that has no default.
            **({"default": None} if f.type.nullable else {}),
        }
        for f in fields
    ]


def _derived(kind: SqlType, record: str) -> Any:
    inner = _derived_not_null(kind, record)
    return ["null", inner] if kind.nullable else inner


def _derived_not_null(kind: SqlType, record: str) -> Any:
    match kind.name:
        case "DATE":
            return {"type": "int", "logicalType": "date"}
        case "TIME":
            return {"type": "int", "logicalType": "time-millis"}
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return {"type": "long", "logicalType": f"timestamp-{'millis' if (kind.precision or 0) <= 3 else 'micros'}"}
        case "DECIMAL":
            return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        case "ROW":
            return {"type": "record", "name": record, "fields": _members(kind.fields, record)}
        case "ARRAY":
            assert kind.element is not None
            return {"type": "array", "items": _derived(kind.element, record)}
        case "MAP" | "MULTISET":
            return {"type": "map", "values": _derived(kind.item, record)}
    return "string" if kind.is_string else "bytes" if kind.is_binary else NUMBERS[kind.name]


@dataclass(frozen=True)
class Writing:
    """`schema` is what Spark writes a value as, in Avro's JSON: the same bytes as the real one. `value` makes the SQL
    of what is written from the SQL of a column."""

    schema: Any
    value: Callable[[str], str] | None = None

    def sql(self, value: str) -> str:
        return value if self.value is None else self.value(value)


def write_record(fields: Sequence[FormatField], schema: AvroType, columns: Sequence[str]) -> tuple[str, str]:
    """The JSON of the schema for Spark, and the SQL of the record. Raises SchemaMismatch."""
    writer = _Writer()
    branches = unwrapped(schema)
    if [b.kind for b in branches] != ["record"]:
        raise SchemaMismatch(f"It is {schema}, not a record.")
    shape, members = writer.members(branches[0], [(f.name, f.type) for f in fields], "")
    # The order of the branches is part of the bytes: a value begins with the number of its branch.
    spark = [shape if b.kind == "record" else "null" for b in schema.inner] if schema.kind == "union" else shape
    values = (f"{string_literal(f.name)}, {part.sql(c)}" for f, part, c in zip(fields, members, columns, strict=True))
    return json.dumps(spark), f"named_struct({', '.join(values)})"


class _Writer:
    def __init__(self) -> None:
        self._emitter = Emitter()
        self._numbers = count(1)

    def members(self, record: AvroType, columns: Sequence[tuple[str, SqlType]], path: str) -> tuple[Any, list[Writing]]:
        """The record, and how each column is written. The columns are its fields, in any order."""
        names = {label for label, _ in columns}
        # Even a field with a default: defaults are for readers, and a writer has to write every field.
        for member in record.fields:
            if member.name not in names:
                raise SchemaMismatch(f"Field '{path}{member.name}' is not a column of the table.")
        parts: dict[str, Writing] = {}
        for label, kind in columns:
            member_found = record.field(label)
            if member_found is None:
                raise SchemaMismatch(f"Column '{path}{label}' is not a field of it.")
            parts[label] = self._value(kind, member_found.type, f"{path}{label}")
        # In the order of the schema, not of the columns: Avro writes fields one after the other, without their names.
        fields = [{"name": f.name, "type": parts[f.name].schema} for f in record.fields]
        schema = self._emitter.named(record, lambda: {"fields": fields})
        return schema, [parts[label] for label, _ in columns]

    def _value(self, kind: SqlType, schema: AvroType, where: str) -> Writing:
        branches = unwrapped(schema)
        if len(branches) != 1:
            raise SchemaMismatch(f"Field '{where}' is {schema}: only a type, or one type and null, can be written.")
        if kind.nullable and not schema.nullable:
            raise SchemaMismatch(f"Field '{where}' has no null, and the column is nullable. Declare it as NOT NULL.")
        part = self._not_null(kind, branches[0], where)
        if part is None:
            raise SchemaMismatch(f"Field '{where}' is {branches[0]}, and the column is {kind.as_nullable()}.")
        if schema.kind != "union":
            return part
        return Writing([part.schema if b.kind != "null" else "null" for b in schema.inner], part.value)

    def _not_null(self, kind: SqlType, schema: AvroType, where: str) -> Writing | None:
        """None if a column of that type is not written so."""
        match kind.name:
            case "DECIMAL":
                return self._decimal(kind, schema)
            case "DATE":
                fits = schema.kind == "int" and schema.meaning in ("", "date")
                return Writing({"type": "int", "logicalType": "date"}) if fits else None
            case "TIME":
                return _time(schema)
            case "TIMESTAMP" | "TIMESTAMP_LTZ":
                # By the type of the column, not by the schema: Spark checks that both agree, and the long it writes is
                # the same.
                prefix = "local-" if kind.name == "TIMESTAMP" else ""
                unit = _UNITS.get(schema.meaning) if schema.kind == "long" else None
                return Writing({"type": "long", "logicalType": f"{prefix}timestamp-{unit}"}) if unit else None
            case "ARRAY" | "MAP" | "MULTISET":
                return self._collection(kind, schema, where)
            case "ROW":
                return self._row(kind, schema, where)
        if kind.is_string and schema.kind == "enum":
            return Writing(self._emitter.type(schema), _symbol(schema, where))
        if kind.is_binary and schema.kind == "fixed":
            return Writing(self._emitter.type(schema), _of_size(schema, where))
        plain = "string" if kind.is_string else "bytes" if kind.is_binary else NUMBERS[kind.name]
        return Writing(plain) if schema.kind == plain and schema.meaning not in ("decimal", *_UNITS) else None

    def _decimal(self, kind: SqlType, schema: AvroType) -> Writing | None:
        if schema.meaning != "decimal" or (schema.precision, schema.scale) != (kind.precision, kind.scale):
            return None
        logical = {"logicalType": "decimal", "precision": schema.precision, "scale": schema.scale}
        if schema.kind == "fixed":
            return Writing(self._emitter.named(schema, lambda: {"size": schema.size, **logical}))
        return Writing({"type": "bytes", **logical})

    def _collection(self, kind: SqlType, schema: AvroType, where: str) -> Writing | None:
        word = "array" if kind.name == "ARRAY" else "map"
        if schema.kind != word:
            return None
        part = self._value(kind.item, schema.inner[0], where)
        # Numbered, because a lambda inside of another one would hide a variable of the same name.
        item, key = f"v{next(self._numbers)}", f"k{next(self._numbers)}"

        def value(column: str) -> str:
            head = f"transform({column}, {item}" if word == "array" else f"transform_values({column}, ({key}, {item})"
            return f"{head} -> {part.sql(item)})"

        shape = {"type": word, ("items" if word == "array" else "values"): part.schema}
        return Writing(shape, None if part.value is None else value)

    def _row(self, kind: SqlType, schema: AvroType, where: str) -> Writing | None:
        if schema.kind != "record":
            return None
        shape, parts = self.members(schema, [(f.name, f.type) for f in kind.fields], f"{where}.")
        if all(part.value is None for part in parts):
            return Writing(shape)

        def value(column: str) -> str:
            items = (
                f"{part.sql(field_of(column, f.name))} AS {quote_name(f.name)}"
                for f, part in zip(kind.fields, parts, strict=True)
            )
            # A struct of NULLs is not NULL: the schema may allow the row to be null, but not its fields.
            return f"IF({column} IS NULL, NULL, struct({', '.join(items)}))"

        return Writing(shape, value)


def _time(schema: AvroType) -> Writing | None:
    if schema.kind == "int" and schema.meaning in ("", "time-millis"):
        return Writing("int")
    if schema.kind == "long" and schema.meaning == "time-micros":
        return Writing("long", lambda column: f"(CAST({column} AS BIGINT) * 1000L)")
    return None


def _symbol(schema: AvroType, where: str) -> Callable[[str], str]:
    known = ", ".join(map(string_literal, schema.symbols))
    listed = ", ".join(schema.symbols)

    def value(column: str) -> str:
        fact = f"concat({string_literal(f'{RAISED}Field {where} cannot be written: ')}, {column}, "
        raised = f"raise_error({fact}{string_literal(f' is none of the symbols {listed} of its schema.')}))"
        return f"IF({column} IS NULL OR {column} IN ({known}), {column}, {raised})"

    return value


def _of_size(schema: AvroType, where: str) -> Callable[[str], str]:
    def value(column: str) -> str:
        fact = f"concat({string_literal(f'{RAISED}Field {where} cannot be written: it has ')}, octet_length({column}), "
        raised = f"raise_error({fact}{string_literal(f' bytes, and {schema.size} in its schema.')}))"
        fits = f"{column} IS NULL OR octet_length({column}) = {schema.size}"
        return f"IF({fits}, {column}, CAST({raised} AS BINARY))"

    return value
