"""GROUP BY begun where rows are read, against a recount."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.changelog.early import Contribution, EarlyGroups
from headwater.changelog.multiset import Multiset
from headwater.errors import JobError

ALL = tuple(Contribution(how, how, "n" if how != "rows" else "") for how in ("rows", "present", "sum", "min", "max"))
LISTED = (*ALL, Contribution("values", "values", "n"))

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


@given(rows_of_two)
def test_groups_and_contributions(rows: list[tuple[Any, Any]]) -> None:
    early = EarlyGroups((("g", "who"),), LISTED)
    reduced = early.reduced(table(rows))
    assert reduced.schema.names == ["who", *(c.name for c in LISTED)]
    found = {row.pop("who"): tuple(row.values()) for row in reduced.to_pylist()}
    assert found == recounted(rows)


@given(rows_of_two.filter(bool))
def test_without_groups_all_rows_are_one(rows: list[tuple[Any, Any]]) -> None:
    [row] = EarlyGroups((), LISTED).reduced(table(rows)).to_pylist()
    assert tuple(row.values()) == recounted([(None, number) for _, number in rows])[None]


def test_one_column_may_be_used_for_all() -> None:
    early = EarlyGroups((("g", "g"), ("g", "again")), (Contribution("__n", "rows"), Contribution("v", "values", "g")))
    assert early.columns == ("g",)
    assert early.reduced(table([("a", 1), ("b", 2), ("a", 3)])).to_pylist() == [
        {"g": "a", "again": "a", "__n": 2, "v": ["a", "a"]},
        {"g": "b", "again": "b", "__n": 1, "v": ["b"]},
    ]


def test_a_sum_that_does_not_fit_is_an_error() -> None:
    rows = table([("a", (1 << 63) - 1), ("a", 1)], pa.int64())
    with pytest.raises(JobError, match="does not fit"):
        EarlyGroups((("g", "g"),), ALL[2:3]).reduced(rows)


def test_lists_of_values_are_unpacked_to_rows() -> None:
    multiset = Multiset("values1", pa.schema([("g", pa.string())]), pa.field("v", pa.string()), "w", "h")
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
