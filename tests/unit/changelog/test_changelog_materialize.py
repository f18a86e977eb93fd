"""Rows by a key that is not theirs, against plain lists."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from changelog_model import Reader, empty_state, small_hash, table
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_model import reopened

from headwater.changelog.aggregate import ROWS
from headwater.changelog.kinds import HASH, INSERT, UPDATE_AFTER
from headwater.changelog.materialize import ROW, ROW_HASH, ROW_WEIGHT, Conflict, MaterializeOperator
from headwater.changelog.operator import Time
from headwater.changelog.ordered_values import ARRIVAL
from headwater.errors import JobError

KEYS = pa.schema([("k", pa.int64())])
VALUES = pa.schema([("id", pa.int64()), ("x", pa.string())])
Row = tuple[int, int, str | None]


def fed(operator: MaterializeOperator, batch: list[tuple[int, Row]], spread: int = 1 << 20) -> pa.Table:
    rows = []
    for place, (weight, (k, number, x)) in enumerate(batch):
        prefix = small_hash(k, spread) << 32
        given_ = {HASH: prefix, "k": k, ROWS: weight, ROW: {"id": number, "x": x}, ROW_WEIGHT: weight, ARRIVAL: place}
        given_[ROW_HASH] = prefix | (small_hash((number, x), spread) & 0xFFFFFFFF)
        rows.append(tuple(given_[name] for name in operator.inputs[0].names))
    return table(operator.inputs[0], rows)


# What is done: a row of the id gets this key and value, or (None) is deleted.
actions = st.tuples(st.integers(0, 3), st.none() | st.tuples(st.integers(0, 1), st.none() | st.sampled_from("xy")))


@pytest.mark.parametrize("conflict", ["last", "first"])
@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.lists(st.lists(actions, min_size=1, max_size=6), max_size=8),
    st.sampled_from([1, 1 << 20]),
    st.randoms(use_true_random=False),
)
def test_one_row_of_a_key_is_shown(conflict: Conflict, history: list[list[Any]], spread: int, random: Random) -> None:
    operator, reader = MaterializeOperator(KEYS, VALUES, conflict, before=True), Reader("k")
    state = empty_state(operator)
    current: dict[int, Row] = {}
    lists: dict[int, list[Row]] = defaultdict(list)
    for batch in history:
        changes = []
        for number, made in batch:
            old = current.pop(number, None)
            new = None if made is None else (made[0], number, made[1])
            if old == new:
                new = None if old is None else current.setdefault(number, old)
                continue
            if old is not None:
                changes.append((-1, old))
                lists[old[0]].remove(old)
            if new is not None:
                changes.append((1, new))
                current[number] = new
                lists[new[0]].append(new)
        reader.read(operator.step(state, (fed(operator, changes, spread),), Time()))
        picked = 0 if conflict == "first" else -1
        assert reader.values() == {(k,): rows[picked][1:] for k, rows in lists.items() if rows}
        if random.random() < 0.3:
            state = reopened(state)
    rest = [(-1, row) for rows in lists.values() for row in rows]
    reader.read(operator.step(state, (fed(operator, rest, spread),), Time()))
    assert not reader.values()
    assert sum(t.rows for t in state.values()) == 0, "nothing is left of rows that are gone"


def test_without_before_images() -> None:
    operator = MaterializeOperator(KEYS, VALUES)
    state = empty_state(operator)
    first = operator.step(state, (fed(operator, [(1, (1, 1, "a"))]),), Time())
    assert first.to_pylist() == [{"k": 1, "id": 1, "x": "a", "__hw_kind": INSERT}]
    second = operator.step(state, (fed(operator, [(1, (1, 2, "b"))]),), Time())
    assert second.to_pylist() == [{"k": 1, "id": 2, "x": "b", "__hw_kind": UPDATE_AFTER}]
    assert operator.step(state, (fed(operator, [(-1, (1, 1, "a"))]),), Time()).num_rows == 0


def test_several_rows_may_be_an_error() -> None:
    operator = MaterializeOperator(KEYS, VALUES, "error", table="t")
    state = empty_state(operator)
    operator.step(state, (fed(operator, [(1, (1, 1, "a"))]),), Time())
    operator.step(state, (fed(operator, [(1, (1, 2, "b")), (-1, (1, 1, "a"))]),), Time())
    with pytest.raises(JobError, match="Table 't' has several rows with one primary key") as caught:
        operator.step(state, (fed(operator, [(1, (1, 3, "c"))]),), Time())
    assert caught.value.detail == "k = 1"
