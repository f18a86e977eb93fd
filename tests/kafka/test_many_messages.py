"""Large batches: the same rows as a recount, and one bad message is found.

Some keys come again and again, some are deleted. The bad message is the last one of its key: whoever leaves it out must
still know what its key had before.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from kafka_lab import Lab

from headwater.errors import BadRecordError
from headwater.session import Session
from headwater.testing import CaseRunner
from headwater.testing.kafka import Record

COUNT = 20_000
PARTITIONS = 3
BAD = b'{"id":"x","n":"seven","price":'
COLUMNS = "id STRING, n BIGINT, price DECIMAL(10, 2), name STRING, place ROW<x INT, y STRING>"
NAMES = ("id", "n", "price", "name", "place")
PLAIN = {"json__encode__decimal_as_plain_number": "true"}


@dataclass(frozen=True)
class History:
    """Messages in order, and what is left of them as a log and as a table."""

    messages: list[tuple[bytes, bytes | None]]
    log: Counter[str]
    table: dict[bytes, str]


def history() -> History:
    dice, made = Random(3), History([], Counter(), {})
    for number in range(COUNT):
        key = f"k{dice.randrange(4_000)}"
        made.table.pop(key.encode(), None)
        if dice.random() < 0.2:
            made.messages.append((key.encode(), None))
            continue
        row = _row(dice, key, number)
        given = {name: value for name, value in row.items() if value is not None or dice.random() < 0.5}
        made.messages.append((key.encode(), json.dumps(given, ensure_ascii=dice.random() < 0.5).encode()))
        made.log[_shown(row)] += 1
        made.table[key.encode()] = _shown(row)
    return made


def _row(dice: Random, key: str, number: int) -> dict[str, Any]:
    place = {"x": dice.randrange(9), "y": dice.choice(["é", "", None])}
    name = dice.choice(["ann", "Zoë", 'a "quoted" \\ name', "", None])
    return {"id": key, "n": number, "price": number / 4, "name": name, "place": dice.choice([place, None])}


def _shown(row: dict[str, Any]) -> str:
    """The row as text in which equal numbers look equal."""
    price = row["price"] if row["price"] is None else str(Decimal(str(row["price"])).quantize(Decimal("0.01")))
    return json.dumps([price if name == "price" else row[name] for name in NAMES])


@pytest.fixture(scope="module")
def said() -> History:
    return history()


@pytest.fixture(scope="module")
def topics(case_runner: CaseRunner, said: History) -> Topics:
    """The messages, and the same with a bad one among them."""
    kafka, suffix = case_runner.kafka(), uuid.uuid4().hex[:8]
    made = Topics(f"good-{suffix}", f"bad-{suffix}", min(said.table))
    last = max(place for place, (key, _) in enumerate(said.messages) if key == made.bad_key)
    kafka.create({made.good: PARTITIONS, made.bad: PARTITIONS})
    kafka.produce(Record(made.good, *message) for message in said.messages)
    kafka.produce(Record(made.bad, *message) for message in said.messages[: last + 1])
    kafka.produce([Record(made.bad, made.bad_key, BAD)])
    kafka.produce(Record(made.bad, *message) for message in said.messages[last + 1 :])
    return made


@dataclass(frozen=True)
class Topics:
    good: str
    bad: str
    bad_key: bytes


@pytest.fixture(params=["kafka", "upsert-kafka"])
def stage(request: pytest.FixtureRequest, lab: Lab, topics: Topics) -> Stage:
    return Stage(lab, request.param, topics)


class Stage:
    """One kind of table over the topics."""

    def __init__(self, lab: Lab, connector: str, topics: Topics) -> None:
        self.lab, self.connector, self.topics = lab, connector, topics
        self._key = ", PRIMARY KEY (id) NOT ENFORCED" if connector == "upsert-kafka" else ""

    def copied(self, topic: str, **options: str) -> tuple[Session, str]:
        """A job that copies all of the topic, and the topic it copies to."""
        sink, session = self.lab.topic("sink"), self.lab.session()
        start = {} if self._key else {"scan__startup__mode": "earliest-offset"}
        options |= {"topic": topic, "connector": self.connector, "scan__bounded__mode": "latest-offset", **start}
        plain = {f"value__{key}" if self._key else key: value for key, value in PLAIN.items()}
        written = self.lab.ddl("s", COLUMNS + self._key, topic=sink, connector=self.connector, **plain)
        session.sql(self.lab.ddl("t", COLUMNS + self._key, **options) + written + "INSERT INTO s SELECT * FROM t;")
        return session, sink

    def rows(self, sink: str) -> Any:
        """As the history has them."""
        end = self.lab.kafka.ends({sink: 1})[sink, 0]
        records = self.lab.kafka.read(sink, {}, {0: end})
        if not self._key:
            return Counter(_shown(json.loads(record.value or b"")) for record in records)
        table: dict[bytes, str] = {}
        for record in records:
            assert record.key is not None
            table.pop(record.key, None)
            if record.value is not None:
                table[record.key] = _shown(json.loads(record.value))
        return table

    def expected(self, said: History) -> Any:
        return said.table if self._key else said.log

    def place(self) -> tuple[int, int]:
        """The partition and offset of the bad message."""
        ends = {p: end for (_, p), end in self.lab.kafka.ends({self.topics.bad: PARTITIONS}).items()}
        records = self.lab.kafka.read(self.topics.bad, {}, ends)
        [partition] = [r.partition for r in records if r.value == BAD]
        mine = [r.value for r in records if r.partition == partition]
        return int(partition or 0), mine.index(BAD)


def test_results_are_those_of_a_recount(stage: Stage, said: History) -> None:
    session, sink = stage.copied(stage.topics.good)
    session.wait()
    assert session.jobs[0].progress().batches == 1
    assert stage.rows(sink) == stage.expected(said)


def test_a_bad_message_is_named(stage: Stage) -> None:
    session, _ = stage.copied(stage.topics.bad)
    with pytest.raises(BadRecordError) as raised:
        session.wait()
    partition, offset = stage.place()
    text = str(raised.value)
    assert f"topic '{stage.topics.bad}', partition {partition}, offset {offset}" in text
    assert '"n":"seven"' in text


def test_a_bad_message_and_nothing_else_is_left_out_or_kept(stage: Stage, said: History) -> None:
    dead = stage.lab.topic("dead")
    keeping = {"scan__bad_records": "dead-letter", "scan__dead_letter__topic": dead}
    for options in ({"scan__bad_records": "skip"}, keeping):
        session, sink = stage.copied(stage.topics.bad, **options)
        session.wait()
        assert session.jobs[0].progress().batches == 1
        assert session.jobs[0].progress().bad_records == 1
        assert stage.rows(sink) == stage.expected(said)
    partition, offset = stage.place()
    [letter] = stage.lab.kafka.read(dead, {}, {0: stage.lab.kafka.ends({dead: 1})[dead, 0]})
    assert (letter.key, letter.value) == (stage.topics.bad_key, BAD)
    told = {name: value.decode() for name, value in letter.headers}
    assert (told["headwater.topic"], told["headwater.partition"]) == (stage.topics.bad, str(partition))
    assert told["headwater.offset"] == str(offset)
