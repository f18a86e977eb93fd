"""The join of two changelogs, against DuckDB over the tables as they are after every batch."""

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_model import Live, Played, actions, changes_table, key_hash, oracle, shuffled

from headwater.changelog.conditions import And, Arithmetic, ColumnRef, Compare, Condition, IsNull, Literal, Not, Or
from headwater.changelog.join import JoinInput, JoinKind, JoinOperator
from headwater.changelog.kinds import DELETE, INSERT, KIND, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.operator import Time

LEFT = pa.schema([("a", pa.int64()), ("b", pa.string()), ("x", pa.int64())])
RIGHT = pa.schema([("c", pa.int64()), ("d", pa.string()), ("y", pa.int64())])
KINDS: list[JoinKind] = ["inner", "left", "right", "full", "semi", "anti", "mark"]
X, Y = ColumnRef("x"), ColumnRef("y")
ONE = Literal(1, pa.int64())
CONDITIONS: dict[str, Condition | None] = {
    "TRUE": None,
    "x < y": Compare("<", X, Y),
    "(x + 1 = y OR y IS NULL)": Or(Compare("=", Arithmetic("+", X, ONE, pa.int64()), Y), IsNull(Y)),
    "(NOT (x >= y) AND x IS NOT NULL)": And(Not(Compare(">=", X, Y)), Not(IsNull(X))),
}


def operator(kind: JoinKind, condition: Condition | None = None, two_keys: bool = False, **more: Any) -> JoinOperator:
    left, right = (("a", "b"), ("c", "d")) if two_keys else (("a",), ("c",))
    return JoinOperator(JoinInput(LEFT, left), JoinInput(RIGHT, right), kind, condition, mark="m", **more)


def played(join: JoinOperator, spread: int = 1 << 20) -> Played:
    sides = ((LEFT, join.left.keys), (RIGHT, join.right.keys))
    hashers = [key_hash([columns.names.index(k) for k in keys], spread) for columns, keys in sides]
    return Played(join, hashers, [LEFT, RIGHT])


def query(kind: str, condition: str, two_keys: bool = False) -> str:
    on = f"a = c{' AND b = d' if two_keys else ''} AND {condition}"
    if kind == "mark":
        return f"SELECT *, EXISTS (SELECT 1 FROM r WHERE {on}) FROM l"
    if kind in ("semi", "anti"):
        exists = "EXISTS" if kind == "semi" else "NOT EXISTS"
        return f"SELECT * FROM l WHERE {exists} (SELECT 1 FROM r WHERE {on})"
    return f"SELECT a, b, x, c, d, y FROM l {kind} JOIN r ON {on}"


rows = st.tuples(st.none() | st.integers(0, 2), st.sampled_from("pq"), st.none() | st.integers(0, 2))
sides = st.tuples(st.integers(0, 1), actions(rows))
histories = st.lists(st.lists(sides, min_size=1, max_size=8), min_size=1, max_size=6)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    histories,
    st.sampled_from(KINDS),
    st.sampled_from(list(CONDITIONS)),
    st.booleans(),
    st.sampled_from([1, 3, 1 << 20]),
    st.randoms(use_true_random=False),
)
def test_the_result_is_the_join_of_the_tables(
    history: list[list[tuple[int, Any]]], kind: JoinKind, condition: str, two: bool, spread: int, random: Random
) -> None:
    fed = played(operator(kind, CONDITIONS[condition], two), spread)
    live = Live(), Live()
    for batch in history:
        changes: tuple[list[Any], list[Any]] = ([], [])
        for side, action in batch:
            changes[side].extend(live[side].change(*action))
        fed.feed(*(shuffled(c, random) for c in changes))
        tables = {"l": (LEFT, live[0].rows), "r": (RIGHT, live[1].rows)}
        assert fed.result.rows == oracle(query(kind, condition, two), **tables)
        if random.random() < 0.3:
            fed.restart()
    fed.feed(*([(DELETE, row) for row in side.rows] for side in live))
    assert not fed.result.rows
    assert fed.stored == 0, "nothing is left of rows that are gone"


