"""The topics and tables of one file of scripts at a time, and the engine that runs the scripts over them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Protocol

import headwater_answers
from answers import Answer
from flink_scripts import Script, ScriptFile, statements

import headwater
from headwater.session import Session
from headwater.testing import CaseRunner
from headwater.testing.codec import codec_of
from headwater.testing.kafka import Kafka, Record

__all__ = ["HeadwaterSide", "Laboratory", "Side"]

BATCH_ROWS = 5
"""Several batches per script: most changes meet state."""


class Side(Protocol):
    """An engine."""

    def open(self, tables: Sequence[str]) -> None: ...

    def answer(self, statements: Sequence[str]) -> Answer: ...

    def close(self) -> None: ...


class HeadwaterSide:
    def __init__(self, runner: CaseRunner) -> None:
        self._runner = runner
        self._session: Session | None = None

    def open(self, tables: Sequence[str]) -> None:
        self.close()
        self._session = headwater.connect(self._runner.spark())
        self._session.sql(f"SET 'headwater.batch.max-rows' = '{BATCH_ROWS}'; SET 'table.dml-sync' = 'true';")
        self._session.sql(";".join(tables))

    def answer(self, statements: Sequence[str]) -> Answer:
        assert self._session is not None
        return headwater_answers.answer(self._session, statements)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()


class Laboratory:
    def __init__(self, kafka: Kafka, side: Side) -> None:
        self._kafka = kafka
        self._side = side
        self._area = ""
        self._places: dict[str, str] = {}

    def answer(self, script: Script, file: ScriptFile) -> Answer:
        """The rows of its last SELECT, else what is in the topics that it writes."""
        if file.area != self._area:
            self._open(file)
        topics = {name: f"{name}-{uuid.uuid4().hex[:8]}" for name in script.outputs}
        self._kafka.create(dict.fromkeys(topics.values(), 1))
        places = {**self._places, **{f"out:{name}": topic for name, topic in topics.items()}}
        found = self._side.answer(statements(script.text, places))
        if found.failed or not topics or found.types:
            return found
        lines = [line for name, topic in topics.items() for line in self._messages(name, topic)]
        return Answer(("STRING",), rows=tuple(sorted(lines)))

    def _open(self, file: ScriptFile) -> None:
        stem = uuid.uuid4().hex[:6]
        self._area = file.area
        self._places = {name: f"{name}-{stem}" for name in file.topics} | {"kafka": self._kafka.bootstrap_servers}
        self._kafka.create({self._places[name]: topic.partitions for name, topic in file.topics.items()})
        tables = statements(file.tables, self._places)
        with headwater.Session() as known:
            known.sql(";".join(tables))
            for block in file.produced:
                codec = codec_of(self._places[block.topic], known.catalog.tables())
                self._kafka.produce([codec.record(message) for message in block.messages])
        self._side.open(tables)

    def _messages(self, name: str, topic: str) -> list[str]:
        """All messages without a key, and the last one of every key unless that deletes it: how often it was updated is
        for each to decide."""
        records = self._kafka.read(topic, {}, {0: self._kafka.ends({topic: 1})[topic, 0]})
        last = {record.key: record for record in records if record.key is not None}
        keyed = {key: record for key, record in last.items() if record.value is not None}
        return [_line(name, record) for record in [*(r for r in records if r.key is None), *keyed.values()]]


def _line(name: str, record: Record) -> str:
    key, value = ("null" if d is None else d.decode(errors="backslashreplace") for d in (record.key, record.value))
    return f"{name}: {key} => {value}"
