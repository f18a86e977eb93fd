"""What workers do with a function: columns in, columns out, and errors that name function and row."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import pickle
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from headwater.errors import JobError
from headwater.python_functions.aggregates import AggregateStep
from headwater.python_functions.run import FunctionSource, TableStep, ValueStep
from headwater.python_functions.values import Row, arrow_type, python_values, to_arrow
from headwater.sql.parser import parse_type

D = decimal.Decimal


def step(function: Any, result: str, *arguments: str, style: str = "row", table: bool = False) -> Any:
    source = FunctionSource(pickled=cloudpickle.dumps(function))  # type: ignore[no-untyped-call]
    kind = TableStep if table else ValueStep
    made = kind("f", source, tuple(map(parse_type, arguments)), parse_type(result), style)
    return pickle.loads(pickle.dumps(made))


VALUES: list[tuple[str, Any, Any]] = [
    ("BOOLEAN", True, True),
    ("INT", 7, 7),
    ("DOUBLE", 1.5, 1.5),
    ("STRING", "ä", "ä"),
    ("BYTES", b"\x00", b"\x00"),
    ("DECIMAL(10, 2)", D("1.25"), D("1.25")),
    ("DATE", dt.date(2024, 2, 29), dt.date(2024, 2, 29)),
    ("TIME(3)", 3_723_004, dt.time(1, 2, 3, 4000)),
    ("TIMESTAMP(3)", dt.datetime(2024, 1, 1, 2), dt.datetime(2024, 1, 1, 2)),  # noqa: DTZ001
    (
        "TIMESTAMP_LTZ(3)",
        dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc),
        dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc),
    ),
    ("ARRAY<TIME(0)>", [1000, None], [dt.time(0, 0, 1), None]),
    ("MAP<STRING, INT>", [("a", 1)], {"a": 1}),
    ("ROW<a INT, b ROW<c STRING>>", {"a": 1, "b": {"c": "x"}}, Row([1, Row(["x"], ["c"])], ["a", "b"])),
]


@pytest.mark.parametrize(("sql", "carried", "seen"), VALUES, ids=[sql for sql, *_ in VALUES])
def test_values_go_to_python_and_back(sql: str, carried: Any, seen: Any) -> None:
    kind = parse_type(sql)
    column = pa.array([carried, None], arrow_type(kind))
    assert python_values(column, kind, str) == [seen, None]
    assert to_arrow([seen, None], kind).equals(column)


def test_a_row_is_read_by_name_and_by_place() -> None:
    row = pickle.loads(pickle.dumps(Row([1, "x"], ["a", "b"])))
    assert (row.a, row["b"], row[0], row.as_dict()) == (1, "x", 1, {"a": 1, "b": "x"})
    with pytest.raises(AttributeError):
        _ = row.c


def test_null_is_none_and_decimals_are_rounded() -> None:
    function = step(lambda a: None if a is None else D(1) / 3 + a, "DECIMAL(10, 2)", "INT")
    assert function(pa.array([1, None])).to_pylist() == [D("1.33"), None]
    function = step(lambda a: a / 8, "DECIMAL(4, 2)", "INT")
    assert function(pa.array([1])).to_pylist() == [D("0.13")]


def test_a_function_without_arguments_gives_a_value_per_row() -> None:
    assert step(lambda: 7, "INT")(pa.array([0, 0, 0])).to_pylist() == [7, 7, 7]


class Counter:
    def open(self, context: Any) -> None:
        self.start = int(context.get_job_parameter("start", "10"))

    def eval(self, value: int) -> int:
        return self.start + value


def test_an_object_is_opened_before_its_first_row() -> None:
    assert step(Counter(), "BIGINT", "BIGINT")(pa.array([1, 2])).to_pylist() == [11, 12]


@pytest.mark.parametrize("rows", [list, iter, tuple], ids=["list", "iterator", "one row"])
def test_a_table_function_gives_rows(rows: Callable[[Any], Any]) -> None:
    result = "ROW<word STRING, n INT>"
    function = step(lambda a: rows((a, len(a))) if rows is tuple else rows([(a, len(a)), (a, 0)]), result, "STRING",
                    table=True)  # fmt: skip
    found = function(pa.array(["ab"])).to_pylist()[0]
    assert found[0] == {"word": "ab", "n": 2}
    assert len(found) == (1 if rows is tuple else 2)


def test_a_table_function_may_give_plain_values_or_nothing() -> None:
    function = step(lambda a: a.split() if a else None, "ROW<word STRING>", "STRING", table=True)
    found = function(pa.array(["a b", None, ""])).to_pylist()
    assert found == [[{"word": "a"}, {"word": "b"}], [], []]


def test_vectorised_functions_get_columns() -> None:
    import pyarrow.compute as pc

    column = pa.array([1, None, 3])
    assert step(lambda a: pc.add(a, 1), "INT", "BIGINT", style="arrow")(column).to_pylist() == [2, None, 4]
    assert step(lambda a: a + 1, "DOUBLE", "BIGINT", style="pandas")(column).to_pylist() == [2.0, None, 4.0]
    with pytest.raises(JobError, match="Function 'f' returned 1 values for 3 rows"):
        step(lambda a: a.slice(0, 1), "INT", "BIGINT", style="arrow")(column)


class PyFlinkRow:
    """Shaped as PyFlink's Row."""

    def __init__(self, values: list[Any], fields: list[str] | None = None) -> None:
        self._values = values
        if fields is not None:
            self._fields = fields

    def __getitem__(self, place: int) -> Any:
        return self._values[place]


