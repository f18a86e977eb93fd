"""From accumulators to the values a query shows, by Flink's result types. Others: `list_results`, `variance`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.accumulate import Kept, to_show
from headwater.changelog.list_results import COLLECTIONS
from headwater.changelog.variance import SPREADS, spread_of
from headwater.errors import JobError

__all__ = ["AggregateResult"]


@dataclass(frozen=True)
class AggregateResult:
    """`function` is the aggregate's name; `value`, `count` and `squares` name accumulators. `separator` is that of
    LISTAGG."""

    name: str
    type: pa.DataType
    function: str
    value: str
    count: str = ""
    squares: tuple[str, ...] = ()
    separator: str = ""

    def compute(self, accumulators: Mapping[str, Kept], rows: int) -> pa.Array:
        value = to_show(accumulators[self.value])
        if self.function == "COUNT":
            return pc.fill_null(value, 0).cast(self.type)
        if self.function in {"MIN", "MAX", "FIRST_VALUE", "LAST_VALUE"}:
            return value.cast(self.type)
        if self.function in COLLECTIONS:
            return COLLECTIONS[self.function](value, self.type, self.separator)
        count = pc.fill_null(accumulators[self.count], 0)
        if self.function in SPREADS:
            squares = [accumulators[name] for name in self.squares]
            return self._narrow(spread_of(self.function, accumulators[self.value], squares, count, self.type))
        # 0 may be the sum of values, or of none, which is NULL in SQL: only their number tells.
        some = pc.greater(count, 0)
        if self.function == "SUM":
            return self._narrow(pc.if_else(some, value, pa.scalar(None, value.type)))
        return self._average(value, count, some)

    def _average(self, value: pa.Array, count: pa.Array, some: pa.Array) -> pa.Array:
        if pa.types.is_decimal(self.type):
            return self._decimal_average(value, count)
        divisor = pc.if_else(some, count, pa.scalar(1, pa.int64()))
        quotient = pc.divide(value, divisor.cast(value.type))
        return self._narrow_average(pc.if_else(some, quotient, pa.scalar(None, value.type)))

    def _decimal_average(self, value: pa.Array, count: pa.Array) -> pa.Array:
        unit = Decimal(1).scaleb(-self.type.scale)
        answers: list[Decimal | None] = []
        with localcontext() as context:
            context.prec = 76
            for total, n in zip(value.to_pylist(), count.to_pylist(), strict=True):
                answers.append((total / n).quantize(unit, ROUND_HALF_UP) if total is not None and n > 0 else None)
        return self._narrow(pa.array(answers, pa.decimal256(76, self.type.scale)))

    def _narrow_average(self, column: pa.Array) -> pa.Array:
        """The average of whole numbers fits where they fit. It may not while rows are missing that were retracted
        before they came; for that moment it is NULL."""
        try:
            return column.cast(self.type)
        except pa.ArrowInvalid:
            return pa.array([value.as_py() if _fits(value, self.type) else None for value in column], self.type)

    def _narrow(self, column: pa.Array) -> pa.Array:
        try:
            return column.cast(self.type)
        except pa.ArrowInvalid as error:
            raise JobError(
                f"The result of {self.function} does not fit into {self.type}.",
                detail=str(error),
                hint=f"{self.function} has the type of its argument; cast the argument to a wider type.",
            ) from error


def _fits(value: pa.Scalar, kind: pa.DataType) -> bool:
    try:
        value.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
