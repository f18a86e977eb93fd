"""The first or last row of each key of an append-only input, against a plain reference."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_model import Played, changes_table, group_hash, oracle

from headwater.changelog.deduplicate import Deduplicate, DeduplicateByArrival
from headwater.changelog.kinds import INSERT, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.operator import Operator, Time
from headwater.changelog.ordering import SortKey

KEYS = pa.schema([("k", pa.string())])
VALUES = pa.schema([("ts", pa.timestamp("us")), ("v", pa.int64())])
COLUMNS = pa.schema([*KEYS, *VALUES])
rows = st.tuples(st.sampled_from(["a", "b", None]), st.none() | st.integers(0, 4), st.integers(0, 2))
histories = st.lists(st.lists(rows, min_size=1, max_size=6), max_size=6)


def played(operator: Operator, spread: int = 1 << 20) -> Played:
    return Played(operator, [group_hash([0], spread)], [COLUMNS])


@settings(deadline=None, derandomize=True, max_examples=60)
@given(histories, st.booleans(), st.sampled_from([1, 1 << 20]))
def test_by_event_time(history: list[list[Any]], last: bool, spread: int) -> None:
    fed, live = played(Deduplicate(KEYS, VALUES, (SortKey("ts", last, not last),)), spread), []
    by = f"ts {'DESC NULLS LAST' if last else 'ASC NULLS FIRST'}, v"
    for batch in history:
        live += batch
        fed.feed([(INSERT, row) for row in batch])
        query = f"SELECT * FROM r QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY {by}) = 1"
        assert fed.result.rows == oracle(query, r=(COLUMNS, live))
        fed.restart()


@settings(deadline=None, derandomize=True, max_examples=40)
@given(histories, st.sampled_from(["first", "last"]), st.sampled_from([1, 1 << 20]))
def test_by_arrival(history: list[list[Any]], keep: Any, spread: int) -> None:
    fed = played(DeduplicateByArrival(KEYS, VALUES, keep), spread)
    best: dict[Any, Any] = {}
    for batch in history:
        for row in batch:
            best[row[0]] = best.get(row[0], row) if keep == "first" else row
        fed.feed([(INSERT, row) for row in batch])
        found = {row[0]: row[2] for row in fed.result.rows}
        assert found == {key: row[2] for key, row in best.items()}
        fed.restart()


def test_the_first_row_that_came_is_final_and_only_its_key_is_kept() -> None:
    fed = played(DeduplicateByArrival(KEYS, VALUES, "first"))
    assert [k for k, _ in fed.feed([(INSERT, ("a", 1, 1)), (INSERT, ("a", 0, 2))])] == [INSERT]
    assert fed.feed([(INSERT, ("a", 0, 3))]) == []
    assert fed.operator.tables[0].values.names == []


def test_a_better_row_is_an_update() -> None:
    fed = played(Deduplicate(KEYS, VALUES, (SortKey("ts"),)))
    fed.feed([(INSERT, ("a", 5, 1))])
    assert [k for k, _ in fed.feed([(INSERT, ("a", 3, 1))])] == [UPDATE_BEFORE, UPDATE_AFTER]
    assert fed.feed([(INSERT, ("a", 4, 1))]) == []


@pytest.mark.parametrize(("keep", "value"), [("first", 2), ("last", 1)])
def test_columns_may_say_which_row_of_a_batch_came_first(keep: Any, value: int) -> None:
    arrival = pa.schema([("partition", pa.int32()), ("offset", pa.int64())])
    operator = DeduplicateByArrival(KEYS, VALUES, keep, arrival)
    columns = pa.schema([*COLUMNS, *arrival])
    rows = changes_table(columns, [(INSERT, ("a", 0, 1, 0, 9)), (INSERT, ("a", 0, 2, 0, 3))], group_hash([0]))
    fed = played(operator)
    assert operator.step(fed.state, (rows,), Time()).column("v").to_pylist() == [value]


def test_an_operator_can_be_sent_to_another_process() -> None:
    for operator in (Deduplicate(KEYS, VALUES, (SortKey("ts"),)), DeduplicateByArrival(KEYS, VALUES, "last")):
        assert pickle.loads(pickle.dumps(operator)) == operator
