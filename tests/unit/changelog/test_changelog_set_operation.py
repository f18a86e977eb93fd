"""INTERSECT and EXCEPT of two changelogs, against DuckDB over the tables as they are after every batch."""

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_model import Live, Played, actions, group_hash, oracle, shuffled

from headwater.changelog.kinds import DELETE
from headwater.changelog.set_operation import SIDE, SetFunction, SetOperationOperator

COLUMNS = pa.schema([("a", pa.int64()), ("b", pa.string())])
SIDED = pa.schema([*COLUMNS, (SIDE, pa.int8())])
FUNCTIONS: list[SetFunction] = ["INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]

rows = st.tuples(st.none() | st.integers(0, 1), st.none() | st.sampled_from("pq"))
histories = st.lists(
    st.lists(st.tuples(st.integers(0, 1), actions(rows)), min_size=1, max_size=8), min_size=1, max_size=6
)


def played(function: SetFunction, spread: int = 1 << 20) -> Played:
    return Played(SetOperationOperator(COLUMNS, function), [group_hash([0, 1], spread)], [SIDED])


@pytest.mark.parametrize("function", FUNCTIONS)
@settings(deadline=None, derandomize=True, max_examples=60)
@given(histories, st.sampled_from([1, 3, 1 << 20]), st.randoms(use_true_random=False))
def test_the_result_is_that_of_the_tables(
    function: SetFunction, history: list[list[tuple[int, Any]]], spread: int, random: Random
) -> None:
    fed, live = played(function, spread), (Live(), Live())
    for batch in history:
        changes = [(k, (*row, side)) for side, action in batch for k, row in live[side].change(*action)]
        fed.feed(shuffled(changes, random))
        tables = {"l": (COLUMNS, live[0].rows), "r": (COLUMNS, live[1].rows)}
        assert fed.result.rows == oracle(f"FROM l {function} FROM r", **tables)
        if random.random() < 0.3:
            fed.restart()
    fed.feed([(DELETE, (*row, side)) for side in (0, 1) for row in live[side].rows])
    assert not fed.result.rows
    assert fed.stored == 0, "nothing is left of rows that are gone"


@settings(deadline=None, derandomize=True, max_examples=40)
@given(histories, st.sampled_from(FUNCTIONS), st.randoms(use_true_random=False))
def test_retractions_may_come_first(
    history: list[list[tuple[int, Any]]], function: SetFunction, random: Random
) -> None:
    fed, live = played(function), (Live(), Live())
    changes = [(k, (*row, s)) for batch in history for s, action in batch for k, row in live[s].change(*action)]
    changes = shuffled(changes, random)
    while changes:
        size = random.randrange(1, 5)
        fed.feed(changes[:size])
        changes = changes[size:]
    tables = {"l": (COLUMNS, live[0].rows), "r": (COLUMNS, live[1].rows)}
    assert fed.result.rows == oracle(f"FROM l {function} FROM r", **tables)


def test_it_can_be_sent_to_another_process() -> None:
    operator = SetOperationOperator(COLUMNS, "EXCEPT ALL")
    assert pickle.loads(pickle.dumps(operator)) == operator
