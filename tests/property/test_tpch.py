"""All queries of TPC-H as jobs over upsert-kafka tables whose rows come in random order, some of them wrong at first
and corrected later, some to be deleted again: each result is what DuckDB computes from the rows that are left."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import headwater
from headwater.session import Session
from headwater.testing import CaseRunner
from headwater.testing.kafka import Record
from tpch_queries import COLUMNS, QUERIES, tables

pytestmark = pytest.mark.long

SCALE = "0.01"
BATCH_ROWS = 20_000
"""Every job takes several batches, so that most corrections meet state."""


@dataclass(frozen=True)
class Laboratory:
    session: Session
    duck: duckdb.DuckDBPyConnection


@pytest.fixture(scope="module")
def laboratory(case_runner: CaseRunner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    directory = tmp_path_factory.mktemp("tpch")
    command = [str(Path(sys.executable).with_name("tpchgen-cli")), "parquet", "-s", SCALE, f"--output-dir={directory}"]
    subprocess.run(command, check=True, capture_output=True)
    duck, kafka, dice = duckdb.connect(), case_runner.kafka(), Random(7)
    prefix = f"{directory.name}-"
    kafka.create({f"{prefix}{name}": 2 for name in COLUMNS})
    for name in COLUMNS:
        duck.execute(f"CREATE TABLE {name} AS SELECT * FROM '{directory / name}.parquet'")
        kafka.produce(list(messages(f"{prefix}{name}", name, duck, dice)))
    session = headwater.connect(case_runner.spark())
    session.sql(tables(kafka.bootstrap_servers, ", 'scan.bounded.mode' = 'latest-offset'", prefix))
    session.sql(f"SET 'headwater.batch.max-rows' = '{BATCH_ROWS}'")
    yield Laboratory(session, duck)
    session.stop_jobs()


def messages(topic: str, table: str, duck: duckdb.DuckDBPyConnection, dice: Random) -> Iterator[Record]:
    """Every row, shuffled; one in ten comes with the values of another row before; and rows that are deleted again."""
    key = COLUMNS[table].rpartition("PRIMARY KEY (")[2].partition(")")[0].split(", ")
    found = duck.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in found.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    timed: list[tuple[float, dict[str, Any], dict[str, Any] | None]] = []
    for row in rows:
        own = {name: row[name] for name in key}
        at = dice.random()
        timed.append((at, own, row))
        if dice.random() < 0.1:
            timed.append((at * dice.random(), own, {**dice.choice(rows), **own}))
        if dice.random() < 0.05:
            other = {name: value + 10_000_000 for name, value in own.items()}
            timed += [(at, other, {**row, **other}), (at + dice.random(), other, None)]
    for _, own, value in sorted(timed, key=lambda message: message[0]):
        yield Record(topic, encoded(own), None if value is None else encoded(value))


def encoded(row: dict[str, Any]) -> bytes:
    return json.dumps(row, default=lambda v: v.isoformat() if isinstance(v, date) else float(v)).encode()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", QUERIES)
def test_query(number: int, laboratory: Laboratory) -> None:
    ours = Counter(map(rounded, laboratory.session.sql(QUERIES[number]).rows()))
    expected = laboratory.duck.execute(QUERIES[number]).fetchall()
    # Over no rows at all, an aggregate without GROUP BY gives a row with NULL there, and none here.
    assert ours == Counter(rounded(row) for row in expected if set(row) != {None})
    assert expected


def rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Averages and quotients have other numbers of digits."""
    return tuple(round(float(value), 2) if isinstance(value, float | Decimal) else value for value in row)