def test_rows_of_pyflink_are_read_by_name_if_they_have_names() -> None:
    kind = parse_type("ROW<a INT, b STRING>")
    rows = [PyFlinkRow([1, "x"]), PyFlinkRow(["x", 1], ["b", "a"]), PyFlinkRow([1, "x"], ["u", "v"])]
    assert to_arrow(rows, kind).to_pylist() == [{"a": 1, "b": "x"}] * 3


class Counting:
    def open(self, context: Any) -> None:
        group = context.get_metric_group().add_group("a", "b")
        self.counter, self.meter = group.counter("n"), group.meter("m")
        group.gauge("g", lambda: 1)
        group.distribution("d").update(1)

    def eval(self, value: int) -> int:
        self.counter.inc(value)
        self.counter.dec()
        self.meter.mark_event()
        return int(self.counter.get_count() * 100 + self.meter.get_count())


def test_metrics_count_for_the_function_itself() -> None:
    assert step(Counting(), "BIGINT", "BIGINT")(pa.array([5, 3])).to_pylist() == [401, 602]


def test_async_functions_run_side_by_side_and_keep_the_order_of_rows() -> None:
    async def later(value: int) -> int:
        under_way.append(value)
        if len(under_way) < 3:  # one after the other, nobody would ever end the waiting
            await asyncio.wait_for(everybody.wait(), 10)
        everybody.set()
        return -value

    under_way: list[int] = []
    everybody = asyncio.Event()
    one = ValueStep("later", FunctionSource(), (parse_type("BIGINT"),), parse_type("BIGINT"), _target=later)
    assert one(pa.array([1, 2, 3])).to_pylist() == [-1, -2, -3]


def test_an_async_function_that_fails_names_its_row() -> None:
    async def failing(value: int) -> int:
        return 1 // value

    with pytest.raises(JobError, match=r"Function 'f' failed for \(0\): ZeroDivisionError"):
        step(failing, "BIGINT", "BIGINT")(pa.array([1, 0]))


class Longest:
    def create_accumulator(self) -> list[str]:
        return [""]

    def accumulate(self, accumulator: list[str], text: str) -> None:
        accumulator[0] = max(accumulator[0], text, key=len)

    def get_value(self, accumulator: list[str]) -> str:
        return accumulator[0]


def test_an_aggregate_function_is_evaluated_over_the_rows_of_a_group() -> None:
    kind = parse_type("ARRAY<ROW<a STRING>>")
    source = FunctionSource(pickled=cloudpickle.dumps(Longest()))  # type: ignore[no-untyped-call]
    function = AggregateStep("longest", source, (kind,), parse_type("STRING"), arity=1)
    groups = pa.array([[{"a": "x"}, {"a": "yy"}, {"a": "zz"}], None, []], arrow_type(kind))
    assert function(groups).to_pylist() == ["yy", "", ""]
    with pytest.raises(JobError, match=r"Function 'longest' failed for \(None\): TypeError"):
        function(pa.array([[{"a": "x"}, {"a": None}]], arrow_type(kind)))
    total = FunctionSource(pickled=cloudpickle.dumps(lambda a, b: (a * b).sum()))  # type: ignore[no-untyped-call]
    kind = parse_type("ARRAY<ROW<a INT, b DOUBLE>>")
    vectorised = AggregateStep("total", total, (kind,), parse_type("DOUBLE"), "pandas", arity=2)
    groups = pa.array([[{"a": 2, "b": 1.5}, {"a": 1, "b": 1.0}]], arrow_type(kind))
    assert vectorised(groups).to_pylist() == [4.0]


