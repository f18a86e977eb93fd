"""Which values may be compared, and as what.

Numbers meet in the wider type (FLOAT, DOUBLE and a mix of them with exact numbers: DOUBLE); a string meets a DATE, a
TIME or a TIMESTAMP as that type; a TIMESTAMP meets a TIMESTAMP_LTZ as an instant in the session's time zone. A string
and a number meet only in <, <=, > and >=, as a number that holds a BIGINT: Flink refuses = and <> between them.

NaN is neither equal to any number nor less or greater, as in Flink, but for a DECIMAL, which is less. (As a group, as a
key of a join and in an order it equals NaN and comes after all numbers.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from headwater.sql.functions.casts import convert
from headwater.sql.functions.spark_sql import Refused, combine, evaluated_once
from headwater.sql.functions.type_rules import common_type, is_fraction, is_temporal
from headwater.sql.typed import Expr, Predicate
from headwater.sql.types import BIGINT, BOOLEAN, DOUBLE, SqlType, timestamp_ltz

__all__ = ["compare", "meeting_type"]

_ORDERED = frozenset({"<", "<=", ">", ">="})
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FINEST = {"TIME": 3, "TIMESTAMP": 6, "TIMESTAMP_LTZ": 6}


def compare(sign: str, left: Expr, right: Expr) -> Expr:
    """`left sign right` for =, <>, <, <=, >, >= and Spark's <=>, which is never NULL."""
    kind = meeting_type([left, right], sign)
    a, b = convert(left, kind), convert(right, kind)
    nullable = sign != "<=>" and (left.type.nullable or right.type.nullable)
    if sign != "<=>" and is_fraction(kind) and "DECIMAL" not in (left.type.name, right.type.name):
        sql = evaluated_once([a, b], lambda parts: _fractions_sql(sign, *parts))
    else:
        sql = f"({_comparable(a)} {sign} {_comparable(b)})"
    shown = "IS NOT DISTINCT FROM" if sign == "<=>" else sign
    compared = combine(
        [left, right], sql, BOOLEAN.as_nullable(nullable=nullable), f"({left.text} {shown} {right.text})"
    )
    converted = a.sql != left.sql or b.sql != right.sql
    return replace(compared, predicate=_predicate(sql, sign, left, right, converted=converted))


def _predicate(sql: str, sign: str, left: Expr, right: Expr, *, converted: bool) -> Predicate | None:
    """Whole numbers compare alike in any width; strings byte by byte, if nothing was done to them."""
    # 5 < x is x > 5: as data, a comparison has its column on the left.
    if left.column is None:
        left, right, sign = right, left, _TURNED.get(sign, sign)
    if left.column is None or right.literal is None or sign not in _TURNED:
        return None
    integers = left.type.is_integer and right.type.is_integer
    strings = left.type.is_string and right.type.is_string and not converted
    return Predicate(sql, sign, left.column, right.literal) if integers or strings else None


def _fractions_sql(sign: str, a: Expr, b: Expr) -> str:
    """To Spark, NaN equals NaN and is greater than all numbers."""
    plain = f"{a.sql} {sign} {b.sql}"
    if sign == "<>":
        return f"({plain} OR (isnan({a.sql}) AND isnan({b.sql})))"
    greater, other = (b.sql, a.sql) if sign in ("<", "<=") else (a.sql, b.sql)
    # Compared with NULL it is unknown.
    return f"({plain} AND NOT (isnan({greater}) AND {other} IS NOT NULL))"


def _comparable(value: Expr) -> str:
    """Maps are equal if their entries are, in any order; Spark has no = for them."""
    return f"array_sort(map_entries({value.sql}))" if value.type.name == "MAP" else value.sql


def meeting_type(values: Sequence[Expr], sign: str = "=") -> SqlType:
    """The type as which all these values are compared."""
    kinds = [value.type for value in values]
    meet = _meet_in_order if sign in _ORDERED else _meet
    found = reduce(lambda a, b: None if a is None else meet(a, b), kinds[1:], _first(kinds[0]))
    if found is None:
        shown = " with ".join(dict.fromkeys(str(kind.as_nullable()) for kind in kinds))
        strings = any(kind.is_string for kind in kinds) and any(kind.is_numeric for kind in kinds)
        hint = "CAST the string to a number, or write the number without quotes." if strings else "CAST one of them."
        raise Refused(f"{shown} cannot be compared", hint=hint)
    if sign in _ORDERED and _has(found, {"MAP", "MULTISET", "ROW"}):
        raise Refused(f"Values of type {found.as_nullable()} have no order", hint="Compare their parts.")
    nested_map = (found.name != "MAP" and _has(found, {"MAP"})) or found.name == "MULTISET"
    if nested_map or (found.element is not None and found.name == "MAP" and _has(found.element, {"MAP"})):
        raise Refused(f"Values of type {found.as_nullable()} cannot be compared", hint="Compare their parts.")
    return found


def _first(kind: SqlType) -> SqlType | None:
    return kind


def _meet_in_order(a: SqlType, b: SqlType) -> SqlType | None:
    for number, other in ((a, b), (b, a)):
        if number.is_numeric and other.is_string:
            return common_type(number, BIGINT)
    return _meet(a, b)


def _meet(a: SqlType, b: SqlType) -> SqlType | None:
    if a.is_numeric and b.is_numeric and (is_fraction(a) or is_fraction(b)) and a.name != b.name:
        return DOUBLE
    for value, other in ((a, b), (b, a)):
        if is_temporal(value) and other.is_string:
            return SqlType(value.name, precision=_FINEST.get(value.name))
    if {a.name, b.name} == {"TIMESTAMP", "TIMESTAMP_LTZ"}:
        # With all digits that Spark has: the coarser precision of the two would make different instants equal.
        return timestamp_ltz(6)
    return common_type(a, b)


def _has(kind: SqlType, names: set[str]) -> bool:
    parts = (*(field.type for field in kind.fields), *(part for part in (kind.key, kind.element) if part is not None))
    return kind.name in names or any(_has(part, names) for part in parts)
