"""A GROUP BY that begins where messages are read ends with the same groups, whatever the messages are like."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest
from kafka_lab import Lab, noting_answers

from headwater.connectors.kafka import source
from headwater.testing.kafka import Record

ROWS = [{"who": "abc"[i % 3], "n": i * 7 % 11, "x": i / 4} for i in range(240)]
SCRIPT = """
INSERT INTO s SELECT who, COUNT(*), COUNT(n), SUM(n), COUNT(DISTINCT n), AVG(x), MIN(n), MAX(who)
FROM t GROUP BY who"""


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each batch whether the short cut was taken; batches of a few rows are large here."""
    monkeypatch.setattr(source, "MANY_MESSAGES", 1)
    return noting_answers(monkeypatch, "read_groups")


def counted(rows: list[dict[str, Any]]) -> dict[Any, list[Any]]:
    groups = defaultdict(list)
    for row in rows:
        groups[row["who"]].append(row)
    found = {}
    for who, members in groups.items():
        numbers = [row["n"] for row in members if row["n"] is not None]
        average = sum(row["x"] for row in members) / len(members)
        found[who] = [len(members), len(numbers), sum(numbers), len(set(numbers)), average, min(numbers), who]
    return found


def result(lab: Lab, batches: list[list[bytes]]) -> dict[Any, list[Any]]:
    """Each list of messages is a batch of its own."""
    topic, sink = lab.topic("in", 2), lab.topic("out")
    session = lab.session()
    options = {"scan__startup__mode": "earliest-offset", "topic": topic}
    columns = "who STRING, c BIGINT, cn BIGINT, s BIGINT, d BIGINT, a DOUBLE, mi BIGINT, ma STRING"
    upserts = lab.ddl("s", f"{columns}, PRIMARY KEY (who) NOT ENFORCED", connector="upsert-kafka", topic=sink)
    session.sql(lab.ddl("t", "who STRING, n BIGINT, x DOUBLE", **options) + upserts + SCRIPT)
    (job,) = session.jobs
    for number, messages in enumerate(batches):
        job.pause()
        lab.kafka.produce(Record(topic, None, value, i % 2) for i, value in enumerate(messages))
        job.resume()
        while job.progress().batches <= number:
            assert not job.wait(0.05)
    job.stop()
    rows = [value for value in lab.values(sink) if value is not None]
    return {row["who"]: list(row.values())[1:] for row in rows}  # the last row of a key is its result


def test_ordinary_messages(lab: Lab, attempts: list[bool]) -> None:
    rows = [*ROWS, {"who": "a", "n": None, "x": 1.0}, {"who": "d", "n": 3, "x": 2.0}]
    messages = [json.dumps(row).encode() for row in rows]
    assert result(lab, [messages[:100], messages[100:]]) == counted(rows)
    assert attempts == [True, True]


def test_messages_that_take_the_longer_way(lab: Lab, attempts: list[bool]) -> None:
    messages = [json.dumps(row).encode() for row in ROWS]
    messages[50] = b'{"who": "c", "n": "6", "x": "12.5"}'  # read as numbers
    messages[150] = b"[" + messages[150] + b"," + messages[151] + b"]"  # two rows
    rows = [*ROWS, ROWS[151]]
    rows[50] = {"who": "c", "n": 6, "x": 12.5}
    parts = [messages[:100], messages[100:200], messages[200:220], messages[220:]]
    assert result(lab, parts) == counted(rows)
    assert attempts == [True, True, True]  # failed in the first batch, rested in the second