@settings(deadline=None, derandomize=True, max_examples=50)
@given(histories, st.sampled_from(["l", "g"]))
def test_not_in_has_its_null_rules(history: list[list[tuple[int, Any]]], correlation: str) -> None:
    """x NOT IN (SELECT y FROM r [WHERE r.d = l.b]): unknown as soon as a NULL is among the values."""
    keys = (("b",), ("d",)) if correlation == "g" else ((), ())
    join = JoinOperator(
        JoinInput(LEFT, keys[0]), JoinInput(RIGHT, keys[1]), "anti", Compare("=", X, Y), unknown_matches=True
    )
    fed = Played(join, [key_hash([1] if keys[0] else [])] * 2, [LEFT, RIGHT])
    live = Live(), Live()
    where = "WHERE d = b" if keys[0] else ""
    for batch in history:
        changes: tuple[list[Any], list[Any]] = ([], [])
        for side, action in batch:
            changes[side].extend(live[side].change(*action))
        fed.feed(*changes)
        tables = {"l": (LEFT, live[0].rows), "r": (RIGHT, live[1].rows)}
        assert fed.result.rows == oracle(f"SELECT * FROM l WHERE x NOT IN (SELECT y FROM r {where})", **tables)


@settings(deadline=None, derandomize=True, max_examples=50)
@given(histories, st.booleans())
def test_two_marks_are_in_with_its_null_rules(history: list[list[tuple[int, Any]]], correlated: bool) -> None:
    """x IN (SELECT y FROM r [WHERE r.d = l.b]): TRUE if the first mark is, else NULL if the second is, else FALSE."""
    left, right = (("b",), ("d",)) if correlated else ((), ())
    equal = JoinOperator(JoinInput(LEFT, (*left, "x")), JoinInput(RIGHT, (*right, "y")), "mark", mark="equal")
    marked = pa.schema([*LEFT, ("equal", pa.bool_())])
    condition = Compare("=", X, Y)
    possible = JoinOperator(JoinInput(marked, left), JoinInput(RIGHT, right), "mark", condition, True, mark="possible")
    first = Played(equal, [key_hash([1, 2] if correlated else [2])] * 2, [LEFT, RIGHT])
    second = Played(possible, [key_hash([1] if correlated else [])] * 2, [marked, RIGHT])
    live = Live(), Live()
    value = f"x IN (SELECT y FROM r {'WHERE d = b' if correlated else ''})"
    for batch in history:
        changes: tuple[list[Any], list[Any]] = ([], [])
        for side, action in batch:
            changes[side].extend(live[side].change(*action))
        second.feed(first.feed(*changes), changes[1])
        tables = {"l": (LEFT, live[0].rows), "r": (RIGHT, live[1].rows)}
        rows = {(*row[:3], True if row[3] else None if row[4] else False): n for row, n in second.result.rows.items()}
        assert rows == oracle(f"SELECT *, {value} FROM l", **tables)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(histories, st.sampled_from(KINDS), st.sampled_from(list(CONDITIONS)), st.randoms(use_true_random=False))
def test_retractions_may_come_first(
    history: list[list[tuple[int, Any]]], kind: JoinKind, condition: str, random: Random
) -> None:
    """Changes of a row that come in different batches in the wrong order add up all the same."""
    live = Live(), Live()
    changes = [(s, c) for batch in history for s, action in batch for c in live[s].change(*action)]
    random.shuffle(changes)
    fed = played(operator(kind, CONDITIONS[condition]))
    while changes:
        size = random.randrange(1, 5)
        taken, changes = changes[:size], changes[size:]
        fed.feed(*([c for s, c in taken if s == side] for side in (0, 1)))
    tables = {"l": (LEFT, live[0].rows), "r": (RIGHT, live[1].rows)}
    assert fed.result.rows == oracle(query(kind, condition), **tables)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unchanged_result_emits_nothing(kind: JoinKind) -> None:
    fed = played(operator(kind))
    fed.feed([(INSERT, (1, "p", 1))], [(INSERT, (1, "q", 1))])
    same = [(UPDATE_BEFORE, (1, "p", 1)), (UPDATE_AFTER, (1, "p", 1))]
    assert fed.feed(same, []) == []
    assert fed.feed([], [(DELETE, (1, "q", 1)), (INSERT, (1, "q", 1))]) == []
    there_and_back = [(INSERT, (2, "p", 5)), (DELETE, (2, "p", 5))]
    assert fed.feed(there_and_back, there_and_back) == []


def test_a_second_match_changes_nothing_for_semi_and_anti() -> None:
    semi, anti = played(operator("semi")), played(operator("anti"))
    for fed in (semi, anti):
        fed.feed([(INSERT, (1, "p", 1))], [(INSERT, (1, "q", 1))])
        assert fed.feed([], [(INSERT, (1, "q", 2))]) == []
        assert fed.feed([], [(DELETE, (1, "q", 1))]) == []
    assert semi.feed([], [(DELETE, (1, "q", 2))]) == [(DELETE, (1, "p", 1))]
    assert anti.feed([], [(DELETE, (1, "q", 2))]) == [(INSERT, (1, "p", 1))]


