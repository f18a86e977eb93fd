"""The bytes of one column → an Arrow column, where nothing has to be replaced: text that is valid, numbers of the right
size. Everything else is left to the expressions of `raw`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.formats.base import ColumnReader, FormatField
from headwater.sql.spark_text import quote_name
from headwater.sql.types import SqlType

__all__ = ["raw_reader"]

_NUMBERS = {
    "BOOLEAN": "u1",
    "TINYINT": "i1",
    "SMALLINT": "i2",
    "INT": "i4",
    "BIGINT": "i8",
    "FLOAT": "f4",
    "DOUBLE": "f8",
}


def raw_reader(column: FormatField, count: int, charset: str, endianness: str) -> ColumnReader | None:
    """`count`: how often the column is wanted."""
    if column.type.is_string and charset not in {"UTF-8", "US-ASCII"}:
        return None
    order = "<" if endianness == "little-endian" else ">"
    return _RawReader(column.type, count, charset == "US-ASCII", order)


@dataclass(frozen=True)
class _RawReader:
    kind: SqlType
    count: int
    ascii_only: bool
    order: str

    @property
    def types(self) -> tuple[str, ...]:
        return (self.kind.spark(),) * self.count

    def columns(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(quote_name, names))

    def error(self, names: Sequence[str]) -> str | None:
        return None

    def read(self, payloads: pa.Array, types: Sequence[pa.DataType]) -> list[pa.Array] | None:
        column = self._read(payloads)
        return None if column is None else [column.cast(t) for t in types]

    def _read(self, payloads: pa.Array) -> pa.Array | None:
        if self.kind.is_binary:
            return payloads
        if not self.kind.is_string:
            return self._numbers(payloads)
        if self.ascii_only and not pc.all(pc.string_is_ascii(payloads.cast(pa.large_string(), safe=False))).as_py():
            return None
        try:
            return payloads.cast(pa.string())
        except pa.ArrowInvalid:
            return None

    def _numbers(self, payloads: pa.Array) -> pa.Array | None:
        kind = np.dtype(f"{self.order}{_NUMBERS[self.kind.name]}")
        if pc.any(pc.not_equal(pc.binary_length(payloads), kind.itemsize)).as_py():
            return None
        _, offsets, data = payloads.buffers()
        # All values have the same size and no NULL is among them, so the data buffer, from the slice's first value on,
        # is the column.
        first = int(np.frombuffer(offsets, np.int32)[payloads.offset])
        found = np.frombuffer(data, kind, len(payloads), first)
        if self.kind.name == "BOOLEAN":
            return pa.array(found != 0)
        return pa.array(found.astype(kind.newbyteorder("=")))
