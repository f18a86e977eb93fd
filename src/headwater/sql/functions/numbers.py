"""Numbers."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.sql.functions.registry import Function, Render, fn
from headwater.sql.functions.type_rules import is_fraction
from headwater.sql.typed import Expr
from headwater.sql.types import SqlType, decimal

__all__ = ["NUMBERS"]

_NAN, _INFINITY = "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)"
_EXACT_DOUBLE = "4503599627370496D"  # from here on a DOUBLE has no fraction
_MAX_DIGITS = 18


def _same(args: Sequence[Expr]) -> SqlType:
    return args[0].type


def _digits(args: Sequence[Expr]) -> int:
    """The literal number of digits of ROUND and TRUNCATE."""
    digits = args[1].literal if len(args) == 2 else 0
    assert isinstance(digits, int)
    return digits


def _rounded_type(args: Sequence[Expr]) -> SqlType:
    t = args[0].type
    if t.name != "DECIMAL":
        return t
    assert t.precision is not None
    assert t.scale is not None
    digits = _digits(args)
    if digits >= t.scale:
        return t
    # One digit more: 9.9 becomes 10.
    whole = t.precision - t.scale + 1
    return decimal(min(38, whole + max(digits, 0)), max(digits, 0))


def _round(args: Sequence[Expr]) -> str:
    t = args[0].type
    if t.is_integer and _digits(args) >= 0:
        return args[0].sql
    return f"CAST(round({args[0].sql}, {_digits(args)}) AS {_rounded_type(args).spark()})"


def _truncate(args: Sequence[Expr]) -> str:
    """What is behind the digit is subtracted; a DOUBLE goes through DECIMAL, where that is exact."""
    t, digits, value = args[0].type, _digits(args), args[0].sql
    unit = f"1{'0' * -digits}BD" if digits <= 0 else f"0.{'0' * (digits - 1)}1BD"
    if t.is_integer:
        return value if digits >= 0 else f"CAST({value} - {value} % {unit} AS {t.spark()})"
    if is_fraction(t):
        # In binary, 0.29 has no exact remainder by 0.01; below 1e18, DECIMAL(38, 18) holds every whole part.
        exact = f"CAST({value} AS DECIMAL(38,18))"
        cut = f"CAST({exact} - {exact} % {unit} AS {t.spark()})"
        return value if digits >= _MAX_DIGITS else f"CASE WHEN abs({value}) < 1e18D THEN {cut} ELSE {value} END"
    if digits >= (t.scale or 0):
        return value
    return f"CAST({value} - {value} % {unit} AS {_rounded_type(args).spark()})"


def _to_whole(spark: str) -> Render:
    """CEIL and FLOOR keep the type; Spark's make a BIGINT of a DOUBLE."""

    def render(args: Sequence[Expr]) -> str:
        t, value = args[0].type, args[0].sql
        if t.is_integer:
            return value
        if is_fraction(t):
            # Spark's ceil and floor go by BIGINT, which larger numbers do not fit into; those have no fraction.
            whole = f"CAST({spark}({value}) AS {t.spark()})"
            return f"CASE WHEN abs({value}) < {_EXACT_DOUBLE} THEN {whole} ELSE {value} END"
        return f"CAST({spark}({value}) AS {_whole_type(args).spark()})"

    return render


def _whole_type(args: Sequence[Expr]) -> SqlType:
    t = args[0].type
    return decimal(t.precision or 10, 0) if t.name == "DECIMAL" else t


def _logarithm(spark: str) -> str:
    """Of 0 it is -Infinity and of a negative number NaN, as in Flink; Spark's is NULL."""
    value = "{0}"
    outside = f"WHEN {value} = 0D THEN -{_INFINITY} WHEN {value} < 0D THEN {_NAN}"
    return f"CASE WHEN {value} > 0D THEN {spark}({value}) {outside} END"


def _log_to_base(args: Sequence[Expr]) -> str:
    base, value = (_logarithm("ln").replace("{0}", argument.sql) for argument in args)
    return f"({value} / {base})"


