"""What happens as time passes and no message comes, on a real broker: partitions become idle, and windows of processing
time end."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import pytest

import headwater
from headwater.session import Session
from headwater.testing import CaseRunner
from headwater.testing.kafka import Kafka, Record

TABLE = """
CREATE TABLE clicks (who STRING, ts TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'kafka', 'topic' = '${clicks}', 'properties.bootstrap.servers' = '${kafka}',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE patient WITH ('scan.watermark.idle-timeout' = '1 s') LIKE clicks;
"""
COUNTS = (
    "SELECT who, window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE {}, DESCRIPTOR({}), INTERVAL '2' SECOND)) "
    "GROUP BY who, window_start, window_end"
)


@pytest.fixture
def session(case_runner: CaseRunner, unique_topic: Callable[[str], str]) -> Iterator[Session]:
    """Of the two partitions one has no message."""
    kafka: Kafka = case_runner.kafka()
    topic = unique_topic("clicks")
    kafka.create({topic: 2})
    rows = [("a", "10:00:00"), ("b", "10:00:01"), ("a", "10:00:05")]
    kafka.produce(
        Record(topic, None, json.dumps({"who": who, "ts": f"2024-01-01 {at}"}).encode(), 0) for who, at in rows
    )
    with headwater.connect(
        case_runner.spark(), variables={"clicks": topic, "kafka": kafka.bootstrap_servers}
    ) as opened:
        opened.sql(TABLE)
        yield opened


@pytest.mark.parametrize("table", ["clicks", "patient"])
def test_a_partition_without_messages_becomes_idle(session: Session, table: str) -> None:
    if table == "clicks":
        session.sql("SET 'table.exec.source.idle-timeout' = '1 s'")
    changes = session.sql(COUNTS.format(table, "ts")).changes()
    start = datetime(2024, 1, 1, 10)  # noqa: DTZ001 - a window has no zone
    assert {next(changes), next(changes)} == {("+I", ("a", start, 1)), ("+I", ("b", start, 1))}
    changes.close()


def test_windows_of_processing_time_end_without_messages(session: Session) -> None:
    changes = session.sql(COUNTS.format("clicks", "pt")).changes()
    found: Counter[str] = Counter()
    while found.total() < 3:
        kind, (who, start, count) = next(changes)
        assert kind == "+I"
        assert (start - datetime(1970, 1, 1)) % timedelta(seconds=2) == timedelta(0)  # noqa: DTZ001 - no zone either
        found[who] += count
    changes.close()
    assert found == {"a": 2, "b": 1}


def test_rows_of_an_interval_join_by_processing_time_end_without_messages(session: Session) -> None:
    """The right has no row that matches, so the left shows its rows alone when their interval is over."""
    within = "y.pt BETWEEN x.pt AND x.pt + INTERVAL '1' SECOND"
    query = f"SELECT x.who, y.who FROM clicks AS x LEFT JOIN clicks AS y ON x.who = CONCAT(y.who, '?') AND {within}"
    changes = session.sql(query).changes()
    found = Counter(next(changes) for _ in range(3))
    changes.close()
    assert found == {("+I", ("a", None)): 2, ("+I", ("b", None)): 1}


def test_a_topic_is_read_once_for_several_window_aggregations(session: Session, plans_with_reuse: list[str]) -> None:
    windows = "TABLE(TUMBLE(TABLE patient, DESCRIPTOR(ts), INTERVAL '2' SECOND)) GROUP BY window_start, window_end"
    by_who = f"SELECT who, window_start AS s, window_end AS e, COUNT(*) AS n FROM {windows}, who"
    of_all = f"SELECT window_start AS s, window_end AS e, COUNT(DISTINCT who) AS m FROM {windows}"
    changes = session.sql(
        f"SELECT a.who, a.n, b.m FROM ({by_who}) AS a JOIN ({of_all}) AS b ON a.s = b.s AND a.e = b.e"
    ).changes()
    assert {next(changes), next(changes)} == {("+I", ("a", 1, 2)), ("+I", ("b", 1, 2))}
    changes.close()
    assert plans_with_reuse
    assert {len(re.findall(r"Range \(0, ", plan)) for plan in plans_with_reuse} == {1}, plans_with_reuse[0]
