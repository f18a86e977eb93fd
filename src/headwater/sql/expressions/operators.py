"""Arithmetic, concatenation, and moving times by intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from headwater.sql.expressions.compiler import Compiler, Rules
from headwater.sql.expressions.literals import number
from headwater.sql.functions.casts import convert
from headwater.sql.functions.spark_sql import Refused, combine, evaluated_once
from headwater.sql.functions.time_arithmetic import as_utc, at_utc, micros_of
from headwater.sql.functions.type_rules import arithmetic_type, as_decimal, is_fraction, is_interval, is_temporal
from headwater.sql.typed import Expr, MovedTime
from headwater.sql.types import DOUBLE, STRING, SqlType

__all__ = ["OPERATORS", "arithmetic"]

_SIGNS = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_INFINITY = "CAST('Infinity' AS DOUBLE)"
_DAY_MILLIS = 86_400_000


def _binary(compiler: Compiler, node: exp.Binary) -> Expr:
    left, right = compiler.compile_all([node.left, node.right])
    return arithmetic(_SIGNS[type(node)], left, right)


def arithmetic(sign: str, left: Expr, right: Expr) -> Expr:
    """`left sign right` for numbers, times and intervals."""
    if is_interval(left.type) or is_interval(right.type):
        return _with_interval(sign, left, right)
    a, b = (_typed_null(value, other) for value, other in ((left, right), (right, left)))
    if not a.type.is_numeric or not b.type.is_numeric:
        raise _not_numbers(sign, left, right)
    if sign == "%" and (is_fraction(a.type) or is_fraction(b.type)):
        raise Refused("% takes whole numbers or decimals", hint="CAST the value to a DECIMAL first.")
    result = arithmetic_type(sign, a.type, b.type)
    sql = evaluated_once([a, b], lambda parts: _numbers_sql(sign, parts, result))
    return combine([left, right], sql, result, f"({left.text} {sign} {right.text})")


def _typed_null(value: Expr, other: Expr) -> Expr:
    return convert(value, other.type.as_nullable()) if value.type.name == "NULL" else value


def _not_numbers(sign: str, left: Expr, right: Expr) -> Refused:
    kinds = f"{left.type.as_nullable()} {sign} {right.type.as_nullable()}"
    hint = ""
    if left.type.is_string or right.type.is_string:
        hint = "Join strings with ||." if sign == "+" else "CAST the string to a number."
    elif is_temporal(left.type) and is_temporal(right.type):
        hint = "TIMESTAMPDIFF(SECOND, a, b) gives the time between two values."
    elif is_temporal(left.type) and right.type.is_numeric:
        hint = "Add an interval: INTERVAL '1' DAY."
    return Refused(f"There is no {kinds}", hint=hint)


def _numbers_sql(sign: str, parts: Sequence[Expr], result: SqlType) -> str:
    a, b = parts
    if is_fraction(result):
        return _fractions_sql(sign, a, b, result)
    if result.name == "DECIMAL":
        return f"({convert(a, as_decimal(a.type)).sql} {sign} {convert(b, as_decimal(b.type)).sql})"
    if sign == "/":
        return f"CAST({a.sql} DIV {b.sql} AS {result.spark()})"
    if sign == "%":
        return f"({a.sql} % {b.sql})" if a.type.name == b.type.name else f"CAST({a.sql} % {b.sql} AS {result.spark()})"
    return f"({convert(a, result).sql} {sign} {convert(b, result).sql})"


def _fractions_sql(sign: str, a: Expr, b: Expr, result: SqlType) -> str:
    """A division by zero is infinite or NaN, as floating point has it; ANSI mode would raise."""
    if sign != "/":
        return f"({convert(a, result).sql} {sign} {convert(b, result).sql})"
    dividend, divisor = convert(a, DOUBLE).sql, convert(b, DOUBLE).sql
    if b.literal:
        quotient = f"({dividend} / {divisor})"
    else:
        zero = f"{divisor} = 0D"
        # Without dividing by zero: x * Infinity is Infinity, -Infinity, or for 0 NaN, as IEEE has it.
        quotient = f"({dividend} * if({zero}, {_INFINITY}, 1D) / if({zero}, 1D, {divisor}))"
    return quotient if result.name == "DOUBLE" else f"CAST({quotient} AS FLOAT)"


def _with_interval(sign: str, left: Expr, right: Expr) -> Expr:
    text = f"({left.text} {sign} {right.text})"
    nullable = left.type.nullable or right.type.nullable
    if is_temporal(right.type) and sign == "+":
        left, right = right, left
    if is_temporal(left.type) and is_interval(right.type) and sign in "+-":
        sql = evaluated_once([left, right], lambda parts: _moved(sign, parts[0], parts[1]))
        found = combine([left, right], sql, left.type.as_nullable(nullable=nullable), text)
        return replace(found, moved=_moved_by(sign, left, right, sql))
    if left.type.name == right.type.name and sign in "+-":
        return combine(
            [left, right], f"({left.sql} {sign} {right.sql})", left.type.as_nullable(nullable=nullable), text
        )
    if sign == "*" and (left.type.is_integer or right.type.is_integer):
        interval = left.type if is_interval(left.type) else right.type
        return combine([left, right], f"({left.sql} * {right.sql})", interval.as_nullable(nullable=nullable), text)
    raise Refused(f"There is no {left.type.as_nullable()} {sign} {right.type.as_nullable()}")


def _moved_by(sign: str, value: Expr, interval: Expr, sql: str) -> MovedTime | None:
    """None where the length of time is not known, or where months make it depend on the calendar."""
    known = value.type.name in {"TIMESTAMP", "TIMESTAMP_LTZ"} and interval.type.name == "INTERVAL DAY"
    before = value.as_moved
    if not known or before is None or not isinstance(interval.literal, int):
        return None
    return MovedTime(sql, before.column, before.micros + (interval.literal if sign == "+" else -interval.literal))


def _moved(sign: str, value: Expr, interval: Expr) -> str:
    """A time moved by an interval. An instant moves by exact time, and by months on the clock of UTC, as in Flink."""
    kind, months = value.type.name, interval.type.name == "INTERVAL YEAR"
    if kind == "TIMESTAMP":
        return f"({value.sql} {sign} {interval.sql})"
    if kind == "TIMESTAMP_LTZ":
        if months:
            return at_utc(f"({as_utc(value.sql)} {sign} {interval.sql})")
        return f"timestamp_micros(unix_micros({value.sql}) {sign} {_micros(interval)})"
    if kind == "DATE":
        if months:
            return f"({value.sql} {sign} {interval.sql})"
        return f"{'date_add' if sign == '+' else 'date_sub'}({value.sql}, extract(DAY FROM {interval.sql}))"
    if months:
        return value.sql
    return f"CAST(pmod({value.sql} {sign} {_micros(interval)} DIV 1000, {_DAY_MILLIS}) AS INT)"


def _micros(interval: Expr) -> str:
    return f"({interval.literal}L)" if isinstance(interval.literal, int) else micros_of(interval.sql)


def _negative(compiler: Compiler, node: exp.Neg) -> Expr:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return number(str(node.this.this), "-")
    value = compiler.compile(node.this)
    if not value.type.is_numeric and not is_interval(value.type):
        raise Refused(f"There is no minus of {value.type.as_nullable()}")
    return combine([value], f"(- {value.sql})", value.type, f"-{value.text}")


def _paren(compiler: Compiler, node: exp.Paren) -> Expr:
    return compiler.compile(node.this)


def _concatenate(compiler: Compiler, node: exp.DPipe) -> Expr:
    """A long chain is one level."""
    nodes = list(node.flatten())
    parts = compiler.compile_all(nodes)
    for part_node, part in zip(nodes, parts, strict=True):
        if not part.type.is_string and part.type.name != "NULL":
            hint = f"Write CAST({part.text} AS STRING)."
            raise compiler.error(part_node, f"|| joins strings, not {part.type.as_nullable()}", hint=hint)
    values = [convert(part, STRING) for part in parts]
    sql_type = STRING.as_nullable(nullable=any(value.type.nullable for value in values))
    sql = f"concat({', '.join(value.sql for value in values)})"
    return combine(parts, sql, sql_type, f"({' || '.join(part.text for part in parts)})")


OPERATORS: Rules = {
    **dict.fromkeys(_SIGNS, _binary),
    exp.Neg: _negative,
    exp.Paren: _paren,
    exp.DPipe: _concatenate,
}
