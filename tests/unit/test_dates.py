"""Dates and timestamps of years that Python's datetime does not know, wherever columns become Python values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from headwater.changelog.columns import group_key
from headwater.changelog.identity import row_ids
from headwater.changelog.kinds import KIND
from headwater.changelog.materialize import MaterializeOperator
from headwater.changelog.ordering import SortKey, order_rows
from headwater.errors import HeadwaterError, JobError
from headwater.execution.operator_metrics import shown_rows
from headwater.plan.nodes import Column
from headwater.plan.query import Ordering
from headwater.python_functions.aggregates import AccumulatorStep, AggregateStep
from headwater.python_functions.run import FunctionSource, ValueStep
from headwater.results.html import html_table
from headwater.results.materialized import HeldRows, final
from headwater.results.query import QueryResult
from headwater.results.text import csv_lines, json_lines, table_lines
from headwater.sql.parser import parse_type

DAYS = [2_932_897, -719_163, 0, None, 2_932_897]  # 10000-01-01, 0000-12-31, 1970-01-01
MICROS = [None if days is None else days * 86_400_000_000 + 1_500_000 for days in DAYS]
COLUMNS = {
    "DATE": pa.array(DAYS, pa.date32()),
    "TIMESTAMP(3)": pa.array(MICROS, pa.timestamp("us")),
    "TIMESTAMP_LTZ(3)": pa.array(MICROS, pa.timestamp("us", "Europe/Berlin")),
}
TEXTS = {
    "DATE": ["+10000-01-01", "0000-12-31", "1970-01-01", None, "+10000-01-01"],
    "TIMESTAMP(3)": [
        "+10000-01-01 00:00:01.500", "0000-12-31 00:00:01.500", "1970-01-01 00:00:01.500", None,
        "+10000-01-01 00:00:01.500",
    ],
    "TIMESTAMP_LTZ(3)": [  # in Berlin, which had its own time in the year 0
        "+10000-01-01 01:00:01.500", "0000-12-31 00:53:29.500", "1970-01-01 01:00:01.500", None,
        "+10000-01-01 01:00:01.500",
    ],
}  # fmt: skip


def in_row(column: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([column], ["x"])


def in_array(column: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(len(column) + 1), pa.int32()), column)


def in_map(column: pa.Array) -> pa.Array:
    """As key where there is one, and as value."""
    keys = pa.array([0 if x is None else x for x in numbers(column)], pa.int64()).cast(
        pa.int32() if column.type == pa.date32() else pa.int64()
    )
    return pa.MapArray.from_arrays(pa.array(range(len(column) + 1), pa.int32()), keys.cast(column.type), column)


def numbers(column: pa.Array) -> list[int | None]:
    found: list[int | None] = column.cast(pa.int32() if column.type == pa.date32() else pa.int64()).to_pylist()
    return found


NESTED: dict[str, tuple[Callable[[pa.Array], pa.Array], str]] = {
    "itself": (lambda column: column, "{}"),
    "ROW": (in_row, "ROW<x {}>"),
    "ARRAY": (in_array, "ARRAY<{}>"),
    "MAP": (in_map, "MAP<{0}, {0}>"),
}
nested = pytest.mark.parametrize(
    ("column", "kind"),
    [(make(column), form.format(kind)) for make, form in NESTED.values() for kind, column in COLUMNS.items()],
    ids=[f"{kind} {name}" for name in NESTED for kind in COLUMNS],
)


@nested
def test_operators_identify_group_and_order_them(column: pa.Array, kind: str) -> None:
    ids = row_ids([column], len(column))
    assert ids[0] == ids[4]
    assert len(set(ids.tolist())) == 4
    grouped = group_key(column)
    assert grouped[0] == grouped[4]
    assert len(set(grouped.to_pylist())) == 4 if grouped is not column else grouped.equals(column)
    table = pa.table({"v": column})
    order = order_rows(table, row_ids([], len(column)), [SortKey("v")])
    if kind in COLUMNS or kind.startswith("ARRAY"):
        assert order.order.tolist() == [3, 1, 2, 0, 4]
    assert sorted(order.order.tolist()) == [0, 1, 2, 3, 4]


@nested
def test_rows_that_are_shown_in_progress_never_fail_a_batch(column: pa.Array, kind: str) -> None:
    assert len(shown_rows(pa.table({"v": column}))) == 3


def test_progress_shows_them_as_other_dates() -> None:
    rows = pa.table({"d": COLUMNS["DATE"], "t": COLUMNS["TIMESTAMP(3)"], "r": in_row(COLUMNS["DATE"])})
    assert shown_rows(rows.slice(0, 1)) == [
        "d = +10000-01-01, t = +10000-01-01 00:00:01.500000, r = {'x': +10000-01-01}"
    ]


def test_a_key_that_has_several_rows_is_named() -> None:
    keys, values = pa.schema([("d", pa.date32())]), pa.schema([("v", pa.int64())])
    operator = MaterializeOperator(keys, values, "error", table="t")
    changes = pa.table({"d": COLUMNS["DATE"].slice(0, 1), "__hw_rows": [2]})
    with pytest.raises(JobError, match="several rows with one primary key") as caught:
        operator._refuse_conflicts(changes)
    assert "+10000-01-01" in str(caught.value)


def answer(column: pa.Array, kind: str, updating: str, order: tuple[Ordering, ...] = ()) -> QueryResult:
    """A query that has ended, and whose changes were these rows."""
    columns = (Column("v", parse_type(kind)),)
    facts = {"bounded": True, "updating": bool(updating), "key": None, "order": order, "limit": None, "offset": 0}
    query: Any = SimpleNamespace(columns=columns, any_rows=not updating, cut_at_end=bool(order), **facts)
    batch = pa.RecordBatch.from_pydict({"v": column, KIND: pa.array([0] * len(column), pa.int8())})
    chunks = [_written(batch)]
    channel: Any = SimpleNamespace(take=lambda _: chunks.pop() if chunks else None, close=lambda: None, schema=None)
    job: Any = SimpleNamespace(running=False, name="j", location="", wait=lambda: None, request_stop=lambda: None)
    return QueryResult(query, job, channel, 100)


def _written(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


FORMS = {"itself": "{}", "ROW": "({})", "ARRAY": "[{}]", "MAP": "{{{0}={1}}}"}


@nested
@pytest.mark.parametrize("updating", ["", "updating"])
def test_a_result_is_shown(column: pa.Array, kind: str, updating: str) -> None:
    column = column.take(pa.array([0, 4, 1, 2]))  # a table has equal rows in one place
    result = answer(column, kind, updating)
    rows = result.shown_rows()
    inner = next(k for k in sorted(COLUMNS, key=len, reverse=True) if k in kind)
    form = next((form for name, form in FORMS.items() if kind.startswith(name)), "{}")
    texts = [form.format(*[TEXTS[inner][place]] * 2) for place in (0, 4, 1, 2)]
    assert [line.strip() for line in table_lines(result.columns, rows)][3:7] == texts
    assert [line.strip('"') for line in csv_lines(result.columns, rows)][1:] == texts
    assert all(text in line for text, line in zip(texts, json_lines(result.columns, rows), strict=True)) or form != "{}"
    assert "10000-01-01" in html_table(result.columns, rows, 4)
    assert "10000-01-01" in result._repr_html_()
    assert [change.row for change in answer(column, kind, updating).shown_changes()] == rows


@nested
@pytest.mark.parametrize("read", [QueryResult.rows, lambda result: list(result.changes())], ids=["rows", "changes"])
def test_python_is_told_what_it_cannot_hold(column: pa.Array, kind: str, read: Callable[[QueryResult], Any]) -> None:
    with pytest.raises(HeadwaterError, match=r"Column 'v' has \+10000-01-01.*, which Python cannot hold") as caught:
        read(answer(column, kind, ""))
    assert "CAST" in caught.value.hint


@nested
def test_a_result_as_arrow_has_them_and_pandas_has_them_or_says_why(column: pa.Array, kind: str) -> None:
    assert answer(column, kind, "").to_arrow().column("v").combine_chunks().equals(column)
    assert len(answer(column.take(pa.array([2, 3])), kind, "").to_pandas()) == 2
    if kind == "TIMESTAMP(3)":
        assert len(answer(column, kind, "").to_pandas()) == 5
        return
    with pytest.raises(HeadwaterError, match=r"Column 'v' has \+10000-01-01"):
        answer(column, kind, "").to_pandas()


@nested
def test_rows_are_retracted(column: pa.Array, kind: str) -> None:
    query: Any = SimpleNamespace(updating=True, key=None, columns=(), any_rows=False, order=())
    held = HeldRows(query, pa.schema([("v", column.type)]), 100)
    for change in (0, 3):
        held.apply(pa.RecordBatch.from_pydict({"v": column, KIND: pa.array([change] * len(column), pa.int8())}))
        assert held.count == (5 if change == 0 else 0)


@pytest.mark.parametrize("kind", COLUMNS)
def test_rows_are_put_in_order(kind: str) -> None:
    order = (Ordering("v", descending=True, nulls_first=True),)
    query: Any = SimpleNamespace(columns=[SimpleNamespace(name="v")], any_rows=False, order=order, limit=None, offset=0)
    found = final(pa.table({"v": COLUMNS[kind]}), query).column("v").combine_chunks()
    assert found.equals(COLUMNS[kind].take(pa.array([3, 0, 4, 2, 1])))


def source(function: Any) -> FunctionSource:
    from pyspark import cloudpickle

    return FunctionSource(pickled=cloudpickle.dumps(function))  # type: ignore[no-untyped-call]


class Latest:
    def create_accumulator(self) -> list[Any]:
        return []

    def accumulate(self, accumulator: list[Any], value: Any) -> None:
        accumulator.append(value)

    def get_value(self, accumulator: list[Any]) -> str:
        return str(accumulator[-1])


def called(column: pa.Array, kind: str, style: str) -> Any:
    """The results of a function that is given these values."""
    given, result = parse_type(kind), parse_type("STRING")
    if style == "accumulator":
        step: Any = AccumulatorStep("f", source(Latest()), (given,), result)
        return step.accumulated(pa.nulls(1, pa.binary()), in_row(column), *_one_group(len(column)))
    if style == "aggregate":
        step = AggregateStep("f", source(Latest()), (parse_type(f"ARRAY<ROW<x {kind}>>"),), result, arity=1)
        return step(pa.ListArray.from_arrays(pa.array([0, len(column)], pa.int32()), in_row(column)))
    function = str if style == "row" else lambda values: values.map(str)
    return ValueStep("f", source(function), (given,), result, style)(column)


@nested
@pytest.mark.parametrize("style", ["row", "pandas", "aggregate", "accumulator"])
def test_a_function_that_cannot_be_given_a_value_says_so(column: pa.Array, kind: str, style: str) -> None:
    known = column.take(pa.array([2, 3]))
    assert len(called(known, kind, style)) in {1, 2}
    if style == "pandas" and kind == "TIMESTAMP(3)":
        assert called(column, kind, style)[0].as_py() == "10000-01-01 00:00:01.500000"
        return
    with pytest.raises(JobError, match=r"Function 'f' cannot be given \+10000-01-01") as caught:
        called(column, kind, style)
    assert "CASE" in caught.value.hint


def _one_group(length: int) -> tuple[Any, Any]:
    import numpy as np

    return np.zeros(length, np.int64), np.ones(length, np.int64)


def test_a_function_is_given_all_that_utc_can_hold() -> None:
    """The end of the year 9999 in UTC, in a session whose clocks are ahead."""
    end = dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.timezone.utc)
    column = pa.array([end], pa.timestamp("us", "UTC")).cast(pa.timestamp("us", "Asia/Tokyo"))
    step: Any = ValueStep("f", source(str), (parse_type("TIMESTAMP_LTZ(3)"),), parse_type("STRING"))
    assert step(column).to_pylist() == [str(end)]


def test_rows_have_all_that_the_session_can_hold() -> None:
    """The end of the year 9999 where clocks are behind those of UTC."""
    micros = 253_402_300_799_000_000 + 5 * 3_600_000_000
    column = pa.array([micros], pa.timestamp("us", "America/New_York"))
    [(value,)] = answer(column, "TIMESTAMP_LTZ(3)", "").rows()
    assert value.isoformat() == "9999-12-31T23:59:59-05:00"
