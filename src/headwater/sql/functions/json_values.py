"""Values as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.sql.functions.registry import fn
from headwater.sql.functions.spark_sql import Refused
from headwater.sql.spark_text import string_literal
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
    precision = _precision(value.type)
    fraction = "" if precision == 0 else ".SSS" if precision <= 3 else ".SSSSSS"
    timestamp = f"yyyy-MM-dd''T''HH:mm:ss{fraction}".replace("''", "\\'")
    options = (
        f"map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampNTZFormat', '{timestamp}', "
        f"'timestampFormat', '{timestamp}XXX')"
    )
    # to_json takes rows, maps and arrays only: a scalar is wrapped, and the wrapping {"v":…} is cut off.
    whole = f"to_json(named_struct('v', {value.sql}), {options})"
    text = f"substring({whole}, 6, char_length({whole}) - 6)"
    return f"CASE WHEN {value.sql} IS NOT NULL THEN {text} END" if value.type.nullable else text


def _refused_part(t: SqlType) -> str | None:
    if t.name in _REFUSED:
        return str(t.as_nullable())
    parts = (*(f.type for f in t.fields), *(p for p in (t.key, t.element) if p is not None))
    return next((found for part in parts if (found := _refused_part(part)) is not None), None)


def _precision(t: SqlType) -> int:
    parts = (*(f.type for f in t.fields), *(p for p in (t.key, t.element) if p is not None))
    return max((t.precision or 0 if t.name.startswith("TIMESTAMP") else 0), *map(_precision, parts), 0)


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
