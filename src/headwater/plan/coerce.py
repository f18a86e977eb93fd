"""Which types may meet: the columns of UNION ALL, and a query's columns on their way into a table."""

from __future__ import annotations

from collections.abc import Callable

from headwater.sql import types as t
from headwater.sql.functions.type_rules import as_decimal, common_type
from headwater.sql.types import SqlType

__all__ = ["fits", "wider"]

_RANK = {name: rank for rank, name in enumerate((*t.INTEGERS, "DECIMAL", *t.FRACTIONS))}


def fits(source: SqlType, target: SqlType) -> bool:
    """May a value of `source` be stored as `target` without the user asking for it, as in Flink? Any number becomes a
    DECIMAL, rounded, and NULL if it is too large; a TIMESTAMP becomes the DATE or TIME in it."""
    if target.name == "DECIMAL" and source.is_numeric:
        return True
    if source.name == "TIMESTAMP" and target.name in {"DATE", "TIME"}:
        return True
    return _promotes(source, target) or _nested_fits(source, target, fits)


def _promotes(source: SqlType, target: SqlType) -> bool:
    """Whether `target` holds every value of `source`, but for the lengths of strings and fractions of seconds."""
    if source.name == "NULL" or _same(source, target):
        return True
    if (source.is_string and target.is_string) or (source.is_binary and target.is_binary):
        return True
    if source.is_numeric and target.is_numeric:
        return _RANK[source.name] <= _RANK[target.name] if source.name != target.name else _decimals_fit(source, target)
    if source.name in t.TIMESTAMPS and target.name in t.TIMESTAMPS:
        return True
    if source.name == "DATE" and target.name in t.TIMESTAMPS:
        return True
    if source.name == "TIME" and target.name == "TIME":
        return True
    return _nested_fits(source, target, _promotes)


def _same(a: SqlType, b: SqlType) -> bool:
    return a.as_nullable() == b.as_nullable()


def _decimals_fit(source: SqlType, target: SqlType) -> bool:
    if source.name != "DECIMAL":
        return True
    return _whole_digits(source) <= _whole_digits(target)


def _whole_digits(kind: SqlType) -> int:
    return (kind.precision or 0) - (kind.scale or 0)


def _nested_fits(source: SqlType, target: SqlType, fits: Callable[[SqlType, SqlType], bool]) -> bool:
    if source.name != target.name or not source.is_nested:
        return False
    if source.name == "ROW":
        return len(source.fields) == len(target.fields) and all(
            fits(a.type, b.type) for a, b in zip(source.fields, target.fields, strict=True)
        )
    pairs = ((source.key, target.key), (source.element, target.element))
    return all(a is None or (b is not None and fits(a, b)) for a, b in pairs)


def wider(a: SqlType, b: SqlType) -> SqlType | None:
    """The type that holds values of both, or None: that of expressions, and a date or timestamp meets another kind."""
    nullable = a.nullable or b.nullable
    found = common_type(a, b)
    if found is not None and found.name == "DECIMAL" and "NULL" not in (a.name, b.name):
        # The scale wins over whole digits beyond 38: cutting fractions would change values that do fit.
        a, b = as_decimal(a), as_decimal(b)
        scale = max(a.scale or 0, b.scale or 0)
        found = t.decimal(min(38, max(_whole_digits(a), _whole_digits(b)) + scale), scale)
    elif found is None and _promotes(a, b):
        found = b
    elif found is None and _promotes(b, a):
        found = a
    return found.as_nullable(nullable=nullable) if found is not None else None
