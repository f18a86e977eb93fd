"""Nexmark's queries over events that arrive out of order, in several batches, compared with DuckDB's answers.

q6 and q13 are not taken, and q12 depends on the clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import duckdb
import pytest
from nexmark_answers import ANSWERS
from nexmark_events import Nexmark

from headwater.session import Session, connect
from headwater.testing import CaseRunner
from headwater.testing.kafka import Kafka, Record

HERE = Path(__file__).parent
EVENTS = 3_000
PARTITIONS = 2
IN_EVERY_RUN = ("q4", "q5", "q8", "q9", "q11")
"""A join below two aggregations, windows that are joined with windows of them and with others, ranks, sessions."""


@pytest.fixture(scope="module")
def topic(case_runner: CaseRunner, unique_topic: Callable[[str], str]) -> str:
    """Of a name of its own: a process that gets its tests of this module in two parts sets it up twice."""
    kafka: Kafka = case_runner.kafka()
    name = unique_topic("nexmark")
    kafka.create({name: PARTITIONS})
    messages = Nexmark(out_of_order=3.0).messages(EVENTS)
    kafka.produce(Record(name, None, message, number % PARTITIONS) for number, message in enumerate(messages))
    return name


@pytest.fixture(scope="module")
def session(case_runner: CaseRunner, topic: str) -> Iterator[Session]:
    places = {"kafka": case_runner.kafka().bootstrap_servers, "events": topic, "sink": "unused", "side": "unused"}
    with connect(case_runner.spark(), variables=places) as connected:
        connected.sql(f"SET 'execution.runtime-mode' = 'batch'; SET 'headwater.batch.max-rows' = '{EVENTS // 4}';")
        connected.sql((HERE / "tables.sql").read_text(encoding="utf-8"))
        connected.sql("CREATE FUNCTION count_char AS 'nexmark_functions.count_char' LANGUAGE PYTHON")
        yield connected


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    """The three streams as tables."""
    events = list(Nexmark(out_of_order=3.0).events(EVENTS))
    with duckdb.connect() as database:
        for name in ("person", "auction", "bid"):
            rows = [event[name] for event in events if event[name] is not None]
            columns = ", ".join(f'"{key}" {_type(key, value)}' for key, value in rows[0].items())
            database.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join("?" for _ in rows[0])
            database.executemany(f"INSERT INTO {name} VALUES ({marks})", [list(row.values()) for row in rows])
        yield database


def _type(column: str, value: object) -> str:
    if column in ("dateTime", "expires"):
        return "TIMESTAMP"
    return "BIGINT" if isinstance(value, int) else "VARCHAR"


@pytest.mark.parametrize(
    "name", [pytest.param(q, marks=[] if q in IN_EVERY_RUN else [pytest.mark.long]) for q in ANSWERS]
)
def test_results(name: str, session: Session, oracle: duckdb.DuckDBPyConnection) -> None:
    text = (HERE / f"{name}.sql").read_text(encoding="utf-8")
    query = text[text.index("INSERT INTO result\n") + len("INSERT INTO result\n") :]
    got = Counter(tuple(map(_plain, row)) for row in session.sql(query).rows())
    expected = Counter(tuple(map(_plain, row)) for row in oracle.execute(ANSWERS[name]).fetchall())
    assert expected, "a query without an answer shows nothing"
    assert got == expected


def _plain(value: object) -> object:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
