"""Upserts in, exact changes out, against a dict."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from changelog_model import Reader, empty_state, small_hash, table
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.changelog.kinds import DELETE, HASH, INSERT, KIND, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION, NormalizeOperator
from headwater.changelog.operator import Time
from headwater.state.table import StateTable

KEYS = pa.schema([("id", pa.string()), ("part", pa.int32())])
VALUES = pa.schema([("v", pa.int64()), ("tags", pa.list_(pa.string()))])
INPUT = pa.schema(
    [
        (HASH, pa.int64()),
        (KIND, pa.int8()),
        *KEYS,
        *VALUES,
        (ORDER, pa.timestamp("us", "UTC")),
        (PARTITION, pa.int32()),
        (OFFSET, pa.int64()),
    ]
)
Upsert = tuple[tuple[str, int], tuple[Any, ...] | None]


class History:
    """Feeds upserts, numbering them as one partition of a topic does."""

    def __init__(self, before: bool = True, spread: int = 1 << 40) -> None:
        self.operator = NormalizeOperator(KEYS, VALUES, before)
        self.state = empty_state(self.operator)
        self.reader = Reader("id", "part")
        self.model: dict[tuple[str, int], tuple[Any, ...]] = {}
        self._spread = spread
        self._offset = 0

    def feed(self, *upserts: Upsert) -> list[tuple[int, dict[str, Any]]]:
        rows = []
        for key, value in upserts:
            kind = DELETE if value is None else INSERT
            rows.append((small_hash(key, self._spread), kind, *key, *(value or (None, None)), 0, 0, self._offset))
            self._offset += 1
            if value is None:
                self.model.pop(key, None)
            else:
                self.model[key] = value
        return self.reader.read(self.operator.step(self.state, (table(INPUT, rows),), Time()))


keys = st.tuples(st.sampled_from("abc"), st.integers(0, 2))
values = st.tuples(st.none() | st.integers(0, 2), st.none() | st.lists(st.sampled_from("xy"), max_size=2))
histories = st.lists(st.lists(st.tuples(keys, st.none() | values), min_size=1, max_size=12), max_size=10)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(histories, st.sampled_from([1, 3, 1 << 40]))
def test_changes_add_up_to_the_last_upserts(history: list[list[Upsert]], spread: int) -> None:
    fed = History(spread=spread)
    for batch in history:
        changes = fed.feed(*batch)
        assert fed.reader.values() == fed.model
        touched = [(kind in (UPDATE_BEFORE, DELETE), row["id"], row["part"]) for kind, row in changes]
        assert len(set(touched)) == len(touched), "one net change per key"
        assert all(kind in (INSERT, DELETE) or kind in (UPDATE_BEFORE, UPDATE_AFTER) for kind, _ in changes)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(histories)
def test_the_outcome_does_not_depend_on_the_batches(history: list[list[Upsert]]) -> None:
    cut, whole, single = History(), History(), History()
    flat = [upsert for batch in history for upsert in batch]
    for batch in history:
        cut.feed(*batch)
    if flat:
        whole.feed(*flat)
    for upsert in flat:
        single.feed(upsert)
    assert cut.reader.values() == whole.reader.values() == single.reader.values()


A = ("a", 1)


def test_kinds() -> None:
    fed = History()
    assert [k for k, _ in fed.feed((A, (1, ["x"])))] == [INSERT]
    assert fed.feed((A, (2, ["x"]))) == [
        (UPDATE_BEFORE, {"id": "a", "part": 1, "v": 1, "tags": ["x"]}),
        (UPDATE_AFTER, {"id": "a", "part": 1, "v": 2, "tags": ["x"]}),
    ]
    assert fed.feed((A, None)) == [(DELETE, {"id": "a", "part": 1, "v": 2, "tags": ["x"]})]


def test_without_before_images_an_update_is_one_change() -> None:
    fed = History(before=False)
    fed.feed((A, (1, None)))
    assert [k for k, _ in fed.feed((A, (2, None)))] == [UPDATE_AFTER]
    assert [k for k, _ in fed.feed((A, None))] == [DELETE]


@pytest.mark.parametrize("value", [(None, None), (1, None), (1, ["x"]), (1, [])])
def test_the_same_row_again_gives_nothing(value: tuple[Any, ...]) -> None:
    fed = History()
    fed.feed((A, value))
    assert fed.feed((A, value)) == []


def test_the_delete_of_an_unknown_key_gives_nothing_and_is_not_kept() -> None:
    fed = History()
    assert fed.feed((A, None)) == []
    assert fed.state["rows"].rows == 0


def test_what_comes_and_goes_within_a_batch_leaves_no_trace() -> None:
    fed = History()
    assert fed.feed((A, (1, None)), (A, None)) == []
    fed.feed((A, (1, None)))
    assert fed.feed((A, None), (A, (1, None))) == []


def positioned(*rows: tuple[int, int, int, int | None]) -> pa.Table:
    """Rows of one key: time, partition, offset, value (None deletes)."""
    return table(
        INPUT,
        [(7, DELETE if v is None else INSERT, "a", 1, v, None, time, part, offset) for time, part, offset, v in rows],
    )


@pytest.mark.parametrize(
    ("rows", "winner"),
    [
        ([(5, 0, 1, 10), (1, 0, 2, 20)], 20),  # within a partition the offset decides, whatever the clocks say
        ([(5, 0, 1, 10), (9, 1, 0, 20)], 20),  # across partitions time does
        ([(9, 0, 1, 10), (5, 1, 0, 20)], 10),
        ([(5, 0, 1, 10), (5, 1, 0, 20)], 20),  # and for want of anything better the partition
        ([(9, 0, 1, 10), (1, 0, 2, None), (5, 1, 0, 20)], 20),
    ],
)
def test_which_message_of_a_key_is_the_last(rows: list[tuple[int, int, int, int | None]], winner: int) -> None:
    operator = NormalizeOperator(KEYS, VALUES, True)
    changes = operator.step(empty_state(operator), (positioned(*rows),), Time())
    assert changes.column("v").to_pylist() == [winner]


def test_a_key_without_values() -> None:
    """SELECT of nothing but the key: rows are there or not."""
    operator = NormalizeOperator(KEYS, pa.schema([]), True)
    state = empty_state(operator)
    rows = positioned((1, 0, 0, 1)).drop_columns(VALUES.names)
    assert operator.step(state, (rows,), Time()).column(KIND).to_pylist() == [INSERT]
    assert operator.step(state, (rows,), Time()).num_rows == 0
    gone = positioned((1, 0, 1, None)).drop_columns(VALUES.names)
    assert operator.step(state, (gone,), Time()).column(KIND).to_pylist() == [DELETE]


def test_an_operator_can_be_sent_to_another_process() -> None:
    operator = NormalizeOperator(KEYS, VALUES, True)
    copy = pickle.loads(pickle.dumps(operator))
    assert copy == operator
    assert copy.output.names == ["id", "part", "v", "tags", KIND]
    assert isinstance(empty_state(copy)["rows"], StateTable)
