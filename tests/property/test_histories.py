"""Random histories of upserts and deletes, cut into batches at random, interrupted and crashed at random: at the end
every result is what DuckDB computes from the rows that are left. The oracle never sees the history.

One history with a few of the queries is part of every test run; `HEADWATER_SEEDS=50` sets how many there are of all of
them in a long one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from headwater.testing import CaseRunner
from headwater.testing.catch_up import await_caught_up
from headwater.testing.engine import Engine, LocalEngine
from headwater.testing.faults import Fault
from headwater.testing.kafka import Kafka, Record

SEEDS = range(int(os.environ.get("HEADWATER_SEEDS", "4")))
BLOCKS = 5
SECONDS = 120.0


@dataclass(frozen=True)
class Shape:
    """A query, the columns and the key of its result. `oracle` is DuckDB's text where it differs from Flink's."""

    columns: str
    key: str
    query: str
    oracle: str = ""


SHAPES = {
    "aggregates": Shape(
        "region STRING, n BIGINT, total BIGINT, low BIGINT, high BIGINT, people BIGINT",
        "region",
        "SELECT region, COUNT(*) AS n, SUM(amount) AS total, MIN(amount) AS low, MAX(amount) AS high, "
        "COUNT(DISTINCT who) AS people FROM src WHERE region IS NOT NULL GROUP BY region",
    ),
    "filters": Shape(
        "region STRING, n BIGINT, ann BIGINT, big BIGINT, best STRING",
        "region",
        "SELECT region, COUNT(amount) AS n, COUNT(*) FILTER (WHERE who = 'ann') AS ann, "
        "SUM(amount) FILTER (WHERE amount > 3) AS big, MAX(who) FILTER (WHERE amount < 8) AS best "
        "FROM src WHERE amount <> 5 AND region IS NOT NULL GROUP BY region",
    ),
    "having": Shape(
        "who STRING, n BIGINT, total BIGINT",
        "who",
        "SELECT who, COUNT(*) AS n, SUM(amount) AS total FROM src WHERE who IS NOT NULL GROUP BY who "
        "HAVING COUNT(*) BETWEEN 2 AND 6 AND MIN(amount) > 0",
    ),
    "nested": Shape(
        "n BIGINT, pairs BIGINT, total BIGINT, high BIGINT",
        "n",
        "SELECT n, COUNT(*) AS pairs, SUM(total) AS total, MAX(total) AS high FROM "
        "(SELECT region, who, COUNT(*) AS n, SUM(amount) AS total FROM src GROUP BY region, who) AS t GROUP BY n",
    ),
    "rows": Shape(
        "id STRING, twice BIGINT, label STRING",
        "id",
        "SELECT id, amount * 2 AS twice, COALESCE(who, '?') || '/' || COALESCE(region, '?') AS label "
        "FROM src WHERE amount < 7 AND amount <> 0",
    ),
    "moving keys": Shape(
        "id STRING, r STRING, amount BIGINT",
        "id, r",
        "SELECT id, COALESCE(region, '-') AS r, amount FROM src",
    ),
    "distinct": Shape(
        "r STRING, w STRING",
        "r, w",
        "SELECT DISTINCT COALESCE(region, '-') AS r, COALESCE(who, '-') AS w FROM src",
    ),
    "union": Shape(
        "who STRING, n BIGINT, total BIGINT",
        "who",
        "SELECT who, COUNT(*) AS n, SUM(amount) AS total FROM (SELECT who, amount FROM src WHERE region = 'north' "
        "UNION ALL SELECT who, amount FROM src WHERE amount > 5 UNION ALL SELECT who, amount FROM log_) AS t "
        "WHERE who IS NOT NULL GROUP BY who",
    ),
    "pairs": Shape(
        "id STRING, other STRING, amount BIGINT",
        "id, other",
        "SELECT a.id, b.id AS other, a.amount FROM src AS a "
        "JOIN src AS b ON a.region = b.region AND a.amount < b.amount",
    ),
    "left join": Shape(
        "id STRING, amount BIGINT, n BIGINT, logged BIGINT",
        "id",
        "SELECT s.id, s.amount, t.n, l.n AS logged FROM src AS s "
        "LEFT JOIN (SELECT who, COUNT(*) AS n FROM src GROUP BY who) AS t ON s.who = t.who AND s.amount > t.n "
        "LEFT JOIN (SELECT amount, COUNT(*) AS n FROM log_ GROUP BY amount) AS l ON s.amount = l.amount",
    ),
    "subqueries": Shape(
        "id STRING, amount BIGINT, high BIGINT",
        "id",
        "SELECT id, amount, (SELECT MAX(amount) FROM src AS m WHERE m.who = s.who) AS high FROM src AS s "
        "WHERE region IN (SELECT region FROM src WHERE amount > 6) "
        "AND NOT EXISTS (SELECT 1 FROM log_ WHERE log_.amount = s.amount)",
    ),
    "marks": Shape(
        "id STRING, amount BIGINT, seen BOOLEAN, late BOOLEAN, k STRING",
        "id",
        "SELECT id, amount, region IN (SELECT region FROM src WHERE amount > 6) AS seen, "
        "who NOT IN (SELECT who FROM log_ WHERE log_.amount = s.amount) AS late, "
        "CASE WHEN EXISTS (SELECT 1 FROM log_ WHERE log_.who = s.who AND log_.amount > s.amount) THEN 'a' "
        "WHEN region NOT IN (SELECT region FROM src WHERE amount = 3) THEN 'b' END AS k FROM src AS s "
        "WHERE amount < 5 OR NOT EXISTS (SELECT 1 FROM log_ WHERE log_.amount = s.amount)",
    ),
    "decimals": Shape(
        "region STRING, price DECIMAL(38, 2), mean DECIMAL(38, 6), low DECIMAL(10, 2), kinds BIGINT",
        "region",
        "SELECT region, SUM(price) AS price, AVG(price) AS mean, MIN(price) AS low, COUNT(DISTINCT price) AS kinds "
        "FROM src WHERE region IS NOT NULL GROUP BY region",
        oracle="SELECT region, SUM(price), CAST(ROUND(SUM(price)::DOUBLE / COUNT(price), 6) AS DECIMAL(38, 6)), "
        "MIN(price), COUNT(DISTINCT price) FROM src WHERE region IS NOT NULL GROUP BY region",
    ),
}


HISTORIES = [
    pytest.param(0, ("union", "left join"), id="quick"),
    *(pytest.param(seed, tuple(SHAPES), id=str(seed), marks=pytest.mark.long) for seed in SEEDS),
]
"""Every query is a job of its own that is started again after each crash, so all of them take minutes."""


@dataclass
class History:
    """Rows that are alive, and messages that led there. The log only grows."""

    dice: Random
    alive: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)

    def block(self, src: str, log: str) -> list[Record]:
        records = []
        for _ in range(self.dice.choice([1, 3, 10, 30])):
            if self.dice.random() < 0.15:
                self.log.append({"who": self.dice.choice(["ann", "bob", None]), "amount": self.dice.randrange(10)})
                records.append(Record(log, None, json.dumps(self.log[-1]).encode()))
                continue
            key = f"k{self.dice.randrange(20)}"
            row = None if self.dice.random() < 0.3 else self._row(key)
            self.alive.pop(key, None)
            if row is not None:
                self.alive[key] = row
            records.append(Record(src, key.encode(), None if row is None else json.dumps(row).encode()))
        return records

    def _row(self, key: str) -> dict[str, Any]:
        return {
            "id": key,
            "region": self.dice.choice(["north", "south", "västra", None]),
            "who": self.dice.choice(["ann", "bob", "cid", None]),
            "amount": self.dice.choice([None, *range(10)]),
            "price": self.dice.choice([None, 0.01, 12.5, -3.75, 99999999.99]),
        }


def script(servers: str, topics: dict[str, str], names: Sequence[str]) -> str:
    kafka = f"'properties.bootstrap.servers' = '{servers}'"
    upsert = f"'connector' = 'upsert-kafka', {kafka}, 'value.format' = 'json'"
    src = "id STRING, region STRING, who STRING, amount BIGINT, price DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED"
    log = f"'connector' = 'kafka', {kafka}, 'format' = 'json', 'scan.startup.mode' = 'earliest-offset'"
    lines = [
        f"CREATE TABLE src ({src}) WITH ({upsert}, 'key.format' = 'raw', 'topic' = '{topics['src']}');",
        f"CREATE TABLE log_ (who STRING, amount BIGINT) WITH ({log}, 'topic' = '{topics['log']}');",
    ]
    for number, name in enumerate(names):
        shape = SHAPES[name]
        lines.append(
            f"CREATE TABLE out{number} ({shape.columns}, PRIMARY KEY ({shape.key}) NOT ENFORCED) "
            f"WITH ({upsert}, 'key.format' = 'json', 'topic' = '{topics[name]}', "
            "'value.json.encode.decimal-as-plain-number' = 'true');"
        )
        lines.append(f"INSERT INTO out{number} {shape.query};")
    return "\n".join(lines)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("seed", "names"), HISTORIES)
def test_results_are_duckdbs(seed: int, names: tuple[str, ...], case_runner: CaseRunner, tmp_path: Path) -> None:
    dice = Random(seed)
    kafka = case_runner.kafka()
    topics = {name: f"{name.replace(' ', '-')}-{seed}-{tmp_path.name}" for name in ("src", "log", *names)}
    partitions = dict.fromkeys(topics.values(), 3)
    kafka.create(partitions)
    history, text = History(dice), script(kafka.bootstrap_servers, topics, names)
    engine = started(case_runner, tmp_path, text)
    try:
        for _ in range(BLOCKS):
            await_caught_up(engine, kafka, partitions, SECONDS)
            fault = dice.choice([None, None, *Fault])
            if fault is not None:
                engine.crash_next(fault)
            kafka.produce(history.block(topics["src"], topics["log"]))
            if fault is not None or dice.random() < 0.3:
                await_caught_up(engine, kafka, partitions, SECONDS)
                engine.stop()
                engine = started(case_runner, tmp_path, text)
        await_caught_up(engine, kafka, partitions, SECONDS)
    finally:
        engine.stop()
    wrong = {name: found for name in names if (found := differences(kafka, topics[name], SHAPES[name], history))}
    assert wrong == {}
    kafka.delete(list(topics.values()))


def started(case_runner: CaseRunner, directory: Path, text: str) -> Engine:
    engine = LocalEngine(case_runner.spark, str(directory / "state"), {})
    engine.run(text, "histories")
    return engine


def differences(kafka: Kafka, topic: str, shape: Shape, history: History) -> dict[str, set[tuple[Any, ...]]]:
    """Rows the topic has and DuckDB does not, and the other way round."""
    ours, theirs = written(kafka, topic), computed(shape, history)
    found = {"only ours": ours - theirs, "only DuckDB's": theirs - ours}
    return {side: rows for side, rows in found.items() if rows}


def written(kafka: Kafka, topic: str) -> set[tuple[Any, ...]]:
    ends = {p: end for (_, p), end in kafka.ends({topic: 3}).items()}
    rows: dict[bytes, bytes] = {}
    for record in kafka.read(topic, {}, ends):
        assert record.key is not None
        rows.pop(record.key, None)
        if record.value is not None:
            rows[record.key] = record.value
    return {tuple(json.loads(row, parse_float=Decimal).values()) for row in rows.values()}


def computed(shape: Shape, history: History) -> set[tuple[Any, ...]]:
    with duckdb.connect() as oracle:
        oracle.execute(
            "CREATE TABLE src (id VARCHAR, region VARCHAR, who VARCHAR, amount BIGINT, price DECIMAL(10, 2))"
        )
        oracle.execute("CREATE TABLE log_ (who VARCHAR, amount BIGINT)")
        for row in history.alive.values():
            oracle.execute("INSERT INTO src VALUES (?, ?, ?, ?, ?)", list(row.values()))
        for row in history.log:
            oracle.execute("INSERT INTO log_ VALUES (?, ?)", list(row.values()))
        return set(oracle.execute(shape.oracle or shape.query).fetchall())
