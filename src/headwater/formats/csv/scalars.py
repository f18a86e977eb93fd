"""A token of a line → the value of a column, as Spark SQL."""

from __future__ import annotations

import re

from headwater.formats.base import FormatField
from headwater.formats.csv.dialect import CsvDialect
from headwater.formats.strings import time_millis
from headwater.sql.spark_text import quote_name, string_literal
from headwater.sql.types import SqlType

__all__ = ["converted_token", "misread_token"]


def converted_token(token: str, kind: SqlType, dialect: CsvDialect) -> str:
    """The value; NULL where the token is NULL or cannot be converted."""
    if kind.name == "ARRAY":
        assert kind.element is not None
        item = _scalar(_element("item", dialect), kind.element)
        return f"IF({token} = '', CAST(array() AS {kind.spark()}), transform({_split(token, dialect)}, item -> {item}))"
    if kind.name == "ROW":
        parts = (
            f"{_scalar(_part(token, i, dialect), f.type)} AS {quote_name(f.name)}" for i, f in enumerate(kind.fields)
        )
        return f"IF({token} IS NULL OR {token} = '', NULL, struct({', '.join(parts)}))"
    return _scalar(token, kind)


def misread_token(token: str, wanted: FormatField, dialect: CsvDialect) -> str:
    """The branch of a CASE for a token that cannot be converted: the sentence about it. '' if that cannot be."""
    condition = _broken_token(token, wanted.type, dialect)
    if not condition:
        return ""
    start, end = f"Fail to deserialize at field: {wanted.name}. '", f"' is not {wanted.type.as_nullable()}."
    return f"WHEN {condition} THEN concat({string_literal(start)}, left({token}, 200), {string_literal(end)})"


def _broken_token(token: str, kind: SqlType, dialect: CsvDialect) -> str:
    """Whether there is text that cannot be converted. '' if that cannot be."""
    if kind.name == "ARRAY":
        assert kind.element is not None
        inner = _scalar_broken(_element("item", dialect), kind.element)
        return f"{token} <> '' AND exists({_split(token, dialect)}, item -> {inner})" if inner else ""
    if kind.name == "ROW":
        parts = [_scalar_broken(_part(token, i, dialect), f.type) for i, f in enumerate(kind.fields)]
        short = f"size({_split(token, dialect)}) < {len(kind.fields)}"
        return f"{token} <> '' AND ({' OR '.join(f'({p})' for p in [short, *parts] if p)})"
    return _scalar_broken(token, kind)


def _split(token: str, dialect: CsvDialect) -> str:
    return f"split({token}, {string_literal(re.escape(dialect.array_delimiter))}, -1)"


def _part(token: str, position: int, dialect: CsvDialect) -> str:
    return _element(f"try_element_at({_split(token, dialect)}, {position + 1})", dialect)


def _element(item: str, dialect: CsvDialect) -> str:
    return item if dialect.null is None else f"nullif({item}, {string_literal(dialect.null)})"


def _scalar(token: str, kind: SqlType) -> str:
    match kind.name:
        case "BOOLEAN":
            return f"lower(trim({token})) = 'true'"
        case "FLOAT" | "DOUBLE":
            return f"TRY_CAST(trim({token}) AS {kind.name})"
        case "DATE":
            return f"IF({token} RLIKE '^[0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}}$', TRY_CAST({token} AS DATE), NULL)"
        case "TIME":
            return time_millis(token, seconds_optional=True, precision=kind.precision or 0)
        case "TIMESTAMP":
            shape = "'^[0-9]+-[0-9]+-[0-9]+([ T][0-9:.]*)?$'"
            return f"IF(trim({token}) RLIKE {shape}, TRY_CAST({token} AS TIMESTAMP_NTZ), NULL)"
        case "TIMESTAMP_LTZ":
            return f"IF(endswith(trim({token}), 'Z'), TRY_CAST({token} AS TIMESTAMP), NULL)"
        case "BINARY" | "VARBINARY" | "BYTES":
            return f"try_to_binary({token}, 'base64')"
    return token if kind.is_string else f"TRY_CAST({token} AS {kind.spark()})"


def _scalar_broken(token: str, kind: SqlType) -> str:
    if kind.is_string or kind.name == "BOOLEAN":
        return ""
    if kind.name == "DECIMAL":  # a number that does not fit is NULL and no error
        return f"{token} IS NOT NULL AND TRY_CAST({token} AS DOUBLE) IS NULL"
    return f"{token} IS NOT NULL AND {_scalar(token, kind)} IS NULL"
