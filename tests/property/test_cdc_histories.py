"""The products of a shop, inserted, updated and deleted at random, told by four tools for change data capture.

Aggregated by name they are what DuckDB computes from the final table, whatever the batches and through a crash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from test_histories import SECONDS, started, written

from headwater.testing import CaseRunner
from headwater.testing.catch_up import await_caught_up
from headwater.testing.faults import Fault
from headwater.testing.kafka import Record

Row = dict[str, Any]
BLOCKS = 4
COLUMNS = "id INT, name STRING, price DECIMAL(10, 2), qty INT"
QUERY = (
    "SELECT name, COUNT(*) AS n, SUM(price) AS total, MIN(qty) AS low, COUNT(DISTINCT qty) AS kinds "
    "FROM {} GROUP BY name"
)


def debezium(old: Row | None, new: Row | None) -> Any:
    return {"before": old, "after": new, "op": "c" if old is None else "d" if new is None else "u"}


def ogg(old: Row | None, new: Row | None) -> Any:
    return {"before": old, "after": new, "op_type": "I" if old is None else "D" if new is None else "U"}


def maxwell(old: Row | None, new: Row | None) -> Any:
    message = {"data": new or old, "type": "insert" if old is None else "delete" if new is None else "update"}
    return {**message, "old": _different(old, new)} if old and new else message


def canal(old: Row | None, new: Row | None) -> Any:
    kind = "INSERT" if old is None else "DELETE" if new is None else "UPDATE"
    shown = {k: None if v is None else str(v) for k, v in (new or old or {}).items()}
    return {"data": [shown], "old": [_different(old, new)] if old and new else None, "type": kind}


def _different(old: Row, new: Row) -> Row:
    return {k: v for k, v in old.items() if v != new[k]}


TOOLS: Mapping[str, Callable[[Row | None, Row | None], Any]] = {
    "debezium-json": debezium,
    "canal-json": canal,
    "maxwell-json": maxwell,
    "ogg-json": ogg,
}


@dataclass
class Shop:
    dice: Random
    alive: dict[int, Row] = field(default_factory=dict)

    def change(self) -> tuple[int, Row | None, Row | None]:
        key = self.dice.randrange(15)
        old = self.alive.pop(key, None)
        if old is None or self.dice.random() < 0.7:
            self.alive[key] = self._product(key)
        return key, old, self.alive.get(key)

    def _product(self, key: int) -> Row:
        price, qty = self.dice.choice([None, 0.5, 12.25, 99999.99]), self.dice.choice([None, 1, 2, 3])
        return {"id": key, "name": self.dice.choice(["axe", "bow", "cup"]), "price": price, "qty": qty}


@pytest.mark.timeout(600)
def test_products_by_name_are_duckdbs(case_runner: CaseRunner, tmp_path: Path) -> None:
    dice, kafka = Random(7), case_runner.kafka()
    topics = {name: f"{name}-{tmp_path.name}" for name in (*TOOLS, *(f"out-{tool}" for tool in TOOLS))}
    partitions = dict.fromkeys(topics.values(), 3)
    kafka.create(partitions)
    shop, text = Shop(dice), script(kafka.bootstrap_servers, topics)
    engine = started(case_runner, tmp_path, text)
    try:
        for block in range(BLOCKS):
            await_caught_up(engine, kafka, partitions, SECONDS)
            if block == 2:
                engine.crash_next(dice.choice(list(Fault)))
            changes = [shop.change() for _ in range(dice.choice([3, 10, 40]))]
            kafka.produce([record for change in changes for record in told(topics, *change)])
            if block == 2:
                await_caught_up(engine, kafka, partitions, SECONDS)
                engine.stop()
                engine = started(case_runner, tmp_path, text)
        await_caught_up(engine, kafka, partitions, SECONDS)
    finally:
        engine.stop()
    wanted = computed(shop)
    assert {tool: written(kafka, topics[f"out-{tool}"]) for tool in TOOLS} == dict.fromkeys(TOOLS, wanted)
    kafka.delete(list(topics.values()))


def told(topics: dict[str, str], key: int, old: Row | None, new: Row | None) -> list[Record]:
    """What each tool says about the change."""
    return [
        Record(topics[tool], str(key).encode(), json.dumps(message(old, new)).encode())
        for tool, message in TOOLS.items()
    ]


def script(servers: str, topics: dict[str, str]) -> str:
    kafka = f"'properties.bootstrap.servers' = '{servers}'"
    lines = []
    for number, tool in enumerate(TOOLS):
        lines.append(
            f"CREATE TABLE in{number} ({COLUMNS}) WITH ('connector' = 'kafka', {kafka}, 'topic' = '{topics[tool]}', "
            f"'format' = '{tool}', 'scan.startup.mode' = 'earliest-offset');"
            f"CREATE TABLE out{number} (name STRING, n BIGINT, total DECIMAL(38, 2), low INT, kinds BIGINT, "
            f"PRIMARY KEY (name) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', {kafka}, "
            f"'topic' = '{topics[f'out-{tool}']}', 'key.format' = 'raw', 'value.format' = 'json', "
            "'value.json.encode.decimal-as-plain-number' = 'true');"
            f"INSERT INTO out{number} {QUERY.format(f'in{number}')};"
        )
    return "\n".join(lines)


def computed(shop: Shop) -> set[tuple[Any, ...]]:
    with duckdb.connect() as oracle:
        oracle.execute("CREATE TABLE products (id INT, name VARCHAR, price DECIMAL(10, 2), qty INT)")
        for row in shop.alive.values():
            oracle.execute("INSERT INTO products VALUES (?, ?, ?, ?)", list(row.values()))
        return set(oracle.execute(QUERY.format("products")).fetchall())
