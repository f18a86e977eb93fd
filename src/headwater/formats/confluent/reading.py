"""A writer's schema and the table's columns: what Spark is to read, and what becomes of it.

Avro's own rules, and a little more. Fields are found by name, or by the aliases of the 'schema' option; the names of
records mean nothing. Whole numbers become wider ones and fractions, text and bytes each other, as in Avro. An enum is a
STRING, and what a number of days, milli-, micro- or nanoseconds means is read from the writer's schema: from its
logical type, or from Kafka Connect's and Debezium's names. A field that the writer has not is the default of 'schema',
or NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from headwater.formats.confluent.types import NOTHING, AvroField, AvroType, Emitter, unwrapped
from headwater.formats.strings import EPOCH, decimal_of_scale
from headwater.sql.spark_text import field_of, quote_name
from headwater.sql.types import SqlType

__all__ = [
    "DAYS",
    "MICROS",
    "MILLIS",
    "NUMBERS",
    "FieldReading",
    "ReadColumn",
    "RecordReading",
    "SchemaMismatch",
    "read_record",
]

_DEBEZIUM, _CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."
DAYS = frozenset({"", "date", f"{_DEBEZIUM}Date", f"{_CONNECT}Date"})
MILLIS = frozenset({"timestamp-millis", "local-timestamp-millis", f"{_DEBEZIUM}Timestamp", f"{_CONNECT}Timestamp"})
MICROS = frozenset({"timestamp-micros", "local-timestamp-micros", f"{_DEBEZIUM}MicroTimestamp"})
_NANOS = frozenset({"timestamp-nanos", "local-timestamp-nanos", f"{_DEBEZIUM}NanoTimestamp"})
_ZONED = f"{_DEBEZIUM}ZonedTimestamp"
_TIMES = {  # how many of them are a millisecond
    ("int", ""): 1,
    ("int", "time-millis"): 1,
    ("int", f"{_DEBEZIUM}Time"): 1,
    ("int", f"{_CONNECT}Time"): 1,
    ("long", "time-micros"): 1_000,
    ("long", f"{_DEBEZIUM}MicroTime"): 1_000,
    ("long", f"{_DEBEZIUM}NanoTime"): 1_000_000,
}
_VARIABLE_SCALE = "io.debezium.data.VariableScaleDecimal"
NUMBERS = {  # Avro's types that become a column's, by Avro's own promotion
    "BOOLEAN": ("boolean", ("boolean",)),
    "INT": ("int", ("int",)),
    "BIGINT": ("long", ("int", "long")),
    "FLOAT": ("float", ("int", "long", "float")),
    "DOUBLE": ("double", ("int", "long", "float", "double")),
}
_DIGITS = 38


class SchemaMismatch(Exception):
    """Why a schema cannot be read or written as the table's columns: one sentence."""


@dataclass(frozen=True)
class ReadColumn:
    """A column, and its field in the 'schema' option, if that is set."""

    name: str
    type: SqlType
    given: AvroField | None = None


@dataclass(frozen=True)
class FieldReading:
    """`schema` is what Spark reads the value as, in Avro's JSON. `value` makes the SQL of the column's value from the
    SQL of what was read, `broken` the SQL of whether that cannot be done; None: it always can."""

    schema: Any
    value: Callable[[str], str] | None = None
    broken: Callable[[str], str] | None = None

    def sql(self, raw: str) -> str:
        return raw if self.value is None else self.value(raw)


@dataclass(frozen=True)
class RecordReading:
    """`schema` as above; the SQL of the columns, and of what is wrong with each that can be wrong, over the record."""

    schema: Any
    columns: Callable[[str], list[str]]
    broken: Callable[[str], list[tuple[str, str]]]


def read_record(writer: AvroType, columns: Sequence[ReadColumn]) -> RecordReading:
    """Of a record at the top. Raises SchemaMismatch."""
    return _Reader().top(writer, columns)


