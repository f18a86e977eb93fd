"""What SQL learns about a Python function: from annotations, from a decorator, from PyFlink's objects."""

from __future__ import annotations

import datetime as dt
import decimal
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import pytest

import headwater
from headwater.errors import ValidationError
from headwater.python_functions.declare import declared, udaf, udf, udtf


class Point(NamedTuple):
    x: float
    y: float


@dataclass
class Order:
    id: int
    note: str | None


class Named(TypedDict):
    name: str


@pytest.mark.parametrize(
    ("annotation", "sql"),
    [
        (bool, "BOOLEAN"),
        (int, "BIGINT"),
        (float, "DOUBLE"),
        (str, "STRING"),
        (bytes, "BYTES"),
        (dt.date, "DATE"),
        (dt.time, "TIME(0)"),
        (dt.datetime, "TIMESTAMP(6)"),
        (decimal.Decimal, "DECIMAL(38, 18)"),
        (int | None, "BIGINT"),
        (list[int], "ARRAY<BIGINT>"),
        (dict[str, list[float]], "MAP<STRING, ARRAY<DOUBLE>>"),
        (tuple[int, str], "ROW<`f0` BIGINT, `f1` STRING>"),
        (Point, "ROW<`x` DOUBLE, `y` DOUBLE>"),
        (Order, "ROW<`id` BIGINT, `note` STRING>"),
        (Named, "ROW<`name` STRING>"),
    ],
)
def test_types_of_annotations(annotation: Any, sql: str) -> None:
    def function(value):  # type: ignore[no-untyped-def]
        return value

    function.__annotations__["return"] = annotation
    assert str(declared(function).result) == sql


def test_a_declared_type_goes_before_an_annotation() -> None:
    @udf(result_type="DECIMAL(10, 2)", input_types=["INT", "STRING"], deterministic=False, version="2")
    def price(amount: float, country: str) -> float:
        return amount + len(country)

    assert str(price.result) == "DECIMAL(10, 2)"
    assert [str(p) for p in price.parameters] == ["INT", "STRING"]
    assert (price.deterministic, price.version) == (False, "2")
    assert price(1, "ab") == 3  # a declared function is still a function


def test_parameters() -> None:
    def plain(a: int, b, c: dt.datetime = dt.datetime.min, *rest: str) -> int:  # type: ignore[no-untyped-def]  # noqa: DTZ901
        return a

    function = declared(plain)
    assert [str(p) for p in function.parameters] == ["BIGINT", "any type", "TIMESTAMP or TIMESTAMP_LTZ", "STRING"]
    assert (function.least, function.repeats) == (2, True)


def test_a_table_function_has_columns() -> None:
    @udtf
    def parts(text: str) -> Iterator[tuple[str, int]]:
        yield text, len(text)

    @udtf(result_type="STRING")
    def one(text: str):  # type: ignore[no-untyped-def]
        return [text]

    assert str(parts.result) == "ROW<`f0` STRING, `f1` BIGINT>"
    assert str(one.result) == "ROW<`f0` STRING>"


def test_an_aggregate_function_needs_its_methods() -> None:
    class Longest:
        def create_accumulator(self) -> list[str]:
            return [""]

        def accumulate(self, accumulator: list[str], text: str) -> None:
            accumulator[0] = max(accumulator[0], text, key=len)

        def get_value(self, accumulator: list[str]) -> str:
            return accumulator[0]

    function = udaf(Longest)
    assert (function.kind, str(function.result), [str(p) for p in function.parameters]) == (
        "aggregate",
        "STRING",
        ["STRING"],
    )
    vectorised = udaf(lambda values: values.mean(), result_type="DOUBLE", func_type="pandas")
    assert (vectorised.kind, vectorised.style, vectorised.least) == ("aggregate", "pandas", 1)
    with pytest.raises(ValidationError, match="has no create_accumulator and no get_value"):
        udaf(type("Half", (), {"accumulate": lambda *_: None}), result_type="INT")


@pytest.mark.parametrize(
    ("make", "fact"),
    [
        (lambda: declared(lambda x: x), "What '<lambda>' returns has no type"),
        (lambda: declared(5), "5 is not a function"),
        (lambda: udf(lambda: 1, result_type="INTT"), "'INTT' is not a type"),
        (lambda: udf(lambda: 1, result_type=object), "The Python type object has no SQL type"),
        (lambda: udf(lambda: 1, result_type="INT", func_type="numpy"), "'numpy' is not a func_type"),
    ],
)
def test_what_is_not_a_function_is_refused(make: Any, fact: str) -> None:
    with pytest.raises(ValidationError) as caught:
        make()
    assert caught.value.fact.startswith(fact)


def test_the_decorators_are_public() -> None:
    assert (headwater.udf, headwater.udtf, headwater.udaf) == (udf, udtf, udaf)


