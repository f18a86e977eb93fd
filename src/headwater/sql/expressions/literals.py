"""Literals, typed as in Flink: 1 is INT, 3000000000 BIGINT, 1.50 DECIMAL(3, 2), 1e0 DOUBLE, 'a' STRING."""

from __future__ import annotations

import re
from typing import Literal

from sqlglot import exp

from headwater.sql import types as t
from headwater.sql.expressions.compiler import Compiler, Rules
from headwater.sql.flink_text import flink_string
from headwater.sql.functions.spark_sql import Refused
from headwater.sql.functions.type_rules import MAX_PRECISION
from headwater.sql.intervals import interval_amount
from headwater.sql.spark_text import string_literal
from headwater.sql.typed import Expr
from headwater.sql.types import SqlType

__all__ = ["LITERALS", "number", "typed_literal"]

_DAY, _HOUR, _MINUTE, _SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
_TIMESTAMP = re.compile(r"(\d{4}-\d{1,2}-\d{1,2} \d{1,2}:\d{1,2}:\d{1,2})(?:\.(\d{1,9}))?")
_TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?")
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")


def constant(sql: str, sql_type: SqlType, text: str, literal: str | int | None = None) -> Expr:
    return Expr(sql, sql_type.not_null(), frozenset(), text, literal=literal)


def _literal(_: Compiler, node: exp.Literal) -> Expr:
    if node.is_string:
        value = str(node.this)
        return constant(string_literal(value), t.STRING, flink_string(value), value)
    return number(str(node.this))


def number(text: str, sign: Literal["", "-"] = "") -> Expr:
    """A number as written; its sign belongs to it, so that -2147483648 is an INT."""
    if "e" in text.lower():
        if abs(float(text)) == float("inf"):
            raise Refused(f"The number {text} is out of range")
        return constant(_enclosed(f"{sign}{text}D"), t.DOUBLE, sign + text)
    digits = text.rstrip(".")
    if "." in digits:
        return _decimal(digits, sign)
    value = int(sign + digits)
    if not -(2**63) <= value < 2**63:
        raise Refused(
            f"The number {sign}{text} is out of range", hint="A BIGINT has 19 digits; write 1.0 for a DECIMAL."
        )
    if -(2**31) <= value < 2**31:
        return constant(_enclosed(str(value)), t.INT, str(value), value)
    return constant(_enclosed(f"{value}L"), t.BIGINT, str(value), value)


def _enclosed(sql: str) -> str:
    """A negative number in parentheses: behind a minus it would begin a comment."""
    return f"({sql})" if sql.startswith("-") else sql


def _decimal(text: str, sign: str) -> Expr:
    whole, _, fraction = text.partition(".")
    # Leading zeros are no digits, but 0.5 has its zero, as in Flink.
    precision = len(whole.lstrip("0") or whole[:1]) + len(fraction)
    if precision > MAX_PRECISION:
        raise Refused(f"The number {text} has more than {MAX_PRECISION} digits")
    sql_type = t.decimal(precision, len(fraction))
    return constant(f"CAST({sign}{whole or '0'}.{fraction}BD AS {sql_type.spark()})", sql_type, sign + text)


def _boolean(_: Compiler, node: exp.Boolean) -> Expr:
    word = "true" if node.this else "false"
    return constant(word, t.BOOLEAN, word.upper(), bool(node.this))


def _null(_: Compiler, __: exp.Null) -> Expr:
    return Expr("NULL", t.NULL, frozenset(), "NULL")


def _hexadecimal(_: Compiler, node: exp.HexString) -> Expr:
    return constant(f"X'{node.this}'", t.BYTES, f"X'{node.this}'")


def _interval(_: Compiler, node: exp.Interval) -> Expr:
    unit, amount = interval_amount(node)
    sign, size = ("-" if amount < 0 else ""), abs(amount)
    words = " TO ".join(part.name for part in node.args["unit"].find_all(exp.Var))
    text = f"INTERVAL '{node.this.name}' {words}"
    if unit == "months":
        sql = f"INTERVAL '{sign}{size // 12}-{size % 12}' YEAR TO MONTH"
        return constant(sql, SqlType("INTERVAL YEAR"), text, amount)
    clock = f"{size % _DAY // _HOUR:02}:{size % _HOUR // _MINUTE:02}:{size % _MINUTE // _SECOND:02}"
    fraction = f".{size % _SECOND:06}" if size % _SECOND else ""
    sql = f"INTERVAL '{sign}{size // _DAY} {clock}{fraction}' DAY TO SECOND"
    return constant(sql, SqlType("INTERVAL DAY"), text, amount)


def typed_literal(text: str, target: SqlType) -> Expr | None:
    """`DATE '…'`, `TIME '…'` and `TIMESTAMP '…'`, which are CASTs of a string; None if it is not of that form."""
    shown = f"{target.name} '{text}'"
    if target.name == "DATE" and _DATE.fullmatch(text):
        return constant(f"CAST('{text}' AS DATE)", target, shown)
    if target.name == "TIMESTAMP" and (found := _TIMESTAMP.fullmatch(text)):
        digits = (found[2] or "")[: min(target.precision or 0, 6)]
        return constant(f"TIMESTAMP_NTZ'{found[1]}{'.' + digits if digits else ''}'", target, shown)
    if target.name == "TIME" and (found := _TIME.fullmatch(text)):
        hour, minute, second = int(found[1]), int(found[2]), int(found[3])
        if hour < 24 and minute < 60 and second < 60:
            millis = int((found[4] or "")[: min(target.precision or 0, 3)].ljust(3, "0"))
            return constant(str(((hour * 60 + minute) * 60 + second) * 1000 + millis), target, shown)
    return None


LITERALS: Rules = {
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.HexString: _hexadecimal,
    exp.Interval: _interval,
}
