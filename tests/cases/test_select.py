"""SELECT on a real broker: rows, changes, batch mode, limits, back pressure, and its end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest

import headwater
from headwater.errors import JobError, ResultTooLargeError
from headwater.session import Session
from headwater.testing import CaseRunner
from headwater.testing.kafka import Kafka, Record

TABLES = """
CREATE TABLE clicks (id INT, who STRING) WITH (
  'connector' = 'kafka', 'topic' = '${clicks}', 'properties.bootstrap.servers' = '${kafka}',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE people (id STRING, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${people}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'json');
"""
BATCH = "SET 'execution.runtime-mode' = 'batch'; "
COUNTS = "SELECT who, COUNT(*) AS n FROM clicks GROUP BY who"


@pytest.fixture(scope="module")
def kafka(case_runner: CaseRunner) -> Kafka:
    return case_runner.kafka()


@pytest.fixture(scope="module")
def topics(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    stem = tmp_path_factory.mktemp("select").name
    names = {"clicks": f"clicks-{stem}", "people": f"people-{stem}"}
    kafka.create({names["clicks"]: 2, names["people"]: 1})
    kafka.produce(_click(names, number, "ab"[number % 2]) for number in range(10))
    people = [("1", "ann"), ("2", "bob"), ("1", "anna"), ("2", None)]
    kafka.produce(
        Record(names["people"], key.encode(), json.dumps({"id": key, "name": name}).encode() if name else None)
        for key, name in people
    )
    return names


def _click(names: dict[str, str], number: int, who: str) -> Record:
    return Record(names["clicks"], None, json.dumps({"id": number, "who": who}).encode())


@pytest.fixture
def session(case_runner: CaseRunner, kafka: Kafka, topics: dict[str, str]) -> Iterator[Session]:
    with headwater.connect(case_runner.spark(), variables={**topics, "kafka": kafka.bootstrap_servers}) as opened:
        opened.sql(TABLES)
        yield opened
        assert not any(query.running for query in opened.queries if query.bounded)


def test_rows_of_a_query_that_ends(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    session.sql(BATCH)
    ordered = session.sql("SELECT id, who FROM clicks WHERE id > 3 ORDER BY who DESC, id LIMIT 4")
    assert ordered.rows() == [(5, "b"), (7, "b"), (9, "b"), (4, "a")]
    assert ordered.to_arrow().to_pydict() == {"id": [5, 7, 9, 4], "who": ["b", "b", "b", "a"]}
    assert list(ordered.to_pandas().columns) == ["id", "who"]
    ordered.show()
    assert capsys.readouterr().out.splitlines()[-1] == "4 rows"
    assert session.sql(COUNTS + " ORDER BY who").rows() == [("a", 5), ("b", 5)]
    assert session.sql("SELECT who FROM clicks WHERE id > 100").to_arrow().num_rows == 0
    assert "SELECT" not in repr(ordered[0].query)
    assert not session.jobs


def test_an_upsert_table_in_batch_mode_is_the_newest_row_of_each_key(session: Session) -> None:
    session.sql(BATCH)
    assert session.sql("SELECT * FROM people").rows() == [("1", "anna")]
    assert [*session.sql("SELECT * FROM people").changes()] == [("+I", ("1", "anna"))]


@headwater.udaf
class Largest:
    def create_accumulator(self) -> list[int]:
        return []

    def accumulate(self, accumulator: list[int], value: int) -> None:
        accumulator[:] = [max([value, *accumulator])]

    def get_value(self, accumulator: list[int]) -> int:
        return accumulator[0]


def test_an_aggregate_function_in_batch_mode(session: Session) -> None:
    session.register("largest", Largest)
    session.sql(BATCH)
    found = session.sql("SELECT who, largest(id), largest(DISTINCT id) FROM clicks GROUP BY who ORDER BY who")
    assert found.rows() == [("a", 8, 8), ("b", 9, 9)]


def test_limit_ends_a_query_without_an_end(session: Session) -> None:
    assert len(session.sql("SELECT * FROM clicks LIMIT 3").rows()) == 3
    assert len([*session.sql("SELECT * FROM clicks LIMIT 2 OFFSET 1").changes()]) == 2
    assert session.sql("SELECT * FROM clicks LIMIT 0").to_arrow().column_names == ["id", "who"]
    session.sql(BATCH)
    assert (
        len(session.sql("SELECT * FROM clicks OFFSET 3").rows()) == len(session.sql("SELECT * FROM clicks").rows()) - 3
    )


def test_changes_of_a_query_that_ends_are_ordered_and_limited(session: Session) -> None:
    session.sql(BATCH)
    for query in (
        "SELECT id, who FROM clicks ORDER BY id DESC LIMIT 3",
        "SELECT id FROM clicks ORDER BY id LIMIT 2 OFFSET 1",
        "SELECT who, COUNT(*) FROM clicks GROUP BY who ORDER BY who LIMIT 1",
    ):
        rows = session.sql(query).rows()
        assert [*session.sql(query).changes()] == [("+I", row) for row in rows]
    assert len([*session.sql("SELECT who, COUNT(*) FROM clicks GROUP BY who LIMIT 1").changes()]) == 1


def test_changes_of_a_query_without_an_end(session: Session, kafka: Kafka, topics: dict[str, str]) -> None:
    counting = session.sql(COUNTS)
    assert sorted(counting.rows()) == [("a", 5), ("b", 5)]
    assert "running" in counting._repr_html_()
    with pytest.raises(JobError, match="have been read"):
        counting.changes()
    changes = session.sql(COUNTS).changes()
    assert {next(changes), next(changes)} == {("+I", ("a", 5)), ("+I", ("b", 5))}
    kafka.produce([_click(topics, 10, "a")])
    assert [next(changes), next(changes)] == [("-U", ("a", 5)), ("+U", ("a", 6))]
    _eventually(lambda: ("a", 6) in counting.rows())
    changes.close()
    counting.stop()
    assert ("a", 6) in counting.rows()
    assert not any(query.running for query in session.queries)
    kafka.produce([_click(topics, 10, "b")])  # as many as before, for the other tests


def test_a_query_without_an_end_over_a_topic_without_messages(
    session: Session, kafka: Kafka, unique_topic: Callable[[str], str]
) -> None:
    empty = unique_topic("empty")
    kafka.create({empty: 1})
    options = f"/*+ OPTIONS('topic' = '{empty}') */"
    waiting = session.sql(f"SELECT who, COUNT(*) AS n FROM clicks {options} GROUP BY who")
    assert waiting.rows() == []
    assert waiting.to_arrow().column_names == ["who", "n"]
    waiting.stop()


def test_a_result_that_is_too_large_is_an_error(session: Session) -> None:
    session.sql(BATCH + "SET 'sql-client.execution.max-table-result.rows' = '3'")
    with pytest.raises(ResultTooLargeError, match="more than 3 rows"):
        session.sql("SELECT * FROM clicks").rows()


def test_what_fails_is_raised_where_rows_are_asked_for(session: Session) -> None:
    session.sql(BATCH)
    with pytest.raises(JobError):
        session.sql("SELECT id / 0 FROM clicks").rows()


def _eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
