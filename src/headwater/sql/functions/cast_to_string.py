"""Values as strings, the way Flink writes them."""

from __future__ import annotations

from headwater.sql.functions.spark_sql import lambda_name
from headwater.sql.functions.time_arithmetic import from_millis
from headwater.sql.spark_text import quote_name
from headwater.sql.types import SqlType

__all__ = ["string_of", "timestamp_string"]


def string_of(sql: str, source: SqlType, depth: int = 0) -> str:
    """A STRING expression; NULL for NULL."""
    if source.name == "BOOLEAN":
        return f"upper(CAST({sql} AS STRING))"
    if source.is_binary:
        return f"make_valid_utf8(CAST({sql} AS STRING))"
    if source.name in {"TIMESTAMP", "TIMESTAMP_LTZ"}:
        return timestamp_string(sql, source.precision or 0)
    if source.name == "TIME":
        return f"substring({timestamp_string(from_millis(sql), source.precision or 0)}, 12)"
    if source.is_nested:
        return _nested_string(sql, source, depth)
    return sql if source.is_string else f"CAST({sql} AS STRING)"


def timestamp_string(sql: str, precision: int) -> str:
    """`2024-02-29 12:34:56.789` with exactly `precision` digits; Spark would leave out zeros at the end."""
    whole = f"left(CAST({sql} AS STRING), 19)"
    if precision == 0:
        return whole
    return f"concat({whole}, '.', rpad(substring(CAST({sql} AS STRING), 21), {precision}, '0'))"


def _nested_string(sql: str, source: SqlType, depth: int) -> str:
    if source.name == "ROW":
        fields = (_or_null(f"({sql}).{quote_name(f.name)}", f.type, depth) for f in source.fields)
        return f"CASE WHEN {sql} IS NOT NULL THEN concat('(', concat_ws(', ', {', '.join(fields)}), ')') END"
    assert source.element is not None
    element = lambda_name(depth)
    if source.name == "ARRAY":
        items = f"transform({sql}, {element} -> {_or_null(element, source.element, depth + 1)})"
        return f"concat('[', array_join({items}, ', '), ']')"
    key = source.key if source.key is not None else source.element
    value = source.element if source.key is not None else SqlType("INT")
    pair = f"{_or_null(f'{element}.key', key, depth + 1)}, '=', {_or_null(f'{element}.value', value, depth + 1)}"
    return f"concat('{{', array_join(transform(map_entries({sql}), {element} -> concat({pair})), ', '), '}}')"


def _or_null(sql: str, source: SqlType, depth: int) -> str:
    return f"coalesce({string_of(sql, source, depth)}, 'NULL')"