class BigIntType:
    """These classes are named and shaped as PyFlink's are."""

    def __init__(self, nullable: bool = True) -> None:
        self._nullable = nullable

    def type_name(self) -> str:
        return "bigint"


class VarCharType(BigIntType):
    length = 2147483647


class RowField:
    def __init__(self, name: str, data_type: object) -> None:
        self.name = name
        self.data_type = data_type


class RowType(BigIntType):
    def __init__(self, fields: list[RowField]) -> None:
        super().__init__()
        self.fields = fields


class UserDefinedScalarFunctionWrapper:
    def __init__(self, func: object, input_types: object, result_type: object, func_type: str = "general") -> None:
        self._func, self._input_types, self._result_type = func, input_types, result_type
        self._deterministic, self._func_type = True, func_type


class UserDefinedTableFunctionWrapper(UserDefinedScalarFunctionWrapper):
    def __init__(self, func: object, result_types: object) -> None:
        super().__init__(func, None, None)
        self._result_types = result_types


class UserDefinedAggregateFunctionWrapper(UserDefinedScalarFunctionWrapper):
    _is_table_aggregate = False


class Latest:
    def create_accumulator(self) -> list[int]:
        return [0]

    def accumulate(self, accumulator: list[int], value: int) -> None:
        accumulator[0] = value

    def merge(self, accumulator: list[int], others: list[list[int]]) -> None:
        raise AssertionError

    def get_value(self, accumulator: list[int]) -> int:
        return accumulator[0]


class SubtractOne:
    def open(self, context: object) -> None:
        del context

    def eval(self, value: int) -> int:
        return value - 1


def test_functions_of_pyflink_are_understood_by_their_shape() -> None:
    scalar = declared(UserDefinedScalarFunctionWrapper(SubtractOne(), [BigIntType()], BigIntType(False)))
    assert (scalar.kind, str(scalar.result), scalar(5)) == ("scalar", "BIGINT NOT NULL", 4)
    rows = RowType([RowField("word", VarCharType()), RowField("n", BigIntType())])
    table = declared(UserDefinedTableFunctionWrapper(lambda text: [(text, 1)], rows))
    assert (table.kind, str(table.result)) == ("table", "ROW<`word` STRING, `n` BIGINT>")
    listed = declared(UserDefinedTableFunctionWrapper(lambda text: [(text, 1)], [VarCharType(), BigIntType()]))
    assert str(listed.result) == "ROW<`f0` STRING, `f1` BIGINT>"
    assert declared(UserDefinedScalarFunctionWrapper(len, None, "INT", "pandas")).style == "pandas"
    aggregate = declared(UserDefinedAggregateFunctionWrapper(Latest(), None, BigIntType()))
    assert (aggregate.kind, str(aggregate.result), aggregate.least) == ("aggregate", "BIGINT", 1)
    vectorised = declared(UserDefinedAggregateFunctionWrapper(Latest(), None, BigIntType(), "pandas"))
    assert (vectorised.kind, vectorised.style, vectorised.least) == ("aggregate", "pandas", 1)
    several = UserDefinedAggregateFunctionWrapper(Latest(), None, BigIntType())
    several._is_table_aggregate = True
    with pytest.raises(ValidationError, match="Table aggregate functions"):
        declared(several)


def test_what_an_aggregate_function_can_do() -> None:
    """Methods of a user count, not what PyFlink's base class has to raise an error."""
    base = type("AggregateFunction", (), {"retract": lambda *_: 1 / 0, "merge": lambda *_: 1 / 0})
    base.__module__ = "pyflink.table.udf"
    derived = type("Derived", (base, Latest), {})
    own = type("Own", (base, Latest), {"retract": lambda *_: None})
    assert declared(udaf(Latest, result_type="BIGINT")).can == {"accumulate", "merge"}
    assert declared(udaf(derived, result_type="BIGINT")).can == {"accumulate"}
    assert declared(udaf(own, result_type="BIGINT")).can == {"accumulate", "retract"}
    assert declared(udaf(len, result_type="BIGINT", func_type="pandas")).can == set()
    assert declared(udf(len, result_type="BIGINT")).can == set()


def test_an_accumulator_that_only_this_process_knows_is_not_stored() -> None:
    class Here:
        """No other process finds a class inside a function."""

    def made(create: Any) -> frozenset[str]:
        found: frozenset[str] = declared(
            udaf(type("Own", (Latest,), {"create_accumulator": create}), result_type="BIGINT")
        ).can
        return found

    of_the_script = type("OfTheScript", (), {"__module__": "__main__"})
    assert made(lambda _: {"a": [1, (2.5, None)]}) == {"accumulate", "merge"}
    assert made(lambda _: Here()) == {"merge"}
    assert made(lambda _: [of_the_script()]) == {"merge"}
    assert made(lambda _: defaultdict(lambda: 0)) == {"merge"}
    assert made(lambda _: defaultdict(int)) == {"accumulate", "merge"}
    assert made(lambda self: self.connection) == {"merge"}  # it fails without `open`
