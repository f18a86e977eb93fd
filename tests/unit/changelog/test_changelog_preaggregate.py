"""GROUP BY begun where rows are read, against a recount."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.changelog.exact_sums import ExactSums
from headwater.changelog.multiset import Multiset
from headwater.changelog.preaggregate import PartialAggregate, PreAggregation, double_sum
from headwater.errors import JobError

ALL = tuple(
    PartialAggregate(how, how, "n" if how != "rows" else "") for how in ("rows", "present", "sum", "min", "max")
)
LISTED = (*ALL, PartialAggregate("values", "values", "n"))

rows_of_two = st.lists(st.tuples(st.sampled_from(["a", "b", "", None]), st.one_of(st.none(), st.integers(-9, 9))))


def table(rows: list[tuple[Any, Any]], kind: pa.DataType | None = None) -> pa.Table:
    groups, numbers = [g for g, _ in rows], [n for _, n in rows]
    return pa.table([pa.array(groups, pa.string()), pa.array(numbers, kind or pa.int32())], names=["g", "n"])


def recounted(rows: list[tuple[Any, Any]]) -> dict[Any, tuple[Any, ...]]:
    by_group = defaultdict(list)
    for group, number in rows:
        by_group[group].append(number)
    found = {}
    for group, numbers in by_group.items():
        there = [n for n in numbers if n is not None]
        best = (min(there), max(there)) if there else (None, None)
        found[group] = (len(numbers), len(there), sum(there) if there else None, *best, numbers)
    return found


@settings(deadline=None)
@given(rows_of_two)
def test_groups_and_contributions(rows: list[tuple[Any, Any]]) -> None:
    local = PreAggregation((("g", "who"),), LISTED)
    reduced = local.reduced(table(rows))
    assert reduced.schema.names == ["who", *(c.name for c in LISTED)]
    found = {row.pop("who"): tuple(row.values()) for row in reduced.to_pylist()}
    assert found == recounted(rows)


@settings(deadline=None)
@given(rows_of_two.filter(bool))
def test_without_groups_all_rows_are_one(rows: list[tuple[Any, Any]]) -> None:
    [row] = PreAggregation((), LISTED).reduced(table(rows)).to_pylist()
    assert tuple(row.values()) == recounted([(None, number) for _, number in rows])[None]


def test_one_column_may_be_used_for_all() -> None:
    local = PreAggregation(
        (("g", "g"), ("g", "again")), (PartialAggregate("__hw_n", "rows"), PartialAggregate("v", "values", "g"))
    )
    assert local.columns == ("g",)
    assert local.reduced(table([("a", 1), ("b", 2), ("a", 3)])).to_pylist() == [
        {"g": "a", "again": "a", "__hw_n": 2, "v": ["a", "a"]},
        {"g": "b", "again": "b", "__hw_n": 1, "v": ["b"]},
    ]


def test_a_sum_that_does_not_fit_is_an_error() -> None:
    rows = table([("a", (1 << 63) - 1), ("a", 1)], pa.int64())
    with pytest.raises(JobError, match="does not fit"):
        PreAggregation((("g", "g"),), ALL[2:3]).reduced(rows)


def test_lists_of_values_are_unpacked_to_rows() -> None:
    multiset = Multiset("values1", pa.schema([("g", pa.string())]), pa.field("v", pa.string()), "w", "h", "list")
    rows = pa.table(
        {"g": pa.array(["a", "b", None]), "v": pa.array([["x", None], [], ["x"]]), "h": pa.array([[1, 2], [], [3]])}
    )
    unpacked, groups = multiset.unpacked(rows, pa.array([7, 8, 9]).to_numpy())
    assert groups.tolist() == [7, 7, 9]
    assert unpacked.to_pylist() == [
        {"g": "a", "v": "x", "h": 1, "w": 1},
        {"g": "a", "v": None, "h": 2, "w": 0},
        {"g": None, "v": "x", "h": 3, "w": 1},
    ]


def test_groups_may_be_nested() -> None:
    rows = pa.table({"g": pa.array([[1, 2], [3], [1, 2], None]), "n": pa.array([1, 2, 3, 4])})
    assert PreAggregation((("g", "g"),), (*ALL[:3], PartialAggregate("v", "values", "n"))).reduced(
        rows
    ).to_pylist() == [
        {"g": [1, 2], "rows": 2, "present": 2, "sum": 4, "v": [1, 3]},
        {"g": [3], "rows": 1, "present": 1, "sum": 2, "v": [2]},
        {"g": None, "rows": 1, "present": 1, "sum": 4, "v": [4]},
    ]


doubles = st.none() | st.floats() | st.floats(-1e6, 1e6) | st.sampled_from([float("inf"), 1e300, 5e-324])


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), doubles), min_size=1), st.sampled_from([32, 64]))
def test_partial_sums_of_doubles_are_exact(rows: list[tuple[Any, float | None]], bits: int) -> None:
    given_rows = table(rows, pa.float64() if bits == 64 else pa.float32())
    reduced = PreAggregation((("g", "g"),), (*ALL[:2], *double_sum("s", "n"), *ALL[3:])).reduced(given_rows)
    assert sum(reduced.column("rows").to_pylist()) == len(rows)
    assert sum(reduced.column("present").to_pylist()) == sum(n is not None for _, n in rows)
    for group in {g for g, _ in rows}:
        mine = values_of(given_rows, group)
        partial = reduced.filter(pa.array([g == group for g in reduced.column("g").to_pylist()])).combine_chunks()
        found = ExactSums.of_rows(partial, "s", np.zeros(partial.num_rows, np.int64), 1)
        assert found.stored() == ExactSums.of_rows(mine, "s", np.zeros(mine.num_rows, np.int64), 1).stored()


def values_of(rows: pa.Table, group: Any) -> pa.Table:
    values = [n for g, n in zip(*(rows.column(c).to_pylist() for c in "gn"), strict=True) if g == group]
    return pa.table({"s": pa.array(values, pa.float64())})