class _Reader:
    def __init__(self) -> None:
        self._emitter = Emitter()
        self._numbers = count(1)

    def top(self, writer: AvroType, columns: Sequence[ReadColumn]) -> RecordReading:
        records = [b for b in unwrapped(writer) if b.kind == "record"]
        if not records:
            raise SchemaMismatch(f"It is {_a(writer)}, not a record.")
        schema, members = self._members(records[0], columns, "")
        broken = [(c.name, part.broken, at) for c, part, at in members if part.broken is not None]

        def values(raw: str) -> list[str]:
            return [f"CAST({part.sql(at(raw))} AS {c.type.spark()})" for c, part, at in members]

        def problems(raw: str) -> list[tuple[str, str]]:
            return [(label, check(at(raw))) for label, check, at in broken]

        return RecordReading(["null", schema] if writer.nullable else schema, values, problems)

    def _members(
        self, writer: AvroType, columns: Sequence[ReadColumn], path: str
    ) -> tuple[Any, list[tuple[ReadColumn, FieldReading, Callable[[str], str]]]]:
        """The record that is read, and for each column how, and where it is in that record."""
        fields, members = [], []
        for column in columns:
            where = f"{path}{column.name}"
            there = writer.field(column.name, column.given.aliases if column.given is not None else ())
            if there is not None and there.type.kind != "null":
                part = self._value(there.type, column, where)
                fields.append({"name": there.name, "type": part.schema})
                members.append((column, part, _at(there.name)))
            elif column.given is not None and column.given.default is not NOTHING:
                part = self._value(column.given.type, column, where)
                fields.append({"name": column.name, "type": part.schema, "default": column.given.default})
                members.append((column, part, _at(column.name)))
            elif column.type.nullable:
                members.append((column, FieldReading("null"), lambda _: "NULL"))
            else:
                raise SchemaMismatch(f"It has no field '{where}', and that column is NOT NULL.")
        return {"type": "record", "name": f"read_{next(self._numbers)}", "namespace": "", "fields": fields}, members

    def _value(self, writer: AvroType, column: ReadColumn, where: str) -> FieldReading:
        kind = column.type
        given = unwrapped(column.given.type) if column.given is not None else ()
        for branch in unwrapped(writer):
            part = self._not_null(branch, kind, given[0] if given else None, where)
            if part is not None:
                break
        else:
            raise SchemaMismatch(f"Field '{where}' is {_a(writer)} there, and {kind.as_nullable()} in the table.")
        if not writer.nullable:
            return part
        # In the writer's order: a default belongs to the first branch.
        null_first = writer.inner[0].kind == "null"
        schema = ["null", part.schema] if null_first else [part.schema, "null"]
        value, broken = part.value, part.broken
        # A NULL in a column that is NOT NULL is a bad message; let through, it would break what the planner has
        # concluded from the type.
        if not kind.nullable:
            inner = broken or (lambda _: "false")
            return FieldReading(schema, value, lambda raw: f"({raw} IS NULL OR {inner(raw)})")
        if broken is None:
            return FieldReading(schema, value)
        checked = broken
        return FieldReading(schema, value, lambda raw: f"({raw} IS NOT NULL AND {checked(raw)})")

    def _not_null(self, writer: AvroType, kind: SqlType, given: AvroType | None, where: str) -> FieldReading | None:
        """None if there is no way from the one to the other."""
        match kind.name:
            case "BOOLEAN" | "INT" | "BIGINT" | "FLOAT" | "DOUBLE":
                schema, accepted = NUMBERS[kind.name]
                return FieldReading(schema) if writer.kind in accepted else None
            case "TINYINT" | "SMALLINT":
                return _cast("int", kind) if writer.kind == "int" else None
            case "DECIMAL":
                return self._decimal(writer, kind)
            case "DATE":
                return _date(writer)
            case "TIME":
                return _time(writer)
            case "TIMESTAMP" | "TIMESTAMP_LTZ":
                return _timestamp(writer, kind)
            case "ARRAY" | "MAP" | "MULTISET":
                return self._collection(writer, kind, given, where)
            case "ROW":
                return self._row(writer, kind, given, where)
        if kind.is_string:
            return self._either(writer, "string", "enum")
        return self._either(writer, "bytes", "fixed")

    def _either(self, writer: AvroType, plain: str, named: str) -> FieldReading | None:
        if writer.kind == named:
            return FieldReading(self._emitter.type(writer))
        return FieldReading(plain) if writer.kind in ("string", "bytes") else None

    def _decimal(self, writer: AvroType, kind: SqlType) -> FieldReading | None:
        if writer.kind == "record" and writer.name == _VARIABLE_SCALE:
            return self._variable_scale(writer, kind)
        if writer.kind not in ("bytes", "fixed") or writer.scale > _DIGITS:
            return None
        known = writer.meaning == "decimal"
        precision, scale = (writer.precision, writer.scale) if known else (kind.precision or 0, kind.scale or 0)
        logical = {"logicalType": "decimal", "precision": min(precision, _DIGITS), "scale": scale}
        if writer.kind == "fixed":
            schema = self._emitter.named(writer, lambda: {"size": writer.size, **logical})
        else:
            schema = {"type": "bytes", **logical}
        same = (precision, scale) == (kind.precision, kind.scale)
        return FieldReading(schema) if same else _cast(schema, kind)

    def _variable_scale(self, writer: AvroType, kind: SqlType) -> FieldReading:
        """What Debezium writes for a number whose column has no scale of its own: the scale, and the digits."""

        def number(raw: str) -> str:
            return decimal_of_scale(f"{raw}.value", f"{raw}.scale", kind)

        return FieldReading(self._emitter.type(writer), number, lambda raw: f"{number(raw)} IS NULL")

    def _collection(self, writer: AvroType, kind: SqlType, given: AvroType | None, where: str) -> FieldReading | None:
        word = "array" if kind.name == "ARRAY" else "map"
        if writer.kind != word:
            return None
        inner = AvroField(where, given.inner[0]) if given is not None and given.kind == word else None
        part = self._value(writer.inner[0], ReadColumn(where, kind.item, inner), where)
        item, key = f"v{next(self._numbers)}", f"k{next(self._numbers)}"
        lists = word == "array"

        def value(raw: str) -> str:
            head = f"transform({raw}, {item}" if lists else f"transform_values({raw}, ({key}, {item})"
            return f"{head} -> {part.sql(item)})"

        def broken(raw: str) -> str:
            assert part.broken is not None
            return f"exists({raw if lists else f'map_values({raw})'}, {item} -> {part.broken(item)})"

        schema = {"type": word, ("items" if lists else "values"): part.schema}
        return FieldReading(schema, None if part.value is None else value, None if part.broken is None else broken)

    def _row(self, writer: AvroType, kind: SqlType, given: AvroType | None, where: str) -> FieldReading | None:
        if writer.kind != "record":
            return None
        columns = [ReadColumn(f.name, f.type, given.field(f.name) if given is not None else None) for f in kind.fields]
        schema, members = self._members(writer, columns, f"{where}.")
        plain = all(part.value is None and part.schema != "null" for _, part, _ in members)
        same = plain and [at("r") for _, _, at in members] == [field_of("r", f.name) for f in kind.fields]
        checks = [(part.broken, at) for _, part, at in members if part.broken is not None]

        def value(raw: str) -> str:
            parts = (
                f"CAST({part.sql(at(raw))} AS {c.type.spark()}) AS {quote_name(c.name)}" for c, part, at in members
            )
            return f"IF({raw} IS NULL, NULL, struct({', '.join(parts)}))"

        def broken(raw: str) -> str:
            return f"({' OR '.join(check(at(raw)) for check, at in checks)})"

        return FieldReading(schema, None if same else value, broken if checks else None)


