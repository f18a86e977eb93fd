"""Functions that case files of this directory create."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import headwater


def initials(name: str | None) -> str | None:
    return None if name is None else "".join(word[0].upper() for word in name.split())


@headwater.udf(result_type="DECIMAL(10, 2)", input_types=["DECIMAL(10, 2)", "INT"])
def with_tax(price: Decimal, percent: int) -> Decimal:
    return price * (100 + percent) / 100


@headwater.udf(result_type="BIGINT", func_type="arrow")
def twice(values: pa.Array) -> pa.Array:
    return pc.multiply(values, 2)


@headwater.udf(result_type="BIGINT", func_type="pandas")
def squared(values: Any) -> Any:
    return values * values


@headwater.udf(result_type="ROW<day DATE, at TIME(3), tags ARRAY<STRING>, counts MAP<STRING, INT>>")
def told(moment: dt.datetime, tags: list[str]) -> dict[str, Any]:
    return {"day": moment.date(), "at": moment.time(), "tags": sorted(tags), "counts": {tag: len(tag) for tag in tags}}


@headwater.udtf(result_type="ROW<word STRING, length INT>")
def words(text: str | None) -> Iterator[tuple[str, int]]:
    for word in (text or "").split():
        yield word, len(word)


@headwater.udaf(result_type="DOUBLE")
class WeightedAverage:
    """Of prices, by how many were sold."""

    def create_accumulator(self) -> list[float]:
        return [0.0, 0.0]

    def accumulate(self, accumulator: list[float], price: float | None, sold: int | None) -> None:
        if price is not None and sold is not None:
            accumulator[0] += price * sold
            accumulator[1] += sold

    def get_value(self, accumulator: list[float]) -> float | None:
        return accumulator[0] / accumulator[1] if accumulator[1] else None


@headwater.udaf(result_type="STRING", func_type="pandas")
def shortest(texts: Any) -> str | None:
    found = [text for text in texts if text is not None]
    return min(found, key=lambda text: (len(text), text)) if found else None


@headwater.udaf
class Rows:
    def create_accumulator(self) -> list[int]:
        return [0]

    def accumulate(self, accumulator: list[int]) -> None:
        accumulator[0] += 1

    def get_value(self, accumulator: list[int]) -> int:
        return accumulator[0]


class _Tally:
    """How often each value is there, as text: with all that an accumulator needs."""

    def create_accumulator(self) -> dict[int, int]:
        return {}

    def accumulate(self, accumulator: dict[int, int], value: int | None) -> None:
        if value is not None:
            accumulator[value] = accumulator.get(value, 0) + 1

    def retract(self, accumulator: dict[int, int], value: int | None) -> None:
        if value is not None:
            accumulator[value] -= 1
            if not accumulator[value]:
                del accumulator[value]

    def merge(self, accumulator: dict[int, int], others: list[dict[int, int]]) -> None:
        for other in others:
            for value, count in other.items():
                accumulator[value] = accumulator.get(value, 0) + count

    def get_value(self, accumulator: dict[int, int]) -> str:
        return " ".join(f"{value}:{count}" for value, count in sorted(accumulator.items()))


tally = headwater.udaf(_Tally)


class _Mean:
    """As PyFlink's users write it."""

    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def accumulate(self, accumulator: list[int], *row: Any) -> None:
        if row[0] is not None:
            accumulator[0] += row[0]
            accumulator[1] += 1

    def retract(self, accumulator: list[int], *row: Any) -> None:
        if row[0] is not None:
            accumulator[0] -= row[0]
            accumulator[1] -= 1

    def get_value(self, accumulator: list[int]) -> float:
        return accumulator[0] / accumulator[1] if accumulator[1] else -1.0


class UserDefinedAggregateFunctionWrapper:
    """What PyFlink's @udaf makes, as far as it is looked at."""

    _func, _input_types, _result_type = _Mean(), ["BIGINT"], "DOUBLE"
    _deterministic, _func_type = True, "general"


mean = UserDefinedAggregateFunctionWrapper()
