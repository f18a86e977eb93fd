"""VAR_POP, VAR_SAMP, STDDEV_POP and STDDEV_SAMP from exact sums: nothing is lost by subtracting large numbers.

The sum of squares has two parts, because the square of a DOUBLE is in general the sum of two of them (`square_sql`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa

from headwater.changelog.exact_sums import ExactSums

__all__ = ["SPREADS", "spread_of", "square_sql"]

SPREADS = frozenset({"VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP"})

_SPLIT = "134217729D"
"""2**27 + 1: multiplying by it cuts the 53 bits of a DOUBLE into two halves, whose products are exact."""


def square_sql(value: str) -> tuple[str, str]:
    """The square of a DOUBLE, rounded, and what rounding has lost. Where the latter is out of range it is 0."""
    high = f"({_SPLIT} * {value} - ({_SPLIT} * {value} - {value}))"
    low = f"({value} - {high})"
    square = f"({value} * {value})"
    rest = f"((({high} * {high} - {square}) + 2D * {high} * {low}) + {low} * {low})"
    return square, f"CASE WHEN abs({value}) BETWEEN 1E-140D AND 1E140D THEN {rest} ELSE 0D END"


def spread_of(
    function: str, sums: ExactSums, squares: Sequence[ExactSums], counts: pa.Array, kind: pa.DataType
) -> pa.Array:
    """NULL without values, and for a sample of one. Values that are not finite make NaN."""
    parts = zip(counts.to_pylist(), sums.exact(), *(part.exact() for part in squares), strict=True)
    target = pa.decimal256(76, kind.scale) if pa.types.is_decimal(kind) else kind
    if pa.types.is_integer(kind):
        target = pa.decimal256(76, 0)
    return pa.array([_spread(function, n, total, of_squares, kind) for n, total, *of_squares in parts], target)


def _spread(
    function: str, n: int, total: Fraction | None, squares: Sequence[Fraction | None], kind: pa.DataType
) -> Any:
    divisor = n - 1 if function.endswith("SAMP") else n
    if divisor <= 0:
        return None
    if total is None or None in squares:
        return math.nan
    # As fractions: the difference below cancels nearly all digits of two large numbers, and floats would have none
    # left.
    of_squares = sum((part for part in squares if part is not None), Fraction(0))
    root = function.startswith("STDDEV")
    # As Flink does: each division drops what is behind the point.
    if pa.types.is_integer(kind):
        variance = max(0, math.floor((of_squares - math.floor(total * total / n)) / divisor))
        return Decimal(math.isqrt(variance) if root else variance)
    # Below 0 only while rows are missing that were retracted before they came.
    exact = max(Fraction(0), (of_squares - total * total / n) / divisor)
    if pa.types.is_decimal(kind):
        with localcontext() as context:
            context.prec = 76
            quotient = Decimal(exact.numerator) / Decimal(exact.denominator)
            result = quotient.sqrt() if root else quotient
            return result.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP)
    try:
        return math.sqrt(exact) if root else float(exact)
    except OverflowError:
        return math.inf
