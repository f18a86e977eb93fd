"""Values as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.sql.functions.registry import fn
from headwater.sql.functions.spark_sql import Refused, lambda_name
from headwater.sql.functions.time_arithmetic import as_utc
from headwater.sql.spark_text import quote_name, string_literal
from headwater.sql.typed import Expr
from headwater.sql.types import SqlType

__all__ = ["JSON_VALUES", "json_value"]

_REFUSED = frozenset({"TIME", "DATE", "INTERVAL DAY", "INTERVAL YEAR", "MULTISET"})


def json_value(value: Expr, index: int = 0) -> str:
    """The value as JSON, NULL for NULL."""
    if value.type.name == "NULL":
        return "CAST(NULL AS STRING)"
    refused = _refused_part(value.type)
    if refused is not None:
        raise Refused(f"A value of type {refused} has no JSON form", hint="CAST it to STRING.", argument=index)
    # to_json takes rows, maps and arrays only: a scalar is wrapped, and the wrapping {"v":…} is cut off.
    whole = f"to_json(named_struct('v', {_with_times(value.sql, value.type)}), map('ignoreNullFields', 'false'))"
    text = f"substring({whole}, 6, char_length({whole}) - 6)"
    return f"CASE WHEN {value.sql} IS NOT NULL THEN {text} END" if value.type.nullable else text


def _refused_part(t: SqlType) -> str | None:
    if t.name in _REFUSED:
        return str(t.as_nullable())
    parts = (*(f.type for f in t.fields), *(p for p in (t.key, t.element) if p is not None))
    return next((found for part in parts if (found := _refused_part(part)) is not None), None)


def _with_times(sql: str, kind: SqlType, depth: int = 0) -> str:
    """The value with strings in the place of timestamps. Spark writes these with a fixed number of digits; Flink leaves
    out zeros at the end, as Spark does where it makes a string of them."""
    if not _has_time(kind):
        return sql
    if kind.name == "TIMESTAMP":
        return f"replace(CAST({sql} AS STRING), ' ', 'T')"
    if kind.name == "TIMESTAMP_LTZ":
        return f"concat(replace(CAST({as_utc(sql)} AS STRING), ' ', 'T'), 'Z')"
    if kind.name == "ROW":
        fields = [
            f"{string_literal(f.name)}, {_with_times(f'({sql}).{quote_name(f.name)}', f.type, depth)}"
            for f in kind.fields
        ]
        return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({', '.join(fields)}) END"
    assert kind.element is not None
    element = lambda_name(depth)
    if kind.key is None:
        return f"transform({sql}, {element} -> {_with_times(element, kind.element, depth + 1)})"
    key = _with_times(f"{element}.key", kind.key, depth + 1)
    value = _with_times(f"{element}.value", kind.element, depth + 1)
    return f"map_from_entries(transform(map_entries({sql}), {element} -> struct({key}, {value})))"


def _has_time(kind: SqlType) -> bool:
    parts = (*(f.type for f in kind.fields), *(p for p in (kind.key, kind.element) if p is not None))
    return kind.name in {"TIMESTAMP", "TIMESTAMP_LTZ"} or any(map(_has_time, parts))


def _quoted(args: Sequence[Expr]) -> str:
    """Flink escapes the slash too."""
    escaped = string_literal("\\/")
    return f"replace({json_value(args[0])}, '/', {escaped})"


def _unquoted(args: Sequence[Expr]) -> str:
    """What is not a JSON string stays as it is."""
    text = args[0].sql
    read = f"get_json_object({text}, '$')"
    return f"CASE WHEN {text} RLIKE '^\".*\"$' AND {read} IS NOT NULL THEN {read} ELSE {text} END"


JSON_VALUES = (
    fn(
        "JSON_STRING(ANY) -> STRING",
        lambda a: json_value(a[0]),
        "The value as JSON; a row is an object, an array an array",
    ),
    fn("JSON_QUOTE(STRING) -> STRING", _quoted, "The string as a JSON string, with quotes around it"),
    fn("JSON_UNQUOTE(STRING) -> STRING", _unquoted, "The string that a JSON string stands for"),
)
