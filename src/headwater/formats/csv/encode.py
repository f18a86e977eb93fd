"""Rows → lines as Spark SQL, with quotes where Jackson, which Flink uses, puts them."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.formats.base import FormatField
from headwater.formats.csv.dialect import CsvDialect
from headwater.formats.strings import decimal_text, instant_text, time_text, timestamp_text
from headwater.sql.spark_text import field_of, string_literal
from headwater.sql.types import SqlType

__all__ = ["csv_encoder"]

# Jackson looks for characters that need quotes only in short strings; longer ones are quoted unseen.
_LONG = 24
_NEVER_QUOTED = frozenset({"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"})


def csv_encoder(fields: Sequence[FormatField], columns: Sequence[str], dialect: CsvDialect) -> str:
    written = [_column(column, f.type, dialect) for f, column in zip(fields, columns, strict=True)]
    return f"CAST(concat({f', {string_literal(dialect.delimiter)}, '.join(written)}) AS BINARY)"


def _column(value: str, kind: SqlType, dialect: CsvDialect) -> str:
    written = _text(value, kind, dialect)
    if kind.name not in _NEVER_QUOTED:
        written = _quoted(written, dialect)
    return f"coalesce({written}, {string_literal(dialect.null or '')})"


def _text(value: str, kind: SqlType, dialect: CsvDialect) -> str:
    match kind.name:
        case "TIME":
            return time_text(value)
        case "TIMESTAMP":
            return timestamp_text(value)
        case "TIMESTAMP_LTZ":
            return instant_text(value)
        case "DECIMAL":
            return decimal_text(value, kind, plain=dialect.plain_decimals)
        case "BINARY" | "VARBINARY" | "BYTES":
            # Depending on its settings, Spark breaks base64 after 76 characters, as MIME does; Jackson never does.
            return f"replace(base64({value}), '\\r\\n', '')"
        case "ARRAY":
            assert kind.element is not None
            items = f"transform({value}, item -> {_text('item', kind.element, dialect)})"
            return (
                f"array_join({items}, {string_literal(dialect.array_delimiter)}, {string_literal(dialect.null or '')})"
            )
        case "ROW":
            parts = (
                f"coalesce({_text(field_of(value, f.name), f.type, dialect)}, {string_literal(dialect.null or '')})"
                for f in kind.fields
            )
            joined = f"concat({f', {string_literal(dialect.array_delimiter)}, '.join(parts)})"
            return f"IF({value} IS NULL, NULL, {joined})"
    return value if kind.is_string else f"CAST({value} AS STRING)"


def _quoted(written: str, dialect: CsvDialect) -> str:
    quote, escape = dialect.quote, dialect.escape
    if quote is None:
        return written
    inside = f"replace({written}, {string_literal(quote)}, {string_literal(quote + quote)})"
    if escape is not None:
        inside = f"replace({inside}, {string_literal(escape)}, {string_literal(escape + escape)})"
    mark = string_literal(quote)
    return f"IF({_needs_quotes(written, dialect)}, concat({mark}, {inside}, {mark}), {written})"


def _needs_quotes(written: str, dialect: CsvDialect) -> str:
    """Longer than 24 UTF-16 units, or with a character up to the delimiter or the quote, a backslash or the escape."""
    # Jackson compares each character with the greater of both: everything below is taken for special.
    last = max(ord(dialect.delimiter), ord(dialect.quote or ""))
    others = "".join(f"\\x{{{ord(c):x}}}" for c in {"\\", dialect.escape or "\\"})
    unsafe = string_literal(f"[\\x{{0}}-\\x{{{last:x}}}{others}]")
    units = f"octet_length(encode({written}, 'UTF-16BE'))"
    is_long = f"octet_length({written}) > {_LONG} AND (length({written}) > {_LONG} OR {units} > {2 * _LONG})"
    return f"({is_long}) OR {written} RLIKE {unsafe}"
