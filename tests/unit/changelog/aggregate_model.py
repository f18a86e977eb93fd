"""An Aggregate over one argument with every function on it, the rows it is fed, and what it must answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from changelog_model import Reader, empty_state, small_hash, table

from headwater.changelog.accumulate import Accumulator
from headwater.changelog.aggregate import ROWS, AggregateOperator, Extreme
from headwater.changelog.kinds import HASH
from headwater.changelog.multiset import Multiset
from headwater.changelog.operator import Time
from headwater.changelog.results import AggregateResult


def is_number(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype))


def sum_type(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(dtype):
        return pa.decimal128(38, dtype.scale)
    return pa.float64() if pa.types.is_floating(dtype) else pa.int64()


def average_type(dtype: pa.DataType) -> pa.DataType:
    return pa.decimal128(38, max(6, dtype.scale)) if pa.types.is_decimal(dtype) else dtype


@dataclass
class Fed:
    """COUNT(*), COUNT, SUM, AVG, MIN, MAX, COUNT DISTINCT, SUM DISTINCT and AVG DISTINCT of one column, by group.

    Rows are (group, value); a batch is a list of (weight, row). `distinct` False leaves out all that needs a multiset,
    which insert-only input never needs otherwise.
    """

    dtype: pa.DataType
    retracting: bool = True
    distinct: bool = True
    before: bool = True
    grouped: bool = True
    spread: int = 1 << 20
    group_type: pa.DataType = field(default_factory=pa.string)
    live: list[tuple[Any, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.groups = pa.schema([("g", self.group_type)] if self.grouped else [])
        self.operator = self._operator()
        self.state = empty_state(self.operator)
        self.reader = Reader(*self.groups.names)

    def feed(self, batch: Sequence[tuple[int, tuple[Any, Any]]]) -> list[tuple[int, dict[str, Any]]]:
        for weight, row in batch:
            if weight > 0:
                self.live.append(row)
            else:
                self.live.remove(row)
        return self.feed_out_of_order(batch)

    def feed_out_of_order(self, batch: Sequence[tuple[int, tuple[Any, Any]]]) -> list[tuple[int, dict[str, Any]]]:
        """As `feed`, but rows may go before they come; `live` is for the caller to keep."""
        return self.reader.read(self.operator.step(self.state, (self._input(batch),), Time()))

    def expected(self) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        groups: dict[tuple[Any, ...], list[Any]] = {}
        for group, value in self.live:
            groups.setdefault((group,) if self.grouped else (), []).append(value)
        with localcontext() as context:
            context.prec = 76
            return {group: self._answer(values) for group, values in groups.items()}

    def _answer(self, all_values: list[Any]) -> tuple[Any, ...]:
        values = [v for v in all_values if v is not None]
        best = (min(values, default=None), max(values, default=None))
        numbers = is_number(self.dtype)
        plain = (len(all_values), len(values), *((self._sum(values), self._average(values)) if numbers else ()), *best)
        if not self.distinct:
            return plain
        unique = list(set(values))
        return (*plain, len(unique), *((self._sum(unique), self._average(unique)) if numbers else ()))

    def _sum(self, values: list[Any]) -> Any:
        if values and pa.types.is_floating(self.dtype):
            return exact_sum(values)
        return sum(values[1:], start=values[0]) if values else None

    def _average(self, values: list[Any]) -> Any:
        if not values:
            return None
        total = self._sum(values)
        if pa.types.is_decimal(self.dtype):
            unit = Decimal(1).scaleb(-average_type(self.dtype).scale)
            return (total / len(values)).quantize(unit, ROUND_HALF_UP)
        if pa.types.is_integer(self.dtype):
            return (abs(total) // len(values)) * (1 if total >= 0 else -1)
        average = total / len(values)
        return float(np.float32(average)) if self.dtype == pa.float32() else average

    def _operator(self) -> AggregateOperator:
        total, numbers = sum_type(self.dtype), is_number(self.dtype)
        multiset = Multiset("m", self.groups, pa.field("x", self.dtype), "w", "hx")
        accumulators = [Accumulator("c", pa.int64(), "sum")]
        results = [AggregateResult("n", pa.int64(), "COUNT", ROWS), AggregateResult("cnt", pa.int64(), "COUNT", "c")]
        if numbers:
            accumulators.append(Accumulator("s", total, "sum"))
            results += [AggregateResult("sum", self._sum_result(), "SUM", "s", "c")]
            results += [AggregateResult("avg", average_type(self.dtype), "AVG", "s", "c")]
        fed_by = "m" if self.retracting else ""
        accumulators += [Accumulator(f, self.dtype, f, fed_by) for f in ("min", "max")]
        results += [AggregateResult(f"r{f}", self.dtype, f.upper(), f) for f in ("min", "max")]
        if self.distinct:
            accumulators.append(Accumulator("d", pa.int64(), "sum", "m"))
            results.append(AggregateResult("dist", pa.int64(), "COUNT", "d"))
        if self.distinct and numbers:
            accumulators.append(Accumulator("ds", total, "sum", "m", of_values=True))
            results.append(AggregateResult("dsum", self._sum_result(), "SUM", "ds", "d"))
            results.append(AggregateResult("davg", average_type(self.dtype), "AVG", "ds", "d"))
        multisets = (multiset,) if self.retracting or self.distinct else ()
        extremes = tuple(Extreme(f, "m", f) for f in ("min", "max")) if self.retracting else ()
        return AggregateOperator(self.groups, tuple(accumulators), tuple(results), self.before, multisets, extremes)

    def _sum_result(self) -> pa.DataType:
        return pa.int64() if pa.types.is_integer(self.dtype) else sum_type(self.dtype)

    def _input(self, batch: Sequence[tuple[int, tuple[Any, Any]]]) -> pa.Table:
        columns: list[tuple[str, pa.DataType]] = [(HASH, pa.int64())]
        columns += [("g", self.group_type)] if self.grouped else []
        columns += [(ROWS, pa.int64()), ("c", pa.int64())]
        columns += [("s", sum_type(self.dtype))] if is_number(self.dtype) else []
        columns += [("s_weight", pa.int64())] if pa.types.is_floating(self.dtype) else []
        columns += [("x", self.dtype), ("w", pa.int64()), ("hx", pa.int64())]
        rows = table(pa.schema(columns), [self._contribution(weight, row) for weight, row in batch])
        if self.retracting:
            return rows
        return rows.append_column("min", rows.column("x")).append_column("max", rows.column("x"))

    def _contribution(self, weight: int, row: tuple[Any, Any]) -> tuple[Any, ...]:
        group, value = row
        prefix = (small_hash(group, self.spread) if self.grouped else 0) << 32
        present = 0 if value is None else weight
        amount: tuple[Any, ...] = ()
        if pa.types.is_floating(self.dtype):
            amount = (value, weight)
        elif is_number(self.dtype):
            amount = (None if value is None else _times(value, weight),)
        low = small_hash(value, self.spread) & 0xFFFFFFFF
        head = (prefix, group) if self.grouped else (prefix,)
        return (*head, weight, present, *amount, value, present, prefix | low)


def exact_sum(values: Sequence[float]) -> float:
    """Rounded once; as IEEE has it for infinities and NaN."""
    special = [v for v in values if not math.isfinite(v)]
    if special:
        return sum(special)
    total = sum(map(Fraction, values), start=Fraction(0))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _times(value: Any, weight: int) -> Any:
    """Exact for decimals of any length."""
    if isinstance(value, Decimal):
        return value if weight > 0 else value.copy_negate()
    return value * weight