def test_an_update_is_one_where_the_key_of_the_result_is_known() -> None:
    fed = played(operator("left", updates=("x",)))
    fed.feed([(INSERT, (1, "p", 7))], [])
    assert [k for k, _ in fed.feed([], [(INSERT, (1, "q", 1))])] == [UPDATE_BEFORE, UPDATE_AFTER]
    assert [k for k, _ in fed.feed([(DELETE, (1, "p", 7))], [])] == [DELETE]
    fed = played(operator("left", updates=("x",), before=False))
    fed.feed([(INSERT, (1, "p", 7))], [])
    inputs = (changes_table(LEFT, [], fed.hashers[0]), changes_table(RIGHT, [(INSERT, (1, "q", 1))], fed.hashers[1]))
    assert fed.operator.step(fed.state, inputs, Time()).column(KIND).to_pylist() == [UPDATE_AFTER]


NAN = float("nan")


@pytest.mark.parametrize(
    ("dtype", "left", "right", "matches"),
    [
        (pa.float64(), [NAN, 0.0, 1.5], [NAN, -0.0, 2.5], 2),
        (pa.float32(), [NAN, -0.0], [NAN, 0.0], 2),
        (pa.list_(pa.int64()), [[1, 2], [], None], [[1, 2], [], None], 2),
        (pa.struct([("p", pa.int64())]), [{"p": 1}, {"p": None}, None], [{"p": 1}, {"p": None}, None], 2),
        (pa.binary(), [b"", b"\x00"], [b"\x00", b"\x01"], 1),
        (pa.decimal128(20, 2), [1, 2], [2, 3], 1),
        (pa.bool_(), [True, False], [True], 1),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_keys_of_every_type(dtype: pa.DataType, left: list[Any], right: list[Any], matches: int) -> None:
    first, second = pa.schema([("k", dtype), ("n", pa.int64())]), pa.schema([("j", dtype), ("m", pa.int64())])
    join = JoinOperator(JoinInput(first, ("k",)), JoinInput(second, ("j",)), "full")
    fed = Played(join, [lambda row: (7 << 32) | row[1]] * 2, [first, second])  # all keys share a hash
    ls, rs = list(zip(left, range(9), strict=False)), list(zip(right, range(9), strict=False))
    fed.feed([(INSERT, row) for row in ls], [])
    fed.feed([], [(INSERT, row) for row in rs])
    assert sum(1 for row in fed.result.rows if row[1] is not None and row[3] is not None) == matches
    assert sum(fed.result.rows.values()) == len(left) + len(right) - matches
    fed.feed([(DELETE, row) for row in ls], [(DELETE, row) for row in rs])
    assert not fed.result.rows


@pytest.mark.parametrize(
    ("operator", "answers"),
    [
        (">", [False, False, False, None]),
        (">=", [False, False, False, None]),
        ("<", [False, False, False, None]),
        ("=", [False, False, False, None]),
        ("<>", [True, True, True, None]),
        ("IS NOT DISTINCT FROM", [False, False, True, False]),
    ],
)
def test_nan_in_a_condition(operator: str, answers: list[bool | None]) -> None:
    columns = {"x": pa.array([NAN, 1.0, NAN, NAN]), "y": pa.array([1.0, NAN, NAN, None])}
    assert Compare(operator, ColumnRef("x"), ColumnRef("y")).evaluate(columns, 4).to_pylist() == answers


@pytest.mark.parametrize("kind", KINDS)
def test_one_column_may_be_compared_with_two(kind: JoinKind) -> None:
    """a = c AND a = y."""
    fed = played(JoinOperator(JoinInput(LEFT, ("a", "a")), JoinInput(RIGHT, ("c", "y")), kind, mark="m"))
    left, right = [(1, "p", 0), (2, "p", 0)], [(1, "p", 1), (1, "p", 2), (2, "q", 2)]
    fed.feed([(INSERT, row) for row in left], [])
    fed.feed([], [(INSERT, row) for row in right])
    fed.restart()
    fed.feed([(DELETE, left[1])], [])
    on = query(kind, "a = y")
    assert fed.result.rows == oracle(on, l=(LEFT, left[:1]), r=(RIGHT, right))


def test_an_operator_can_be_sent_to_another_process() -> None:
    join = operator("full", CONDITIONS["x < y"])
    assert pickle.loads(pickle.dumps(join)) == join
    assert [spec.name for spec in join.tables] == ["left", "right"]
    assert [spec.name for spec in operator("left").tables] == ["left", "right", "right_keys"]
    assert join.inputs[0].names == ["__hw_h", "a", "b", "x"]
    assert not join.timed
