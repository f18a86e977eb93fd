"""A table's Avro schema, as Flink's AvroSchemaConverter derives it, and how Spark's values fit it.

The schema given to Spark differs from Flink's where only logical types do, which never are in a message: Spark reads a
local-timestamp-millis as TIMESTAMP_NTZ, and a plain int as the milliseconds of a TIME.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from headwater.formats.base import FormatField
from headwater.formats.strings import valid_text
from headwater.sql.reserved_columns import RESERVED_PREFIX
from headwater.sql.spark_text import field_of
from headwater.sql.types import SqlType

__all__ = ["NUMBERS", "ROOT", "AvroSchema", "branch_name", "does_not_fit", "in_column_type"]

NUMBERS = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INT": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
}
_PLAIN = {
    **NUMBERS,
    "CHAR": "string",
    "VARCHAR": "string",
    "STRING": "string",
    "BINARY": "bytes",
    "VARBINARY": "bytes",
    "BYTES": "bytes",
    "TIME": "int",
}
_LIMITS = {"TINYINT": 2**7, "SMALLINT": 2**15}
ROOT = "org.apache.flink.avro.generated.record"


def branch_name(kind: SqlType, record: str) -> str:
    """What a type is called in a union; `record` is the name of a record there."""
    if kind.name == "ROW":
        return record
    others = {"ARRAY": "array", "MAP": "map", "MULTISET": "map", "DECIMAL": "bytes", "DATE": "int"}
    return {**_PLAIN, **others, "TIMESTAMP": "long", "TIMESTAMP_LTZ": "long"}[kind.name]


class AvroSchema:
    PRECISION = 3  # of timestamps

    def __init__(self, *, legacy: bool) -> None:
        self._legacy = legacy

    def record(self, fields: Sequence[FormatField]) -> dict[str, Any]:
        members = [(f.name, f.type) for f in fields]
        return self._record(members, ROOT)

    def _record(self, members: Sequence[tuple[str, SqlType]], record_name: str) -> dict[str, Any]:
        return {
            "type": "record",
            "name": record_name,
            "fields": [self._member(label, kind, f"{record_name}_{label}") for label, kind in members],
        }

    def _member(self, label: str, kind: SqlType, record_name: str) -> dict[str, Any]:
        member: dict[str, Any] = {"name": label, "type": self._type(kind, record_name)}
        # As Flink writes it: with a default, a reader may have the field where the writer has not.
        return {**member, "default": None} if kind.nullable else member

    def _type(self, kind: SqlType, record_name: str) -> Any:
        inner = self._not_null(kind, record_name)
        return ["null", inner] if kind.nullable else inner

    def _not_null(self, kind: SqlType, record_name: str) -> Any:
        match kind.name:
            case "DATE":
                return {"type": "int", "logicalType": "date"}
            case "TIMESTAMP":
                return {"type": "long", "logicalType": "local-timestamp-millis"}
            case "TIMESTAMP_LTZ":
                return {"type": "long", "logicalType": "timestamp-millis"}
            case "DECIMAL":
                return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
            case "ROW":
                return self._record([(f.name, f.type) for f in kind.fields], record_name)
            case "ARRAY":
                assert kind.element is not None
                return {"type": "array", "items": self._type(kind.element, record_name)}
            case "MAP" | "MULTISET":
                return {"type": "map", "values": self._type(kind.item, record_name)}
        return _PLAIN[kind.name]

    def problems(self, fields: Sequence[FormatField]) -> list[str]:
        found = [problem for f in fields for problem in self._problems(f.type, f.name)]
        names = [n for f in fields for n in (f.name, *_inner_names(f.type))]
        return found + [
            f"Field '{n}' cannot have that name in Avro: letters, digits and '_' are allowed, and no digit in front."
            for n in dict.fromkeys(names)
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", n)
        ]

    def _problems(self, kind: SqlType, path: str) -> list[str]:
        precision = kind.precision or 0
        match kind.name:
            case "TIMESTAMP" if precision > self.PRECISION:
                text = f"Avro does not support TIMESTAMP type with precision: {precision}, it only supports precision "
                return [
                    f"{text}less than {self.PRECISION} (field '{path}'). Declare it as TIMESTAMP({self.PRECISION})."
                ]
            case "TIMESTAMP_LTZ" if self._legacy:
                text = f"Unsupported to derive Schema for type: {kind} (field '{path}'). "
                return [f"{text}Set 'timestamp_mapping.legacy' to 'false', or declare it as TIMESTAMP(3)."]
            case "TIMESTAMP_LTZ" if precision > self.PRECISION:
                unit = "milliseconds" if self.PRECISION == 3 else "microseconds"
                return [
                    f"Avro holds {unit}, but field '{path}' is {kind}. Declare it as TIMESTAMP_LTZ({self.PRECISION})."
                ]
            case "TIME" if precision > 3:
                text = f"Avro does not support TIME type with precision: {precision}, it only supports precision "
                return [f"{text}less than 3 (field '{path}'). Declare it as TIME(3)."]
            case "MAP" | "MULTISET" if not _map_key(kind).is_string:
                text = "Avro format doesn't support non-string as key type of map. The key type is: "
                return [f"{text}{_map_key(kind)} (field '{path}')."]
        if not kind.is_nested and kind.name not in {*_PLAIN, "DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "DECIMAL"}:
            return [f"Unsupported to derive Schema for type: {kind} (field '{path}')."]
        parts = [(path, kind.element)] if kind.element is not None and kind.name != "MULTISET" else []
        parts += [(f"{path}.{f.name}", f.type) for f in kind.fields]
        return [problem for where, part in parts for problem in self._problems(part, where)]


def in_column_type(value: str, kind: SqlType) -> str:
    """The value Spark has read, in the column's own type: Avro has no smaller number than int. Where it does not fit it
    is NULL, and `does_not_fit` says so."""
    return valid_text(value, kind) if does_not_fit(value, kind) is None else f"TRY_CAST({value} AS {kind.spark()})"


def does_not_fit(value: str, kind: SqlType, depth: int = 0) -> str | None:
    """SQL of whether a number in the value Spark has read is too large for its type; None: all that Avro has fit."""
    match kind.name:
        case "TINYINT" | "SMALLINT":
            limit = _LIMITS[kind.name]
            return f"{value} NOT BETWEEN {-limit} AND {limit - 1}"
        case "ARRAY" | "MAP" | "MULTISET":
            item = f"{RESERVED_PREFIX}item_{depth}"
            inner = does_not_fit(item, kind.item, depth + 1)
            items = value if kind.name == "ARRAY" else f"map_values({value})"
            return None if inner is None else f"exists({items}, {item} -> {inner})"
        case "ROW":
            found = [does_not_fit(field_of(value, f.name), f.type, depth) for f in kind.fields]
            return " OR ".join(f"({one})" for one in found if one is not None) or None
    return None


def _map_key(kind: SqlType) -> SqlType:
    key = kind.key if kind.name == "MAP" else kind.element
    assert key is not None
    return key


def _inner_names(kind: SqlType) -> list[str]:
    below = [n for t in (kind.element,) if t is not None for n in _inner_names(t)]
    return below + [n for f in kind.fields for n in (f.name, *_inner_names(f.type))]
