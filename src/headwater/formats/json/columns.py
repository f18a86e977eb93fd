"""JSON messages → Arrow columns, thousands at a time.

Arrow's JSON reader is several times faster than Spark's parser, and stricter: what it accepts with a given schema means
the same in both. So it gets the first try, and whatever it refuses (one message is enough) is left to the expressions
of `decode`, which know every leniency and every error.

Arrow sees the messages as lines of one text. That each line is one message, and no message is torn apart or glued
to its neighbour, follows from four facts that are checked: a message starts with `{`, ends with `}`, is valid UTF-8,
and there are as many objects as messages. Nothing valid has `}` and `{` with only a line break between them inside an
object, and a line break inside a string is an error; so no object spans two messages.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from headwater.formats.base import ColumnReader, FormatField, row_of
from headwater.formats.columns import as_text, joined, read_as, typed
from headwater.formats.json.scalars import Scalars, misread, rows_opened, shown
from headwater.sql.spark_text import quote_name
from headwater.sql.types import SqlType

__all__ = ["json_reader"]

# Read by Arrow as by Spark. Missing on purpose: FLOAT is rounded in two steps, BYTES have another text.
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE")
_SCALARS = frozenset({"STRING", "BOOLEAN", *_NUMBERS, "DATE", "TIMESTAMP_NTZ", "TIMESTAMP"})
_MOST_MICROS = 253_402_300_799_999_999  # the year 9999
_MINUS_ZERO = -(2**63)  # as bits of a DOUBLE
# Spark's parser goes no deeper, and Arrow's would go on until its stack ends.
_DEEPEST = 1000
_LOOKED_AT = 3
_WHOLE = r"^-?(0|[1-9][0-9]{0,17})$"
_NO_NUMBER = re.compile(rb"(?:NaN|Inf(?:inity)?)\s*[],}]")
_BEFORE_VALUES = np.frombuffer(b":[, \t\r\n-", np.uint8)
_NUMBER = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?$"

Place = tuple[SqlType, str]
"""A field of a ROW, or '' for what is in an ARRAY."""

Seen = dict[Place, type]
"""Whether values were str or int, and rows all NULL."""


def json_reader(wanted: Sequence[FormatField], scalars: Scalars, *, may_fail: bool) -> ColumnReader | None:
    """`may_fail`: a field that cannot be converted is an error, not NULL."""
    if not all(_readable(f.type, scalars) for f in wanted):
        return None
    return _JsonReader(tuple(wanted), scalars, may_fail)


def _readable(kind: SqlType, scalars: Scalars) -> bool:
    if kind.name == "ROW":
        return bool(kind.fields) and all(_readable(f.type, scalars) for f in kind.fields)
    if kind.name == "ARRAY":
        return kind.element is not None and _readable(kind.element, scalars)
    raw = scalars.schema(kind)
    return raw in _SCALARS or raw.startswith("DECIMAL")


@dataclass(frozen=True)
class _JsonReader:
    wanted: tuple[FormatField, ...]
    scalars: Scalars
    may_fail: bool

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(self.scalars.schema(f.type) for f in self.wanted)

    def columns(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.scalars.convert(quote_name(n), f.type) for n, f in zip(names, self.wanted, strict=True))

    def error(self, names: Sequence[str]) -> str | None:
        opened = [scalar for n, f in zip(names, self.wanted, strict=True) for scalar in rows_opened(f, quote_name(n))]
        broken = [(self.scalars.broken(raw, f.type), misread(f, shown(raw, f.type))) for f, raw in opened]
        cases = [f"WHEN {condition} THEN {sentence}" for condition, sentence in broken if condition]
        return f"CASE {' '.join(cases)} END" if cases and self.may_fail else None

    def read(self, payloads: pa.Array, types: Sequence[pa.DataType]) -> list[pa.Array] | None:
        text = _lines(payloads)
        if text is None:
            return None
        seen = _seen_in(payloads[:_LOOKED_AT].to_pylist(), row_of(self.wanted))
        # Guesses from the first messages. A wrong one costs time, never a wrong value: Arrow refuses, and the
        # expressions read.
        for shape in _shapes(self.scalars, seen):
            with contextlib.suppress(pa.ArrowInvalid):
                return self._read_as(shape, text, len(payloads), types)
        return None

    def _read_as(
        self, shape: _Shape, text: pa.Buffer, size: int, types: Sequence[pa.DataType]
    ) -> list[pa.Array] | None:
        wanted = pa.struct(list(zip((f.name for f in self.wanted), types, strict=True)))
        asked = shape.asked(row_of(self.wanted), wanted)
        table = pj.read_json(
            pa.BufferReader(text),
            # One block: a schema is inferred per block, and threads would only fight with the other tasks for the
            # cores.
            pj.ReadOptions(use_threads=False, block_size=text.size + 1),
            pj.ParseOptions(explicit_schema=pa.schema(list(asked)), unexpected_field_behavior="ignore"),
        )
        # A message that is two objects, or none, would shift all that follow it to other rows.
        if table.num_rows != size:
            return None
        found = zip(table.columns, self.wanted, asked, types, strict=True)
        return [shape.converted(column.combine_chunks(), f.type, was.type, t) for column, f, was, t in found]


def _seen_in(messages: Sequence[bytes], message: SqlType) -> Seen:
    """Many writers put numbers in quotes, or days and timestamps without, and then in all their messages alike: the
    first ones tell. Rows of one type are written alike wherever they are in a message."""
    seen: Seen = {}
    for payload in messages:
        with contextlib.suppress(ValueError, RecursionError):
            _look_at(json.loads(payload), message, seen)
    return seen


def _look_at(value: object, kind: SqlType, seen: Seen) -> None:
    if kind.name == "ROW" and isinstance(value, dict):
        for f in kind.fields:
            _note(value.get(f.name), f.type, (kind, f.name), seen)
    elif kind.name == "ARRAY" and isinstance(value, list) and kind.element is not None:
        for element in value[:_LOOKED_AT]:
            _note(element, kind.element, (kind, ""), seen)


def _note(value: object, kind: SqlType, place: Place, seen: Seen) -> None:
    # Not of the rows in an ARRAY: Arrow's reader gives lists of NULLs too few of them, and fails.
    if kind.name == "ROW" and place[1] and (value is None or isinstance(value, dict)):
        known = seen.setdefault(place, type(value))
        seen[place] = known if value is None else dict
    if kind.is_nested:
        _look_at(value, kind, seen)
    elif type(value) in (str, int):
        seen.setdefault(place, type(value))


def _shapes(scalars: Scalars, seen: Seen) -> list[_Shape]:
    """What to try: first that a row which is NULL in the first messages is NULL in all, as the row before a change is
    in a snapshot. Arrow reads them in four fifths of the time then, and stops at the first one that is not."""
    shapes = [_Shape(scalars, {place: kind for place, kind in seen.items() if kind is not type(None)})]
    return [_Shape(scalars, seen), *shapes] if type(None) in seen.values() else shapes


@dataclass(frozen=True)
class _Shape:
    """How values are written in these messages, as far as they were `seen`."""

    scalars: Scalars
    seen: Seen

    def asked(self, kind: SqlType, wanted: pa.DataType, place: Place | None = None) -> pa.DataType:
        """What Arrow's reader is asked for, for `converted` to finish."""
        was = self.seen.get(place) if place is not None else None
        if was is type(None):
            return pa.null()
        if pa.types.is_struct(wanted):
            inner = [(f, wanted.field(f.name).type) for f in kind.fields]
            return pa.struct([(f.name, self.asked(f.type, below, (kind, f.name))) for f, below in inner])
        if pa.types.is_list(wanted) and kind.element is not None:
            return pa.list_(self.asked(kind.element, wanted.value_type, (kind, "")))
        # Arrow refuses a column whose values are written in another way than asked for; asking for what the first
        # messages have avoids the fallback for topics whose producer writes all numbers in quotes.
        if was is str and _is_number(wanted):
            return pa.string()
        if was is int and not kind.is_string and (pa.types.is_string(wanted) or self._counts(kind, wanted)):
            return pa.int64()
        return read_as(wanted)

    def _counts(self, kind: SqlType, wanted: pa.DataType) -> bool:
        return bool(pa.types.is_temporal(wanted)) and self.scalars.unit(kind) is not None

    def converted(self, column: pa.Array, kind: SqlType, asked: pa.DataType, wanted: pa.DataType) -> pa.Array:
        if pa.types.is_null(asked):
            return pa.nulls(len(column), wanted)
        if pa.types.is_struct(wanted):
            inner = [
                self.converted(column.field(f.name), f.type, asked.field(f.name).type, wanted.field(f.name).type)
                for f in kind.fields
            ]
            # The mask is passed on: without it a NULL object would become an object of NULLs.
            return pa.StructArray.from_arrays(inner, fields=list(wanted), mask=column.is_null())
        if pa.types.is_list(wanted) and kind.element is not None:
            values = self.converted(column.values, kind.element, asked.value_type, wanted.value_type)
            return pa.ListArray.from_arrays(column.offsets, values, type=wanted, mask=column.is_null())
        if pa.types.is_string(asked) and _is_number(wanted):
            return _unquoted(column, wanted)
        if pa.types.is_int64(asked) and pa.types.is_temporal(wanted):
            return _counted(column, self.scalars.unit(kind), wanted)
        if pa.types.is_int64(asked) and pa.types.is_string(wanted):
            return column.cast(wanted)
        # To Spark, as in Java, -0 is a whole number, and 0; only -0.0 has a sign.
        if pa.types.is_float64(wanted) and pc.any(pc.equal(column.view(pa.int64()), _MINUS_ZERO)).as_py():
            raise pa.ArrowInvalid("-0, or -0.0.")
        return typed(column, wanted)


