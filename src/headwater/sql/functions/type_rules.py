"""What types become when they meet, by Flink's rules.

Whole numbers take the wider type. With a DECIMAL they count as DECIMAL(3|5|10|19, 0). Any DECIMAL with FLOAT or DOUBLE
gives DOUBLE; a whole number with FLOAT gives FLOAT. Decimal results follow the rules of SQL Server, as Spark's do:

    a + b, a - b   scale max(s1, s2)           precision max(p1 - s1, p2 - s2) + scale + 1
    a * b          scale s1 + s2               precision p1 + p2 + 1
    a / b          scale max(6, s1 + p2 + 1)   precision p1 - s1 + s2 + scale
    a % b          scale max(s1, s2)           precision min(p1 - s1, p2 - s2) + scale

and where the precision exceeds 38, digits are taken from the scale, but at least min(scale, 6) stay.
Unlike Flink, FLOAT with DOUBLE is DOUBLE whichever comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from headwater.sql.types import (
    BIGINT,
    BYTES,
    DOUBLE,
    FLOAT,
    INT,
    INTEGERS,
    SMALLINT,
    STRING,
    TINYINT,
    Field,
    SqlType,
    decimal,
)

__all__ = [
    "MAX_PRECISION",
    "arithmetic_type",
    "as_decimal",
    "common_type",
    "common_type_of",
    "is_fraction",
    "is_interval",
    "is_temporal",
]

MAX_PRECISION = 38
_MIN_SCALE = 6
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_WHOLE = {"TINYINT": TINYINT, "SMALLINT": SMALLINT, "INT": INT, "BIGINT": BIGINT}


def is_fraction(t: SqlType) -> bool:
    return t.name in {"FLOAT", "DOUBLE"}


def is_interval(t: SqlType) -> bool:
    return t.name.startswith("INTERVAL")


def is_temporal(t: SqlType) -> bool:
    return t.name in {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"}


def as_decimal(t: SqlType) -> SqlType:
    """The DECIMAL that a whole number counts as."""
    return t if t.name == "DECIMAL" else decimal(_DIGITS[t.name], 0).as_nullable(nullable=t.nullable)


def _digits(t: SqlType) -> tuple[int, int]:
    t = as_decimal(t)
    assert t.precision is not None
    assert t.scale is not None
    return t.precision, t.scale


def _bounded(precision: int, scale: int) -> SqlType:
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    # Digits behind the point go first, down to six of them: losing those in front would be an overflow.
    whole = precision - scale
    return decimal(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, _MIN_SCALE)))


def _sum(a: tuple[int, int], b: tuple[int, int]) -> SqlType:
    scale = max(a[1], b[1])
    return _bounded(max(a[0] - a[1], b[0] - b[1]) + scale + 1, scale)


def _product(a: tuple[int, int], b: tuple[int, int]) -> SqlType:
    return _bounded(a[0] + b[0] + 1, a[1] + b[1])


def _quotient(a: tuple[int, int], b: tuple[int, int]) -> SqlType:
    scale = max(_MIN_SCALE, a[1] + b[0] + 1)
    return _bounded(a[0] - a[1] + b[1] + scale, scale)


def _remainder(a: tuple[int, int], b: tuple[int, int]) -> SqlType:
    scale = max(a[1], b[1])
    return _bounded(min(a[0] - a[1], b[0] - b[1]) + scale, scale)


_DECIMAL_RULES: dict[str, Callable[[tuple[int, int], tuple[int, int]], SqlType]] = {
    "+": _sum,
    "-": _sum,
    "*": _product,
    "/": _quotient,
    "%": _remainder,
}


def arithmetic_type(operator: str, a: SqlType, b: SqlType) -> SqlType:
    """The type of `a operator b` for two numbers. The remainder of whole numbers has the divisor's type."""
    nullable = a.nullable or b.nullable
    if is_fraction(a) or is_fraction(b):
        result = common_type(a, b)
        assert result is not None
    elif a.name == "DECIMAL" or b.name == "DECIMAL":
        result = _DECIMAL_RULES[operator](_digits(a), _digits(b))
    # A remainder is smaller than its divisor, so it fits.
    elif operator == "%":
        result = b
    else:
        result = _wider(a, b)
    return result.as_nullable(nullable=nullable)


def _wider(a: SqlType, b: SqlType) -> SqlType:
    return _WHOLE[max(a.name, b.name, key=INTEGERS.index)]


def common_type(a: SqlType, b: SqlType) -> SqlType | None:
    """The type that holds the values of both without a CAST in the query, or None."""
    nullable = a.nullable or b.nullable
    # Before anything else: NULL literals have a type of their own, which any other type absorbs.
    if a.name == "NULL" or b.name == "NULL":
        return (b if a.name == "NULL" else a).as_nullable()
    if a.as_nullable() == b.as_nullable():
        return a.as_nullable(nullable=nullable)
    found = _common_plain(a, b) or _common_nested(a, b)
    return found.as_nullable(nullable=nullable) if found is not None else None


def _common_plain(a: SqlType, b: SqlType) -> SqlType | None:
    if a.is_string and b.is_string:
        return STRING
    if a.is_binary and b.is_binary:
        return BYTES
    if a.is_numeric and b.is_numeric:
        return _common_number(a, b)
    if a.name == b.name and a.name in {"TIME", "TIMESTAMP", "TIMESTAMP_LTZ"}:
        return SqlType(a.name, precision=max(a.precision or 0, b.precision or 0))
    return None


def _common_number(a: SqlType, b: SqlType) -> SqlType:
    if is_fraction(a) or is_fraction(b):
        exact = "DECIMAL" in (a.name, b.name)
        return DOUBLE if exact or "DOUBLE" in (a.name, b.name) else FLOAT
    if "DECIMAL" not in (a.name, b.name):
        return _wider(a, b)
    (p1, s1), (p2, s2) = _digits(a), _digits(b)
    scale = max(s1, s2)
    return _bounded(max(p1 - s1, p2 - s2) + scale, scale)


def _common_nested(a: SqlType, b: SqlType) -> SqlType | None:
    if a.name != b.name or not a.is_nested:
        return None
    if a.name == "ROW":
        return _common_row(a, b)
    assert a.element is not None
    assert b.element is not None
    element = common_type(a.element, b.element)
    key = common_type(a.key, b.key) if a.key is not None and b.key is not None else None
    if element is None or (key is None) != (a.key is None):
        return None
    return SqlType(a.name, key=key, element=element)


def _common_row(a: SqlType, b: SqlType) -> SqlType | None:
    if len(a.fields) != len(b.fields):
        return None
    fields = []
    for left, right in zip(a.fields, b.fields, strict=True):
        found = common_type(left.type, right.type)
        if found is None:
            return None
        fields.append(Field(left.name, found))
    return SqlType("ROW", fields=tuple(fields))


def common_type_of(types: Sequence[SqlType]) -> SqlType | None:
    """The common type of all, or None."""
    return reduce(lambda a, b: common_type(a, b) if a is not None else None, types[1:], types[0] if types else None)
