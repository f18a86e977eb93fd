"""Avro records → Arrow columns, thousands at a time.

All messages lie in one buffer, and a field is read from all of them at once (`buffer`), from the places where
each message goes on. That works for records of plain values, NULL or not. A message that is not exactly such a record
leaves all to the expressions of `avro`, which say what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import spread
from headwater.formats.avro.buffer import Buffer, FallbackError, Numbers
from headwater.formats.avro.schema import branch_name
from headwater.formats.base import ColumnReader, FormatField
from headwater.sql.spark_text import quote_name
from headwater.sql.types import SqlType

__all__ = ["Plain", "Records", "avro_reader"]


@dataclass(frozen=True)
class Plain:
    """A field that is no record, array or map: its type in Avro; where null is in a union of both, None if it is none;
    and of a timestamp how many microseconds its unit is."""

    kind: str
    null: int | None = None
    micros: int = 1000


def avro_reader(fields: Sequence[FormatField], wanted: Sequence[FormatField]) -> ColumnReader | None:
    return None if any(f.type.is_nested for f in fields) else _AvroReader(tuple(fields), tuple(wanted))


@dataclass(frozen=True)
class _AvroReader:
    fields: tuple[FormatField, ...]
    wanted: tuple[FormatField, ...]

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(f.type.spark() for f in self.wanted)

    def columns(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(quote_name, names))

    def error(self, names: Sequence[str]) -> str | None:
        return None

    def read(self, payloads: pa.Array, types: Sequence[pa.DataType]) -> list[pa.Array] | None:
        asked = dict(zip((f.name for f in self.wanted), types, strict=True))
        records = Records(payloads)
        try:
            # Avro has no field positions: to find a field, all fields before it have to be read, wanted or not.
            found = {f.name: records.column(_plain(f.type), asked.get(f.name)) for f in self.fields}
            records.finish()
        except (FallbackError, pa.ArrowInvalid):  # the second for numbers that do not fit, and strings that are none
            return None
        return [found[f.name] for f in self.wanted]


def _plain(kind: SqlType) -> Plain:
    return Plain(branch_name(kind, ""), 0 if kind.nullable else None)


class Records:
    """Many records, read field by field. `at` is where each of them goes on, `ends` where it ends. In front of each
    there may be a `header` of so many bytes."""

    def __init__(self, payloads: pa.Array, header: int = 0) -> None:
        _, offsets, data = payloads.buffers()
        # Of a slice, whose offsets count from the start of the buffer that it shares.
        places = np.frombuffer(offsets, np.int32)[payloads.offset : payloads.offset + len(payloads) + 1]
        self._buffer = Buffer(data, int(places[0]), int(places[-1]))
        self._begins = places[:-1].astype(np.int64) - places[0]
        self._ends = places[1:].astype(np.int64) - places[0]
        self._at = self._begins + header

    def headers(self, place: int) -> Numbers:
        """One byte of every header."""
        # Reading ran over the end of some message into its neighbour: what was read there means nothing.
        if np.any(self._at > self._ends):
            raise FallbackError
        return self._buffer.bytes_at(self._begins + place)

    def column(self, plain: Plain, asked: pa.DataType | None) -> pa.Array | None:
        """The next field of every record; None if it is not `asked` for."""
        present = self._present(plain.null) if plain.null is not None else None
        if present is None or present.all():
            column, self._at = self._value(plain, self._at, asked)
        else:
            rows = np.flatnonzero(present)
            column, self._at[rows] = self._value(plain, self._at[rows], asked)
            column = spread(column, present) if column is not None else None
        if np.any(self._at > self._ends):
            raise FallbackError
        return column

    def finish(self) -> None:
        if np.any(self._at != self._ends):
            raise FallbackError

    def _present(self, null: int) -> Numbers:
        """Whether there is a value: the field is a union of null and something."""
        branch, self._at = self._buffer.bytes_at(self._at), self._at + 1
        # Branch numbers are zigzag varints, so 0 and 1 are the bytes 0 and 2; longer spellings are left to the
        # fallback.
        if np.any((branch != 0) & (branch != 2)):
            raise FallbackError
        present: Numbers = branch != 2 * null
        return present

    def _value(self, plain: Plain, at: Numbers, asked: pa.DataType | None) -> tuple[pa.Array | None, Numbers]:
        """Values that stand at these places, and the places behind them."""
        match plain.kind:
            case "boolean":
                values, behind = self._buffer.booleans(at)
            case "int":
                values, behind = self._buffer.ints(at)
            case "long":
                values, behind = self._buffer.longs(at)
            case "float":
                values, behind = self._buffer.floats(at)
            case "double":
                values, behind = self._buffer.doubles(at)
            case _:
                start, behind = self._buffer.strings(at)
                return self._text(start, behind, asked), behind
        return _numbers(values, asked, plain.micros), behind

    def _text(self, start: Numbers, behind: Numbers, asked: pa.DataType | None) -> pa.Array | None:
        if asked is None:
            return None
        if pa.types.is_decimal(asked):
            return self._buffer.decimals(start, behind, asked)
        return self._buffer.slices(start, behind).cast(asked)


def _numbers(values: Numbers, asked: pa.DataType | None, micros: int) -> pa.Array | None:
    if asked is None:
        return None
    if pa.types.is_timestamp(asked):
        # numpy would wrap around; what becomes of such a time is left to the expressions. Absolute values would not do:
        # the least number of 64 bits has none.
        most = _MOST_MICROS // micros
        if np.any((values > most) | (values < -most)):
            raise FallbackError
        return pa.array(values * micros).cast(asked)
    return pa.array(values).cast(asked)


_MOST_MICROS = 2**63 - 1