def _cast(schema: Any, kind: SqlType) -> FieldReading:
    """What may not fit."""
    cast = f"TRY_CAST({{}} AS {kind.spark()})"
    return FieldReading(schema, cast.format, lambda raw: f"{cast.format(raw)} IS NULL")


def _date(writer: AvroType) -> FieldReading | None:
    fits = writer.kind == "int" and writer.meaning in DAYS
    return FieldReading({"type": "int", "logicalType": "date"}) if fits else None


def _time(writer: AvroType) -> FieldReading | None:
    per_milli = _TIMES.get((writer.kind, writer.meaning))
    if per_milli is None:
        return None

    value = None if per_milli == 1 else (lambda raw: f"TRY_CAST({raw} DIV {per_milli}L AS INT)")
    return FieldReading(writer.kind, value, lambda raw: f"NOT ({raw} BETWEEN 0 AND {86_400_000 * per_milli - 1}L)")


def _timestamp(writer: AvroType, kind: SqlType) -> FieldReading | None:
    """A number without any meaning counts milliseconds, as in Flink."""
    local = kind.name == "TIMESTAMP"
    if writer.kind == "string" and writer.meaning == _ZONED:
        return _zoned("local" if local else "instant")
    if writer.kind != "long":
        return None
    prefix = "local-timestamp" if local else "timestamp"
    if writer.meaning in MILLIS or not writer.meaning:
        return FieldReading({"type": "long", "logicalType": f"{prefix}-millis"})
    if writer.meaning in MICROS:
        return FieldReading({"type": "long", "logicalType": f"{prefix}-micros"})
    if writer.meaning in _NANOS:
        # DIV cuts towards zero; times before 1970 need the microsecond below.
        micros = "(({0} DIV 1000L) - IF({0} % 1000L < 0, 1L, 0L))"
        made = f"timestampadd(MICROSECOND, {micros}, {EPOCH})" if local else f"timestamp_micros({micros})"
        return FieldReading("long", made.format)
    return None


def _zoned(kind: Literal["local", "instant"]) -> FieldReading:
    instant = "TRY_CAST({} AS TIMESTAMP)"
    made = f"timestampadd(MICROSECOND, unix_micros({instant}), {EPOCH})" if kind == "local" else instant
    offset = "([Zz]|[+-][0-9]{2}:?[0-9]{2})\\u0024"  # without one it would depend on the session's time zone
    wrong = f"({{0}} NOT RLIKE '{offset.replace('{2}', '{{2}}')}' OR {instant.replace('{}', '{0}')} IS NULL)"
    return FieldReading("string", made.format, wrong.format)


def _at(label: str) -> Callable[[str], str]:
    return lambda raw: field_of(raw, label)


def _a(writer: AvroType) -> str:
    text = str(writer)
    return f"an {text}" if text[0] in "aeiou" else f"{'a' if text != 'null' else ''} {text}".strip()
