"""Records with their schema's number in front → Arrow columns, where the writer's schema is flat and its types are the
table's. All messages of a chunk must be of one schema; everything else is left to the expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.formats.avro.buffer import FallbackError
from headwater.formats.avro.columns import Plain, Records
from headwater.formats.base import ColumnReader, FormatField, RegisteredFormat
from headwater.formats.confluent.reading import DAYS, MICROS, MILLIS, NUMBERS, ReadColumn
from headwater.formats.confluent.types import NOTHING, AvroType, unwrapped
from headwater.sql.spark_text import quote_name
from headwater.sql.types import SqlType

__all__ = ["RecordLayout", "layout_of", "registered_reader"]

_STRINGS = ("string", "bytes")
_PLAIN = frozenset({"boolean", "int", "long", "float", "double", *_STRINGS})


@dataclass(frozen=True)
class RecordLayout:
    """The fields of a writer's record in order, each with the place of its column, if it has one."""

    fields: tuple[tuple[Plain, int | None], ...]


def layout_of(writer: AvroType, columns: Sequence[ReadColumn]) -> RecordLayout | None:
    """None if there is more to do than to read plain values."""
    if writer.kind != "record":
        return None
    places: dict[str, int] = {}
    for place, column in enumerate(columns):
        there = writer.field(column.name, column.given.aliases if column.given is not None else ())
        if there is not None:
            places[there.name] = place
        # A missing field is read as NULL here; a default, or the error of a NOT NULL column, is left to the
        # expressions.
        elif not column.type.nullable or (column.given is not None and column.given.default is not NOTHING):
            return None
    fields = []
    for f in writer.fields:
        here = places.get(f.name)
        plain = _plain(f.type, columns[here].type if here is not None else None)
        if plain is None:
            return None
        fields.append((plain, here))
    return RecordLayout(tuple(fields))


def _plain(writer: AvroType, column: SqlType | None) -> Plain | None:
    """How a field is read; None if it is not plain, or not what the `column` wants."""
    branches = unwrapped(writer)
    if len(branches) != 1 or branches[0].kind not in _PLAIN or (writer.kind == "union" and len(writer.inner) != 2):
        return None
    null = next((i for i, b in enumerate(writer.inner) if b.kind == "null"), None) if writer.kind == "union" else None
    branch = branches[0]
    if column is not None and (not _is_same(branch, column) or (null is not None and not column.nullable)):
        return None
    return Plain(branch.kind, null, 1 if branch.meaning in MICROS else 1000)


def _is_same(writer: AvroType, column: SqlType) -> bool:
    match column.name:
        case "DATE":
            return writer.kind == "int" and writer.meaning in DAYS
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return writer.kind == "long" and (not writer.meaning or writer.meaning in MILLIS | MICROS)
        case "DECIMAL":
            digits = (writer.precision, writer.scale) if writer.meaning == "decimal" else None
            return writer.kind == "bytes" and digits in (None, (column.precision, column.scale))
    if column.name in NUMBERS:
        return writer.kind in NUMBERS[column.name][1]
    return writer.kind in _STRINGS and (column.is_string or column.name in {"BINARY", "VARBINARY", "BYTES"})


def registered_reader(fields: Sequence[FormatField], layouts: Mapping[int, RecordLayout]) -> ColumnReader | None:
    return _RegisteredReader(tuple(f.type.spark() for f in fields), dict(layouts)) if layouts else None


@dataclass(frozen=True)
class _RegisteredReader:
    types: tuple[str, ...]
    layouts: dict[int, RecordLayout]

    def columns(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(quote_name, names))

    def error(self, names: Sequence[str]) -> str | None:
        return None

    def read(self, payloads: pa.Array, types: Sequence[pa.DataType]) -> list[pa.Array] | None:
        records = Records(payloads, RegisteredFormat.HEADER)
        try:
            layout = self._layout(records)
            if layout is None:
                return None
            found = [pa.nulls(len(payloads), t) for t in types]
            for plain, place in layout.fields:
                column = records.column(plain, None if place is None else types[place])
                if place is not None:
                    found[place] = column
            records.finish()
        except (FallbackError, pa.ArrowInvalid):
            return None
        return found

    def _layout(self, records: Records) -> RecordLayout | None:
        header = [records.headers(place) for place in range(RegisteredFormat.HEADER)]
        # A chunk of several schemas is refused as a whole; it comes again in smaller pieces.
        if header[0][0] != 0 or any(np.any(byte != byte[0]) for byte in header):
            return None
        return self.layouts.get(int.from_bytes(bytes(int(byte[0]) for byte in header[1:]), "big"))