def _random_integer(args: Sequence[Expr]) -> str:
    return f"CAST(floor({_random(args[:-1])} * {args[-1].sql}) AS INT)"


def _random(args: Sequence[Expr]) -> str:
    """Without a seed not by Spark's rand(), which gets one when it is planned: every batch would have the same numbers,
    because a job is planned once."""
    return f"rand({args[0].sql})" if args else "CAST(java_method('java.lang.Math', 'random') AS DOUBLE)"


_OF_DOUBLE = {
    "SQRT": ("sqrt({0})", "The square root"),
    "CBRT": ("cbrt({0})", "The cube root"),
    "EXP": ("exp({0})", "The number e to that power"),
    "LN": (_logarithm("ln"), "The natural logarithm"),
    "LOG": (_logarithm("ln"), "The natural logarithm"),
    "LOG10": (_logarithm("log10"), "The logarithm to base 10"),
    "LOG2": (_logarithm("log2"), "The logarithm to base 2"),
    "SIN": ("sin({0})", "The sine"),
    "COS": ("cos({0})", "The cosine"),
    "TAN": ("tan({0})", "The tangent"),
    "COT": ("cot({0})", "The cotangent"),
    "ASIN": ("asin({0})", "The arc sine"),
    "ACOS": ("acos({0})", "The arc cosine"),
    "ATAN": ("atan({0})", "The arc tangent"),
    "SINH": ("sinh({0})", "The hyperbolic sine"),
    "COSH": ("cosh({0})", "The hyperbolic cosine"),
    "TANH": ("tanh({0})", "The hyperbolic tangent"),
    "DEGREES": ("degrees({0})", "Radians as degrees"),
    "RADIANS": ("radians({0})", "Degrees as radians"),
}


def _of_double() -> tuple[Function, ...]:
    return tuple(fn(f"{name}(DOUBLE) -> DOUBLE", sql, meaning) for name, (sql, meaning) in _OF_DOUBLE.items())


NUMBERS = (
    *_of_double(),
    fn("LOG(DOUBLE, DOUBLE) -> DOUBLE", _log_to_base, "The logarithm of the second number to the base of the first"),
    fn("POWER(DOUBLE, DOUBLE) -> DOUBLE", "power({0}, {1})", "The first number to the power of the second"),
    fn("ATAN2(DOUBLE, DOUBLE) -> DOUBLE", "atan2({0}, {1})", "The angle of the point (y, x)"),
    fn("ABS(NUMERIC) -> NUMERIC", "abs({0})", "The number without its sign", result=_same),
    fn(
        "SIGN(NUMERIC) -> NUMERIC",
        lambda a: f"CAST(sign({a[0].sql}) AS {a[0].type.spark()})",
        "-1, 0 or 1",
        result=_same,
    ),
    fn("CEIL(NUMERIC) -> NUMERIC", _to_whole("ceil"), "The next whole number up", result=_whole_type),
    fn("FLOOR(NUMERIC) -> NUMERIC", _to_whole("floor"), "The next whole number down", result=_whole_type),
    fn(
        "ROUND(NUMERIC [, INT']) -> NUMERIC",
        _round,
        "Rounded to digits behind the point (negative: before it)",
        result=_rounded_type,
    ),
    fn("TRUNCATE(NUMERIC [, INT']) -> NUMERIC", _truncate, "Cut off behind that digit", result=_rounded_type),
    fn("PI() -> DOUBLE!", "pi()", "The number π"),
    fn("E() -> DOUBLE!", "e()", "Euler's number"),
    fn(
        "RAND([INT']) -> DOUBLE!",
        _random,
        "A random number from 0 up to 1, from a seed if given",
        deterministic=False,
    ),
    fn("RAND_INTEGER(INT) -> INT", _random_integer, "A random whole number from 0 up to below n", deterministic=False),
    fn("RAND_INTEGER(INT', INT) -> INT", _random_integer, "The same, from a seed", deterministic=False),
)
