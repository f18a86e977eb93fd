"""JSON messages → Arrow columns, thousands at a time.

Arrow's JSON reader is several times faster than Spark's parser, and stricter: what it accepts with a given schema means
the same in both. So it gets the first try, and whatever it refuses (one message is enough) is left to the expressions
of `json_decode`, which know every leniency and every error.

Arrow sees the messages as lines of one text. That each line is one message, and no message is torn apart or glued
to its neighbour, follows from four facts that are checked: a message starts with `{`, ends with `}`, is valid UTF-8,
and there are as many objects as messages. Nothing valid has `}` and `{` with only a line break between them inside an
object, and a line break inside a string is an error; so no object spans two messages.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from headwater.formats.base import ColumnReader, FormatField
from headwater.formats.columns import as_text, joined, read_as, typed
from headwater.formats.json_leaves import FAST, Leaves, misread, rows_opened, shown
from headwater.formats.sqltext import name
from headwater.sql.types import SqlType

__all__ = ["json_reader"]

# Read by Arrow as by Spark. Missing on purpose: FLOAT is rounded in two steps, BYTES are other texts.
_TEXTS = {"CHAR", "VARCHAR", "STRING", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"}
_SCALARS = _TEXTS | {"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE", "DECIMAL"}
_CHECKED = {"DOUBLE", "DECIMAL", "TIMESTAMP"}  # by `typed`, which does not look into rows and arrays
_DEEPEST = 1000  # Spark's parser goes no deeper, and Arrow's would go on until its stack ends


def json_reader(wanted: Sequence[FormatField], leaves: Leaves, *, may_fail: bool) -> ColumnReader | None:
    """`may_fail`: a field that cannot be converted is an error, not NULL."""
    if leaves is not FAST or not all(_readable(f.type) for f in wanted):
        return None
    return _JsonReader(tuple(wanted), may_fail)


def _readable(kind: SqlType, nested: bool = False) -> bool:
    if kind.name == "ROW":
        return bool(kind.fields) and all(_readable(f.type, True) for f in kind.fields)
    if kind.name == "ARRAY":
        return kind.element is not None and _readable(kind.element, True)
    return kind.name in _SCALARS and not (nested and kind.name in _CHECKED)


@dataclass(frozen=True)
class _JsonReader:
    wanted: tuple[FormatField, ...]
    may_fail: bool

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(FAST.schema(f.type) for f in self.wanted)

    def columns(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(FAST.convert(name(n), f.type) for n, f in zip(names, self.wanted, strict=True))

    def error(self, names: Sequence[str]) -> str | None:
        leaves = [leaf for n, f in zip(names, self.wanted, strict=True) for leaf in rows_opened(f, name(n))]
        broken = [(FAST.broken(raw, f.type), misread(f, shown(raw, f.type))) for f, raw in leaves]
        cases = [f"WHEN {condition} THEN {sentence}" for condition, sentence in broken if condition]
        return f"CASE {' '.join(cases)} END" if cases and self.may_fail else None

    def read(self, payloads: pa.Array, types: Sequence[pa.DataType]) -> list[pa.Array] | None:
        text = _lines(payloads)
        if text is None:
            return None
        asked = [read_as(t) for t in types]
        quoted = self._in_quotes(payloads[0].as_py(), types)
        if any(quoted):
            asked = [pa.string() if q else t for q, t in zip(quoted, asked, strict=True)]
        schema = pa.schema([(f.name, t) for f, t in zip(self.wanted, asked, strict=True)])
        try:
            table = pj.read_json(
                pa.BufferReader(text),
                pj.ReadOptions(use_threads=False, block_size=text.size + 1),
                pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
            if table.num_rows != len(payloads):
                return None
            columns = [column.combine_chunks() for column in table.columns]
            found = zip(columns, types, quoted, strict=True)
            return [_unquoted(c, t) if q else typed(c, t) for c, t, q in found]
        except pa.ArrowInvalid:
            return None

    def _in_quotes(self, message: bytes, types: Sequence[pa.DataType]) -> list[bool]:
        """Which numbers stand in quotes. Many writers do that, and then in all their messages as in this one."""
        try:
            row = json.loads(message)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            return [False] * len(types)
        return [_is_number(t) and isinstance(row.get(f.name), str) for f, t in zip(self.wanted, types, strict=True)]


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_float64(kind) or pa.types.is_decimal(kind))


def _unquoted(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers that stood in quotes, if they look as they would without."""
    if pc.any(pc.invert(pc.match_substring_regex(column, _WHOLE if pa.types.is_integer(kind) else _NUMBER))).as_py():
        raise pa.ArrowInvalid("A text that is more than a number.")
    return typed(column.cast(kind), kind)


_WHOLE = r"^-?(0|[1-9][0-9]{0,17})$"
_NUMBER = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?$"


def _lines(payloads: pa.Array) -> pa.Buffer | None:
    """All messages as lines, or None if one is not a plain JSON object as far as its ends tell."""
    texts = as_text(payloads)
    if texts is None or not pc.all(pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))).as_py():
        return None
    if pc.max(pc.binary_length(texts)).as_py() > _DEEPEST:
        opened = pc.add(pc.count_substring(texts, "["), pc.count_substring(texts, "{"))
        if pc.max(opened).as_py() > _DEEPEST:
            return None
    return joined(texts)
