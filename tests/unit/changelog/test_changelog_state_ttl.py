"""State that is forgotten when it has not been used for a time."""

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from operator_model import Played, key_hash, reopened

from headwater.changelog.join import JoinInput, JoinOperator
from headwater.changelog.kinds import DELETE, INSERT
from headwater.changelog.operator import Operator, Time
from headwater.changelog.ordering import SortKey
from headwater.changelog.over import OverTableOperator
from headwater.changelog.rank import RankOperator
from headwater.changelog.state_ttl import Expiring

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
    return Played(Expiring(operator, TTL), [key_hash([0], spread)] * len(columns), columns)


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


def test_it_can_be_sent_to_another_process() -> None:
    operator = Expiring(OPERATORS["rank"][0], TTL)
    assert pickle.loads(pickle.dumps(operator)) == operator