@pytest.mark.parametrize(
    ("function", "result", "message"),
    [
        (lambda a: 1 // a, "INT", "Function 'f' failed for (0): ZeroDivisionError: "),
        (lambda a: "x" if a == 0 else 1, "INT", "Function 'f' failed for (0): TypeError: 'x' is not of type INT"),
        (lambda a: 10**12 if a == 0 else 1, "INT", "Function 'f' failed for (0): TypeError: 1000000000000 is not"),
        (lambda a: (1, 2, 3), "ROW<a INT>", "Function 'f' failed for (2): TypeError: (1, 2, 3) is not of type ROW"),
    ],
)
def test_errors_name_function_and_row(function: Any, result: str, message: str) -> None:
    with pytest.raises(JobError) as caught:
        step(function, result, "BIGINT")(pa.array([2, 0]))
    assert message in str(caught.value)


class Weighted:
    """With an exact inverse, as those who write `retract` mean it."""

    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def accumulate(self, accumulator: list[int], value: int | None, weight: int) -> None:
        accumulator[0] += (value or 0) * weight
        accumulator[1] += weight

    def retract(self, accumulator: list[int], value: int | None, weight: int) -> None:
        accumulator[0] -= (value or 0) * weight
        accumulator[1] -= weight

    def merge(self, accumulator: list[int], others: list[list[int]]) -> None:
        for other in others:
            accumulator[0] += other[0]
            accumulator[1] += other[1]

    def get_value(self, accumulator: list[int]) -> str:
        return f"{accumulator[0]}/{accumulator[1]}"


class Frequent(Weighted):
    """With an accumulator that is a dict: the most frequent values."""

    def create_accumulator(self) -> Any:
        return {}

    def accumulate(self, accumulator: Any, value: int | None, weight: int) -> None:
        accumulator[value, weight] = accumulator.get((value, weight), 0) + 1

    def retract(self, accumulator: Any, value: int | None, weight: int) -> None:
        accumulator[value, weight] -= 1

    def merge(self, accumulator: Any, others: Any) -> None:
        for other in others:
            for key, count in other.items():
                accumulator[key] = accumulator.get(key, 0) + count

    def get_value(self, accumulator: Any) -> str:
        return str(sorted((str(key), count) for key, count in accumulator.items() if count))


@pytest.mark.parametrize("function", [Weighted(), Frequent()], ids=["sums", "counts"])
@pytest.mark.parametrize("seed", range(5))
def test_evaluating_a_group_is_what_accumulate_retract_and_merge_would_give(function: Weighted, seed: int) -> None:
    """After every change of a group: inserts, deletes, and updates, which retract the old row."""
    choose = random.Random(seed)
    kind = parse_type("ARRAY<ROW<a INT, b INT>>")
    source = FunctionSource(pickled=cloudpickle.dumps(function))  # type: ignore[no-untyped-call]
    evaluate = AggregateStep("f", source, (kind,), parse_type("STRING"), arity=2)
    parts = [function.create_accumulator(), function.create_accumulator()]  # of two tasks, merged
    rows: list[tuple[Any, int | None, int]] = []  # the accumulator they are in, and their values
    groups, expected = [], []
    for _ in range(100):
        if rows and choose.random() < 0.4:
            part, *values = rows.pop(choose.randrange(len(rows)))
            function.retract(part, *values)
        if not rows or choose.random() < 0.6:
            rows.append((choose.choice(parts), choose.choice([None, 1, 2, 3]), choose.randrange(1, 4)))
            function.accumulate(*rows[-1])
        merged = function.create_accumulator()
        function.merge(merged, parts)
        expected.append(function.get_value(merged))
        groups.append([{"a": a, "b": b} for _, a, b in rows])
    assert evaluate(pa.array(groups, arrow_type(kind))).to_pylist() == expected
