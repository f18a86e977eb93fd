"""Columns compared and grouped."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headwater.changelog.columns import concat, constant, equal_rows, flat, last_rows, widen

NAN = float("nan")


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (pa.string(), ["a", "b", "", None]),
        (pa.large_string(), ["a", "b", "", None]),
        (pa.binary(), [b"a", b"", None]),
        (pa.int8(), [1, -1, None]),
        (pa.int64(), [1 << 62, -(1 << 63), None]),
        (pa.float32(), [1.5, NAN, 0.0, None]),
        (pa.float64(), [1.5, NAN, float("inf"), None]),
        (pa.bool_(), [True, False, None]),
        (pa.decimal128(38, 2), [Decimal("1.00"), Decimal("-1.00"), None]),
        (pa.date32(), [date(2024, 1, 1), date(1969, 1, 1), None]),
        (pa.timestamp("us"), [datetime.fromisoformat("2024-01-01"), None]),
        (pa.timestamp("us", "UTC"), [datetime(2024, 1, 1, tzinfo=timezone.utc), None]),
        (pa.list_(pa.int32()), [[1, None], [], None]),
        (pa.struct([("x", pa.int32())]), [{"x": 1}, {"x": None}, None]),
        (pa.map_(pa.string(), pa.int32()), [[("a", 1)], [], None]),
    ],
    ids=str,
)
def test_values_equal_themselves_and_nothing_else(dtype: pa.DataType, values: list[Any]) -> None:
    left = pa.array([a for a in values for _ in values], dtype)
    right = pa.array([b for _ in values for b in values], dtype)
    expected = [i == j for i in range(len(values)) for j in range(len(values))]
    assert equal_rows([left], [right], len(left)).tolist() == expected


def test_rows_are_equal_if_all_columns_are() -> None:
    left = [pa.array([1, 1, None]), pa.array(["a", "b", None])]
    right = [pa.array([1, 1, None]), pa.array(["a", "c", None])]
    assert equal_rows(left, right, 3).tolist() == [True, False, True]
    assert equal_rows([], [], 2).tolist() == [True, True]


def test_the_last_row_of_each_key() -> None:
    rows = pa.table({"k": ["a", None, "a", None, "b"], "at": [2, 1, 1, 3, 5], "v": [1, 2, 3, 4, 5]})
    assert sorted(last_rows(rows, ["k"], ["at"]).column("v").to_pylist()) == [1, 4, 5]


def test_without_an_order_the_last_is_the_last() -> None:
    rows = pa.table({"k": ["a", "a", "b"], "v": [1, 2, 3]})
    assert sorted(last_rows(rows, ["k"], []).column("v").to_pylist()) == [2, 3]


def test_several_columns_order_by_the_first_first() -> None:
    moments = pa.array([2, 1, 2], pa.timestamp("us"))
    rows = pa.table({"k": ["a"] * 3, "at": moments, "partition": [0, 9, 1], "v": [1, 2, 3]})
    assert last_rows(rows, ["k"], ["at", "partition"]).column("v").to_pylist() == [3]


def test_unique_keys_and_no_rows_stay_as_they_are() -> None:
    rows = pa.table({"k": ["a", "b"], "at": [1, 2]})
    assert last_rows(rows, ["k"], ["at"]) is rows
    nothing = rows.slice(0, 0)
    assert last_rows(nothing, ["k"], ["at"]) is nothing


def test_pieces_become_one() -> None:
    table = pa.concat_tables([pa.table({"a": [1]}), pa.table({"a": [2]})])
    assert flat(table, "a").to_pylist() == [1, 2]
    assert flat(table.slice(0, 0), "a").to_pylist() == []
    assert concat([table, table]).column("a").num_chunks == 1
    assert constant("x", 2, pa.string()).to_pylist() == ["x", "x"]
    assert constant(None, 2, pa.int64()).to_pylist() == [None, None]


def test_text_gets_room_for_more_than_two_gigabytes() -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.binary()), ("c", pa.int32())])
    assert widen(schema).types == [pa.large_string(), pa.large_binary(), pa.int32()]
