"""ROW_NUMBER, RANK and DENSE_RANK with limits, against DuckDB over the table as it is after every batch."""

from __future__ import annotations

import pickle
from datetime import date, datetime, timezone
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_model import Live, Played, actions, key_hash, oracle, shuffled

from headwater.changelog import rank, sorted_groups
from headwater.changelog.kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.ordering import SortKey
from headwater.changelog.rank import RankFunction, RankOperator

COLUMNS = pa.schema([("g", pa.string()), ("s", pa.int64()), ("t", pa.string())])
FUNCTIONS: list[RankFunction] = ["row_number", "rank", "dense_rank"]
TIES = "g NULLS FIRST, s NULLS FIRST, t NULLS FIRST"


@pytest.fixture(autouse=True)
def small_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are divided into many levels."""
    monkeypatch.setattr(rank, "_LEAST_FIRST", 2)
    monkeypatch.setattr(rank, "_FIRST_PER_RANK", 1)
    monkeypatch.setattr(sorted_groups, "GROWTH", 2)


def query(operator: RankOperator) -> str:
    keys = [
        f"{k.column} {'DESC' if k.descending else 'ASC'} NULLS {'FIRST' if k.nulls_first else 'LAST'}"
        for k in operator.order
    ]
    by = ", ".join([*keys, TIES] if operator.function == "row_number" else keys)
    partition = f"PARTITION BY {', '.join(operator.partition)} " if operator.partition else ""
    number = f"{operator.function}() OVER ({partition}{f'ORDER BY {by}' if by else ''})"
    shown = f"{number} BETWEEN {operator.first} AND {operator.last}"
    return f"SELECT g, s, t{f', {number}' if operator.number else ''} FROM r QUALIFY {shown}"


rows = st.tuples(st.sampled_from(["a", None]), st.none() | st.integers(0, 4), st.sampled_from("uvw"))
histories = st.lists(st.lists(actions(rows), min_size=1, max_size=12), min_size=1, max_size=7)
orders = st.sampled_from(
    [
        (SortKey("s"),),
        (SortKey("s", descending=True, nulls_first=False),),
        (SortKey("s", nulls_first=False), SortKey("t", descending=True)),
        (SortKey("t", descending=True, nulls_first=True),),
    ]
)
limits = st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 3), (1, 6)])


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    histories,
    orders,
    limits,
    st.sampled_from(FUNCTIONS),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 1 << 20]),
    st.randoms(use_true_random=False),
)
def test_the_first_rows_of_each_group(
    history: list[list[Any]],
    order: tuple[SortKey, ...],
    limit: tuple[int, int],
    function: RankFunction,
    numbered: bool,
    partitioned: bool,
    spread: int,
    random: Random,
) -> None:
    partition = ("g",) if partitioned else ()
    operator = RankOperator(COLUMNS, partition, order, limit[1], limit[0], function, "n" if numbered else "")
    fed = Played(operator, [key_hash([0] if partitioned else [], spread)], [COLUMNS])
    live = Live()
    for batch in history:
        fed.feed(shuffled([c for action in batch for c in live.change(*action)], random))
        assert fed.result.rows == oracle(query(operator), r=(COLUMNS, live.rows))
        check_levels(fed)
        if random.random() < 0.3:
            fed.restart()
    fed.feed([(DELETE, row) for row in live.rows])
    assert not fed.result.rows
    assert fed.stored == 0


def check_levels(fed: Played) -> None:
    """The sizes are those of the levels, and all rows of a level come before those of the next."""
    stored = [row for b in fed.state["rows"].scan_range(*_everything()) for row in b.to_pylist()]
    for entry in (row for b in fed.state["levels"].scan_range(*_everything()) for row in b.to_pylist()):
        mine = [row for row in stored if all(row[k] == entry[k] for k in entry if not k.startswith("__"))]
        found = [0] * len(entry["__hw_sizes"])
        for row in mine:
            found[(row["__hw_h"] >> 28) & 15] += 1
        assert found == entry["__hw_sizes"]
        assert len(entry["__hw_bounds"]) == len(found) - 1


def _everything() -> tuple[Any, Any]:
    return np.array([-(1 << 63)]), np.array([(1 << 63) - 1])


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.lists(st.lists(rows, min_size=1, max_size=12), max_size=6),
    orders,
    limits,
    st.sampled_from(FUNCTIONS),
    st.booleans(),
)
def test_of_inserts_nothing_is_kept_but_the_first_rows(
    history: list[list[Any]], order: tuple[SortKey, ...], limit: tuple[int, int], function: RankFunction, numbered: bool
) -> None:
    operator = RankOperator(
        COLUMNS, ("g",), order, limit[1], limit[0], function, "n" if numbered else "", inserts_only=True
    )
    fed = Played(operator, [key_hash([0])], [COLUMNS])
    live: list[Any] = []
    for batch in history:
        live += batch
        fed.feed([(INSERT, row) for row in batch])
        assert fed.result.rows == oracle(query(operator), r=(COLUMNS, live))
    if function == "row_number":
        assert fed.state["rows"].rows <= 2 * limit[1] + 12


@settings(deadline=None, derandomize=True, max_examples=40)
@given(histories, st.sampled_from(FUNCTIONS), st.randoms(use_true_random=False))
def test_retractions_may_come_first(history: list[list[Any]], function: RankFunction, random: Random) -> None:
    live = Live()
    changes = [c for batch in history for action in batch for c in live.change(*action)]
    random.shuffle(changes)
    operator = RankOperator(COLUMNS, ("g",), (SortKey("s"),), 2, 1, function, "n")
    fed = Played(operator, [key_hash([0])], [COLUMNS])
    while changes:
        size = random.randrange(1, 6)
        taken, changes = changes[:size], changes[size:]
        fed.feed(taken)
    assert fed.result.rows == oracle(query(operator), r=(COLUMNS, live.rows))


def test_limit_alone_takes_any_rows_but_always_the_same() -> None:
    given_rows = [("a", n, "u") for n in range(9)]
    results = []
    for order in (given_rows, given_rows[::-1]):
        fed = Played(RankOperator(COLUMNS, (), (), 3), [key_hash([])], [COLUMNS])
        for row in order:
            fed.feed([(INSERT, row)])
        results.append(fed.result.rows)
    assert results[0] == results[1]
    assert sum(results[0].values()) == 3


def test_a_row_that_moves_updates_the_numbers_between() -> None:
    fed = Played(RankOperator(COLUMNS, ("g",), (SortKey("s"),), 3, number="n"), [key_hash([0])], [COLUMNS])
    fed.feed([(INSERT, ("a", s, "u")) for s in (1, 2, 3, 4)])
    changes = fed.feed([(UPDATE_BEFORE, ("a", 1, "u")), (UPDATE_AFTER, ("a", 5, "u"))])
    assert [kind for kind, _ in changes] == [UPDATE_BEFORE] * 3 + [UPDATE_AFTER] * 3
    assert [row for _, row in changes[3:]] == [("a", 2, "u", 1), ("a", 3, "u", 2), ("a", 4, "u", 3)]
    assert fed.feed([(INSERT, ("a", 9, "u"))]) == []


NAN, INF = float("nan"), float("inf")
UTC = timezone.utc
SORTED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-128, -1, 0, 127]),
    (pa.int64(), [-(1 << 63), -1, 0, (1 << 63) - 1]),
    (pa.float64(), [-INF, -1.5, 0.0, 1e-300, INF, NAN]),
    (pa.float32(), [-1.5, 0.0, 2.5, NAN]),
    (pa.decimal128(38, 4), [Decimal("-1E33"), Decimal("-0.5"), Decimal(0), Decimal("0.5"), Decimal("1E33")]),
    (pa.bool_(), [False, True]),
    (pa.string(), ["", "B", "a", "aa", "ä", "\U0001f600"]),
    (pa.binary(), [b"", b"\x00", b"\x7f", b"\xff"]),
    (pa.date32(), [date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)]),
    (pa.timestamp("us"), [datetime(1, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1), datetime(9999, 12, 31)]),  # noqa: DTZ001
    (pa.timestamp("us", "UTC"), [datetime(1960, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)]),
    (pa.time64("us"), [0, 1, 86_399_999_999]),
    (pa.list_(pa.int64()), [[], [None], [1], [1, 2], [2]]),
    (
        pa.struct([("p", pa.int64()), ("q", pa.string())]),
        [{"p": None, "q": "x"}, {"p": 1, "q": "a"}, {"p": 1, "q": "b"}],
    ),
]


@pytest.mark.parametrize(("dtype", "values"), SORTED, ids=[str(dtype) for dtype, _ in SORTED])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_sort_keys_of_every_type(dtype: pa.DataType, values: list[Any], descending: bool, nulls_first: bool) -> None:
    columns = pa.schema([("v", dtype), ("id", pa.int64())])
    operator = RankOperator(columns, (), (SortKey("v", descending, nulls_first),), 99, number="n")
    fed = Played(operator, [lambda row: row[1]], [columns])
    given_rows = list(zip([*values, None], range(len(values) + 1), strict=True))
    Random(3).shuffle(given_rows)
    for row in given_rows:
        fed.feed([(INSERT, row)])
    ids = list(range(len(values)))[:: -1 if descending else 1]
    expected = [len(values), *ids] if nulls_first else [*ids, len(values)]
    assert [row[1] for row in sorted(fed.result.rows, key=lambda row: row[2])] == expected


def test_an_operator_can_be_sent_to_another_process() -> None:
    operator = RankOperator(COLUMNS, ("g",), (SortKey("s"),), 3, number="n")
    assert pickle.loads(pickle.dumps(operator)) == operator
    assert [spec.name for spec in operator.tables] == ["rows", "levels"]
    assert operator.output.names == ["g", "s", "t", "n", "__hw_kind"]
