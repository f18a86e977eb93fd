"""State that is forgotten when it has not been used for a time."""

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from operator_model import Played, key_hash, reopened

from headwater.changelog.join import JoinInput, JoinKind, JoinOperator
from headwater.changelog.kinds import DELETE, INSERT
from headwater.changelog.operator import Operator, Time
from headwater.changelog.ordering import SortKey
from headwater.changelog.over import OverTableOperator
from headwater.changelog.rank import RankOperator
from headwater.changelog.state_ttl import Expiring, all_together, sides_apart

COLUMNS = pa.schema([("k", pa.int64()), ("x", pa.int64())])
OTHER = pa.schema([("c", pa.int64()), ("y", pa.int64())])
TTL = 10
OPERATORS: dict[str, tuple[Operator, list[pa.Schema]]] = {
    "rank": (RankOperator(COLUMNS, ("k",), (SortKey("x"),), 2, number="n"), [COLUMNS]),
    "join": (JoinOperator(JoinInput(COLUMNS, ("k",)), JoinInput(OTHER, ("c",)), "full"), [COLUMNS, OTHER]),
    "over": (OverTableOperator(COLUMNS, ("k",), (), (SortKey("x"),)), [COLUMNS]),
}


def played(name: str, spread: int = 1 << 20) -> Played:
    operator, columns = OPERATORS[name]
    return Played(Expiring(operator, all_together(operator, TTL)), [key_hash([0], spread)] * len(columns), columns)


def feed(fed: Played, rows: list[Any], now: int) -> list[Any]:
    inputs = [[(INSERT, row) for row in rows], *([[]] * (len(fed.columns) - 1))]
    return fed.feed(*inputs, time=Time(processing=now))


@pytest.mark.parametrize("name", OPERATORS)
def test_a_key_that_is_not_used_is_forgotten(name: str) -> None:
    fed = played(name)
    feed(fed, [(1, 5), (2, 5)], now=0)
    feed(fed, [(1, 6)], now=6)
    stored = fed.stored
    feed(fed, [(3, 1)], now=9)
    assert fed.stored > stored, "nothing is forgotten yet"
    feed(fed, [(3, 2)], now=12)
    before = fed.stored
    fed.state = reopened(fed.state)
    feed(fed, [(4, 1)], now=17)
    assert fed.stored < before, "the second and the first key are forgotten"
    feed(fed, [(9, 1)], now=100)
    alone = played(name)
    feed(alone, [(9, 1)], now=100)
    assert fed.stored == alone.stored, "all of it is removed"


@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_forgotten_begins_anew(name: str) -> None:
    fed, fresh = played(name), played(name)
    feed(fed, [(1, 1), (1, 2), (1, 3)], now=0)
    assert feed(fed, [(1, 4), (1, 5)], now=TTL) == feed(fresh, [(1, 4), (1, 5)], now=TTL)
    assert fed.stored == fresh.stored


@pytest.mark.parametrize("spread", [2, 1 << 20])
def test_used_state_is_as_without_a_limit(spread: int) -> None:
    random, plain = Random(4), Played(OPERATORS["rank"][0], [key_hash([0], spread)], [COLUMNS])
    fed, live = played("rank", spread), []
    for now in range(60):
        rows = [(INSERT, (key, random.randrange(9))) for key in (1, 2, 3)]
        live += [row for _, row in rows]
        gone = [(DELETE, live.pop(random.randrange(len(live))))]
        assert fed.feed([*rows, *gone], time=Time(processing=now)) == plain.feed([*rows, *gone])


def joined(kind: JoinKind, left: int, right: int) -> Played:
    join = JoinOperator(JoinInput(COLUMNS, ("k",)), JoinInput(OTHER, ("c",)), kind, mark="m")
    return Played(Expiring(join, sides_apart(join, (left, right))), [key_hash([0])] * 2, [COLUMNS, OTHER])


def test_the_sides_of_a_join_are_forgotten_apart() -> None:
    fed = joined("inner", TTL, 0)
    fed.feed([(INSERT, (1, 1))], [(INSERT, (1, 7))], time=Time(processing=0))
    assert fed.feed([(INSERT, (1, 2))], [], time=Time(processing=TTL)) == [(INSERT, (1, 2, 1, 7))], "the right is kept"
    assert fed.feed([], [(INSERT, (1, 8))], time=Time(processing=TTL)) == [(INSERT, (1, 2, 1, 8))], "the left is not"
    fed = joined("inner", 0, TTL)
    fed.feed([(INSERT, (1, 1))], [(INSERT, (1, 7))], time=Time(processing=0))
    assert fed.feed([(INSERT, (1, 2))], [], time=Time(processing=TTL)) == []
    assert len(fed.feed([], [(INSERT, (1, 8))], time=Time(processing=TTL))) == 2


@pytest.mark.parametrize("kind", ["left", "semi", "anti", "mark"])
def test_what_decides_about_a_row_is_kept_as_long_as_the_row(kind: JoinKind) -> None:
    """Played.feed insists that nothing is retracted that was not there."""
    for left, right in ((0, TTL), (3 * TTL, TTL)):
        fed = joined(kind, left, right)
        fed.feed([(INSERT, (1, 1))], [(INSERT, (1, 7))], time=Time(processing=0))
        fed.feed([(INSERT, (2, 1))], [], time=Time(processing=2 * TTL))
        fed.feed([], [(INSERT, (1, 8))], time=Time(processing=2 * TTL))
        fed.feed([], [(DELETE, (1, 7)), (DELETE, (1, 8))], time=Time(processing=2 * TTL))
        alone = {"left": (1, 1, None, None), "anti": (1, 1), "mark": (1, 1, False)}
        assert [row for row in fed.result.rows if row[0] == 1] == ([alone[kind]] if kind in alone else [])
    fed = joined(kind, TTL, 0)
    fed.feed([(INSERT, (1, 1))], [(INSERT, (1, 7))], time=Time(processing=0))
    assert fed.feed([], [(DELETE, (1, 7))], time=Time(processing=TTL)) == [], "the row is forgotten"


def test_it_can_be_sent_to_another_process() -> None:
    rank = OPERATORS["rank"][0]
    operator = Expiring(rank, all_together(rank, TTL))
    assert pickle.loads(pickle.dumps(operator)) == operator