def _counted(column: pa.Array, unit: str | None, wanted: pa.DataType) -> pa.Array:
    """Days or timestamps given as numbers."""
    if unit == "day":
        return column.cast(pa.int32()).cast(wanted)
    if unit == "nano":
        raise pa.ArrowInvalid("Nanoseconds are rounded by the expressions.")
    # Checked: a number that overflows would become another, valid timestamp.
    micros = column if unit == "micro" else pc.multiply_checked(column, 1000)
    if pc.any(pc.greater(pc.abs_checked(micros), _MOST_MICROS)).as_py():
        raise pa.ArrowInvalid("A timestamp out of range.")
    return micros.cast(pa.timestamp("us")).cast(wanted)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_float64(kind) or pa.types.is_decimal(kind))


def _unquoted(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers in quotes, if they look as they would without."""
    if pc.any(pc.invert(pc.match_substring_regex(column, _WHOLE if pa.types.is_integer(kind) else _NUMBER))).as_py():
        raise pa.ArrowInvalid("A text that is more than a number.")
    return typed(column.cast(kind), kind)


def _lines(payloads: pa.Array) -> pa.Buffer | None:
    """All messages as lines, or None if one is not a plain JSON object as far as its ends tell."""
    strings = as_text(payloads)
    if strings is None or not pc.all(pc.and_(pc.starts_with(strings, "{"), pc.ends_with(strings, "}"))).as_py():
        return None
    if pc.max(pc.binary_length(strings)).as_py() > _DEEPEST:
        opened = pc.add(pc.count_substring(strings, "["), pc.count_substring(strings, "{"))
        if pc.max(opened).as_py() > _DEEPEST:
            return None
    text = joined(strings)
    return None if _has_no_number(text) else text


def _has_no_number(text: pa.Buffer) -> bool:
    """Whether there is NaN or an infinity, perhaps in a field that nobody reads: Arrow takes them for numbers, and they
    are no JSON."""
    data = np.frombuffer(text, np.uint8)
    for word in (b"NaN", b"Inf"):
        # By single letters: looking for a word takes half as long as reading the messages.
        at = np.flatnonzero(data[:-2] == word[0])
        at = at[(data[at + 1] == word[1]) & (data[at + 2] == word[2])]
        if any(_NO_NUMBER.match(text, place) for place in at[np.isin(data[at - 1], _BEFORE_VALUES)]):
            return True
    return False
