"""Random histories of upserts and deletes, cut into batches and interrupted at random: the result is DuckDB's.

The oracle sees only the rows that are alive at the end; Headwater sees the whole history.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headwater.broker import Broker
from headwater.session import Session, connect

# One text for both: a key and five numbers.
QUERIES = {
    "aggregates": "SELECT region, COUNT(*), SUM(amount), MIN(amount), MAX(amount), COUNT(DISTINCT amount) "
    "FROM src GROUP BY region",
    "filtered": "SELECT region, COUNT(amount), SUM(amount) FILTER (WHERE amount > 3), COUNT(DISTINCT who), "
    "COUNT(*) FILTER (WHERE who = 'ann'), MAX(amount) FROM src WHERE amount <> 5 GROUP BY region",
    "having": "SELECT region, COUNT(*), SUM(amount), 0, 0, 0 FROM src GROUP BY region HAVING COUNT(*) > 2",
    "nested": "SELECT region, COUNT(*), SUM(n), MAX(n), MIN(n), 0 FROM "
    "(SELECT region, who, COUNT(*) AS n FROM src GROUP BY region, who) t GROUP BY region",
    "rows": "SELECT id, amount, amount * 2, 1, 1, 1 FROM src WHERE amount > 4",
}


@dataclass
class History:
    """Messages in order, and the rows that are alive after the last."""

    messages: list[tuple[str, dict[str, Any] | None]]
    alive: dict[str, dict[str, Any]]


def history(seed: int) -> History:
    dice = random.Random(seed)
    messages: list[tuple[str, dict[str, Any] | None]] = []
    alive: dict[str, dict[str, Any]] = {}
    for _ in range(dice.randrange(60, 160)):
        key = f"k{dice.randrange(25)}"
        if dice.random() < 0.3:
            messages.append((key, None))
            alive.pop(key, None)
            continue
        row = {
            "id": key,
            "region": dice.choice(["north", "south", "east", "västra"]),
            "who": dice.choice(["ann", "bob", None]),
            "amount": dice.choice([None, *range(10)]),
        }
        messages.append((key, row))
        alive[key] = row
    return History(messages, alive)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with connect(master="local[2]") as running:
        yield running


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("query", QUERIES)
def test_result_is_duckdbs(
    query: str, seed: int, session: Session, broker: Broker, unique_topic: Callable[[str], str], tmp_path: Path
) -> None:
    dice = random.Random(f"{query}{seed}")
    past = history(dice.randrange(1 << 30))
    topics = unique_topic("src"), unique_topic("out")
    _create(broker, topics)
    _produce(broker, topics[0], past)
    _run_with_interruptions(session, _script(query, broker, topics), tmp_path, dice)
    assert _result(session, broker, topics[1]) == _expected(query, past)


def _create(broker: Broker, topics: tuple[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.create_topics([NewTopic(t, 3, 1) for t in topics]).values():
        future.result()


def _produce(broker: Broker, topic: str, past: History) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "partitioner": "murmur2_random"})
    for key, row in past.messages:
        value = None if row is None else json.dumps(row).encode()
        producer.produce(topic, key=key.encode(), value=value)
    assert producer.flush(30) == 0


def _script(query: str, broker: Broker, topics: tuple[str, str]) -> str:
    servers = broker.bootstrap_servers
    return f"""
        CREATE TABLE src (id STRING, region STRING, who STRING, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED)
        WITH ('connector' = 'upsert-kafka', 'topic' = '{topics[0]}', 'properties.bootstrap.servers' = '{servers}',
              'key.format' = 'raw', 'value.format' = 'json', 'scan.bounded.mode' = 'latest-offset');
        CREATE TABLE out (k STRING, a BIGINT, b BIGINT, c BIGINT, d BIGINT, e BIGINT, PRIMARY KEY (k) NOT ENFORCED)
        WITH ('connector' = 'upsert-kafka', 'topic' = '{topics[1]}', 'properties.bootstrap.servers' = '{servers}',
              'key.format' = 'raw', 'value.format' = 'json');
        INSERT INTO out {QUERIES[query]};
    """


def _run_with_interruptions(session: Session, script: str, directory: Path, dice: random.Random) -> None:
    """Stop and start again, with other batch sizes each time, until everything is read."""
    for stops in (dice.randrange(1, 3), dice.randrange(1, 4), None):
        size = dice.choice([5, 17, 40, 1000])
        again = connect(session.spark, checkpoint=str(directory))
        again.sql(f"SET 'headwater.batch.max-rows' = '{size}'; {script}")
        job = again.jobs[0]
        if stops is None:
            again.wait()
            return
        deadline = time.monotonic() + 120
        while job.running and job.progress().batches < stops:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        job.stop()
        assert job.error is None, str(job.error)


def _result(session: Session, broker: Broker, topic: str) -> dict[str, tuple[Any, ...]]:
    reader = connect(session.spark)
    reader.sql(
        f"""CREATE TABLE result (k STRING, a BIGINT, b BIGINT, c BIGINT, d BIGINT, e BIGINT,
            PRIMARY KEY (k) NOT ENFORCED)
            WITH ('connector' = 'upsert-kafka', 'topic' = '{topic}', 'key.format' = 'raw', 'value.format' = 'json',
                  'properties.bootstrap.servers' = '{broker.bootstrap_servers}');"""
    )
    return {row.k: (row.a, row.b, row.c, row.d, row.e) for row in reader.table("result").collect()}


def _expected(query: str, past: History) -> dict[str, tuple[Any, ...]]:
    with duckdb.connect() as oracle:
        oracle.execute("CREATE TABLE src (id VARCHAR, region VARCHAR, who VARCHAR, amount BIGINT)")
        rows = [(r["id"], r["region"], r["who"], r["amount"]) for r in past.alive.values()]
        if rows:
            oracle.executemany("INSERT INTO src VALUES (?, ?, ?, ?)", rows)
        return {row[0]: tuple(row[1:]) for row in oracle.execute(QUERIES[query]).fetchall()}
