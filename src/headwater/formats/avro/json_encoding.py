"""Avro's JSON encoding as Spark SQL: a nullable value is null, or an object that names its type: {"int": 1}.

Bytes, and decimals as their bytes, are text of the characters with these numbers. Dates and times are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from headwater.formats.avro.schema import ROOT, branch_name
from headwater.formats.base import Decoder, FormatField
from headwater.formats.strings import EPOCH, decimal_of_bytes, instant_of, text_of
from headwater.sql.spark_text import field_of, once, quote_name, string_literal, string_map
from headwater.sql.types import SqlType

__all__ = ["avro_json_decoder", "avro_json_encoder"]

_BAD = "_bad"
_RAW = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "INT",
    "SMALLINT": "INT",
    "INT": "INT",
    "DATE": "INT",
    "TIME": "INT",
    "BIGINT": "BIGINT",
    "TIMESTAMP": "BIGINT",
    "TIMESTAMP_LTZ": "BIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
}
_PROBLEM = "Failed to deserialize Avro record: it is not what the table says."


def avro_json_decoder(payload: str, alias: str, wanted: Sequence[FormatField]) -> Decoder:
    reader = _Reader()
    shapes = [f"{quote_name(f.name)} {reader.shape(f.type, f'{ROOT}_{f.name}')}" for f in wanted]
    schema = ", ".join([*shapes, f"{_BAD} STRING"])
    options = string_map({"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BAD})
    broken = [reader.broken(field_of(alias, f.name), f.type, f"{ROOT}_{f.name}") for f in wanted]
    # A permissive from_json reads a value of another type as NULL, silently, so every value is checked as well.
    wrong = " OR ".join([f"{alias} IS NULL", f"{alias}.{_BAD} IS NOT NULL", *(f"({b})" for b in broken if b)])
    return Decoder(
        parsed=once(f"from_json({text_of(payload)}, {string_literal(schema)}, {options})"),
        columns=tuple(reader.value(field_of(alias, f.name), f.type, f"{ROOT}_{f.name}") for f in wanted),
        error=f"IF({wrong}, {string_literal(_PROBLEM)}, NULL)",
    )


def avro_json_encoder(fields: Sequence[FormatField], columns: Sequence[str]) -> str:
    writer = _Writer()
    members = (
        f"{string_literal(f.name)}, {writer.written(c, f.type, f'{ROOT}_{f.name}')}"
        for f, c in zip(fields, columns, strict=True)
    )
    return f"CAST(to_json(named_struct({', '.join(members)}), map('ignoreNullFields', 'false')) AS BINARY)"


class _Named:
    def __init__(self) -> None:
        self._numbers = count(1)

    def _variable(self) -> str:
        return f"v{next(self._numbers)}"


class _Reader(_Named):
    """`record` is the name of the record that a ROW at this place is."""

    def shape(self, kind: SqlType, record: str) -> str:
        """The Spark type as which the JSON is parsed."""
        inner = self._shape(kind, record)
        return f"STRUCT<{quote_name(branch_name(kind, record))}: {inner}>" if kind.nullable else inner

    def _shape(self, kind: SqlType, record: str) -> str:
        match kind.name:
            case "ROW":
                members = (f"{quote_name(f.name)}: {self.shape(f.type, f'{record}_{f.name}')}" for f in kind.fields)
                return f"STRUCT<{', '.join(members)}>"
            case "ARRAY":
                return f"ARRAY<{self.shape(kind.item, record)}>"
            case "MAP" | "MULTISET":
                return f"MAP<STRING, {self.shape(kind.item, record)}>"
        return _RAW.get(kind.name, "STRING")

    def value(self, raw: str, kind: SqlType, record: str) -> str:
        return self._value(field_of(raw, branch_name(kind, record)) if kind.nullable else raw, kind, record)

    def _value(self, raw: str, kind: SqlType, record: str) -> str:
        match kind.name:
            case "ROW":
                parts = (
                    f"{self.value(field_of(raw, f.name), f.type, f'{record}_{f.name}')} AS {quote_name(f.name)}"
                    for f in kind.fields
                )
                return f"IF({raw} IS NULL, NULL, struct({', '.join(parts)}))"
            case "ARRAY":
                item = self._variable()
                return f"transform({raw}, {item} -> {self.value(item, kind.item, record)})"
            case "MAP" | "MULTISET":
                key, item = self._variable(), self._variable()
                return f"transform_values({raw}, ({key}, {item}) -> {self.value(item, kind.item, record)})"
        return _scalar(raw, kind)

    def broken(self, raw: str, kind: SqlType, record: str) -> str:
        """Whether a value is of another type than it should be, or is not there though it must be."""
        if kind.nullable:
            branch = field_of(raw, branch_name(kind, record))
            return f"{raw} IS NOT NULL AND ({branch} IS NULL OR {self._broken(branch, kind, record)})"
        return f"{raw} IS NULL OR {self._broken(raw, kind, record)}"

    def _broken(self, raw: str, kind: SqlType, record: str) -> str:
        match kind.name:
            case "ROW":
                parts = (self.broken(field_of(raw, f.name), f.type, f"{record}_{f.name}") for f in kind.fields)
                return f"({' OR '.join(f'({p})' for p in parts) or 'false'})"
            case "ARRAY" | "MAP" | "MULTISET":
                item = self._variable()
                items = raw if kind.name == "ARRAY" else f"map_values({raw})"
                return f"exists({items}, {item} -> {self.broken(item, kind.item, record)})"
        return f"{_scalar(raw, kind)} IS NULL"


class _Writer(_Named):
    def written(self, value: str, kind: SqlType, record: str) -> str:
        inner = self._written(value, kind, record)
        if not kind.nullable:
            return inner
        return f"IF({value} IS NULL, NULL, named_struct({string_literal(branch_name(kind, record))}, {inner}))"

    def _written(self, value: str, kind: SqlType, record: str) -> str:
        match kind.name:
            case "ROW":
                members = (
                    f"{string_literal(f.name)}, {self.written(field_of(value, f.name), f.type, f'{record}_{f.name}')}"
                    for f in kind.fields
                )
                return f"named_struct({', '.join(members)})"
            case "ARRAY":
                item = self._variable()
                return f"transform({value}, {item} -> {self.written(item, kind.item, record)})"
            case "MAP" | "MULTISET":
                key, item = self._variable(), self._variable()
                return f"transform_values({value}, ({key}, {item}) -> {self.written(item, kind.item, record)})"
        return _SCALARS_WRITTEN[kind.name](value, kind) if kind.name in _SCALARS_WRITTEN else value


def _scalar(raw: str, kind: SqlType) -> str:
    """The value; NULL if it cannot be one."""
    match kind.name:
        case "TINYINT" | "SMALLINT":
            return f"TRY_CAST({raw} AS {kind.name})"
        case "DATE":
            return f"date_from_unix_date({raw})"
        case "TIMESTAMP":
            return f"timestampadd(MICROSECOND, try_multiply({raw}, 1000L), {EPOCH})"
        case "TIMESTAMP_LTZ":
            return instant_of(raw, 1_000)
        case "DECIMAL":
            return f"TRY_CAST({decimal_of_bytes(_bytes(raw), kind.scale or 0)} AS {kind.spark()})"
    return _bytes(raw) if kind.is_binary else raw


def _bytes(raw: str) -> str:
    return f"IF({raw} RLIKE '^[\\\\x00-\\\\xff]*\\\\z', encode({raw}, 'ISO-8859-1'), NULL)"


def _latin(data: str) -> str:
    return f"decode({data}, 'ISO-8859-1')"


def _decimal(value: str, kind: SqlType) -> str:
    schema = f'{{"type": "bytes", "logicalType": "decimal", "precision": {kind.precision}, "scale": {kind.scale}}}'
    return _latin(f"substring(to_avro({value}, {string_literal(schema)}), 2)")  # without the number of bytes


_SCALARS_WRITTEN: dict[str, Callable[[str, SqlType], str]] = {
    "DATE": lambda value, _: f"unix_date({value})",
    "TIMESTAMP": lambda value, _: f"timestampdiff(MILLISECOND, {EPOCH}, {value})",
    "TIMESTAMP_LTZ": lambda value, _: f"unix_millis({value})",
    "DECIMAL": _decimal,
    "BINARY": lambda value, _: _latin(value),
    "VARBINARY": lambda value, _: _latin(value),
    "BYTES": lambda value, _: _latin(value),
}
