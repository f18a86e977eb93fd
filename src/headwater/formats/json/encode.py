"""Rows → JSON as Spark SQL: one `to_json` of a struct, or where decimals need Flink's spelling, pieces of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from json import dumps
from typing import Any

from headwater.formats.base import FormatField
from headwater.formats.strings import decimal_text, instant_text, time_text, timestamp_text
from headwater.sql.spark_text import field_of, string_literal, string_map
from headwater.sql.types import SqlType

__all__ = ["json_encoder"]


def json_encoder(fields: Sequence[FormatField], columns: Sequence[str], options: Mapping[str, Any]) -> str:
    members = [(f.name, f.type, column) for f, column in zip(fields, columns, strict=True)]
    return f"CAST({_Writer(options).object(members)} AS BINARY)"


class _Writer:
    def __init__(self, options: Mapping[str, Any]) -> None:
        self._separator = "T" if options["timestamp-format.standard"] == "ISO-8601" else " "
        self._plain = bool(options["encode.decimal-as-plain-number"])
        self._skip_nulls = bool(options["encode.ignore-null-fields"])
        self._depth = 0

    def object(self, members: Sequence[tuple[str, SqlType, str]]) -> str:
        """A JSON object as STRING."""
        if not any(_has_decimal(kind) for _, kind, _ in members):
            return self._to_json(members)
        # Neighbours without decimals share one to_json instead of one each, and all members keep their order.
        runs = [(decimal, list(run)) for decimal, run in groupby(members, key=lambda m: _has_decimal(m[1]))]
        parts = []
        for decimal, run in runs:
            parts += [self._member(*m) for m in run] if decimal else [_inner(self._to_json(run))]
        return f"concat('{{', concat_ws(',', {', '.join(parts)}), '}}')"

    def _to_json(self, members: Sequence[tuple[str, SqlType, str]]) -> str:
        pairs = ", ".join(f"{string_literal(label)}, {self._ready(value, kind)}" for label, kind, value in members)
        skip = "true" if self._skip_nulls else "false"
        return f"to_json(named_struct({pairs}), {string_map({'ignoreNullFields': skip})})"

    def _ready(self, value: str, kind: SqlType) -> str:
        """The value in a type that `to_json` writes as Flink does."""
        if not _needs_text(kind):
            return value
        match kind.name:
            case "DATE":
                return f"CAST({value} AS STRING)"
            case "TIME":
                return time_text(value)
            case "TIMESTAMP":
                return timestamp_text(value, self._separator)
            case "TIMESTAMP_LTZ":
                return instant_text(value, self._separator)
            case "ARRAY":
                item = self._variable()
                return f"transform({value}, {item} -> {self._ready(item, _element(kind))})"
            case "MAP":
                key, item = self._variable(), self._variable()
                return f"transform_values({value}, ({key}, {item}) -> {self._ready(item, _element(kind))})"
        pairs = ", ".join(
            f"{string_literal(f.name)}, {self._ready(field_of(value, f.name), f.type)}" for f in kind.fields
        )
        return f"IF({value} IS NULL, NULL, named_struct({pairs}))"

    def _member(self, label: str, kind: SqlType, value: str) -> str:
        written = f"concat({string_literal(dumps(label, ensure_ascii=False) + ':')}, {self._written(value, kind)})"
        return f"IF({value} IS NULL, NULL, {written})" if self._skip_nulls else written

    def _written(self, value: str, kind: SqlType) -> str:
        """JSON text of a value that has decimals in it; `null` for NULL."""
        match kind.name:
            case "DECIMAL":
                return f"coalesce({decimal_text(value, kind, plain=self._plain)}, 'null')"
            case "ROW":
                inner = self.object([(f.name, f.type, field_of(value, f.name)) for f in kind.fields])
            case "ARRAY":
                item = self._variable()
                items = f"transform({value}, {item} -> {self._written(item, _element(kind))})"
                inner = f"concat('[', array_join({items}, ','), ']')"
            case _:
                entry = self._variable()
                # to_json quotes and escapes the key, but takes no plain string: hence the array and its brackets, cut
                # off again.
                label = _inner(f"to_json(array({entry}.key))")
                member = f"concat({label}, ':', {self._written(f'{entry}.value', _element(kind))})"
                inner = f"concat('{{', array_join(transform(map_entries({value}), {entry} -> {member}), ','), '}}')"
        return f"IF({value} IS NULL, 'null', {inner})"

    def _variable(self) -> str:
        self._depth += 1
        return f"v{self._depth}"


def _element(kind: SqlType) -> SqlType:
    assert kind.element is not None
    return kind.element


def _parts(kind: SqlType) -> list[SqlType]:
    return [*([kind.element] if kind.element is not None else []), *(f.type for f in kind.fields)]


def _has_decimal(kind: SqlType) -> bool:
    return kind.name == "DECIMAL" or any(_has_decimal(part) for part in _parts(kind))


def _needs_text(kind: SqlType) -> bool:
    return kind.name in {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"} or any(
        _needs_text(part) for part in _parts(kind)
    )


def _inner(json: str) -> str:
    """What is between the brackets; NULL if that is nothing, so that concat_ws leaves it out."""
    return f"nullif(substring({json}, 2, length({json}) - 2), '')"
