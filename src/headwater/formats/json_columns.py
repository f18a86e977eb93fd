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
        schema = pa.schema([(f.name, read_as(t)) for f, t in zip(self.wanted, types, strict=True)])
        try:
            table = pj.read_json(
                pa.BufferReader(text),
                pj.ReadOptions(use_threads=False, block_size=text.size + 1),
                pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
            if table.num_rows != len(payloads):
                return None
            return [typed(column.combine_chunks(), t) for column, t in zip(table.columns, types, strict=True)]
        except pa.ArrowInvalid:
            return None


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
