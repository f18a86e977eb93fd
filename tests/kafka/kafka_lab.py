"""A laboratory: topics of its own, messages, and sessions on the run's Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from headwater.session import Session, connect
from headwater.testing import CaseRunner
from headwater.testing.kafka import Kafka, Record


class Lab:
    """`script` is SQL with '${kafka}'; names of topics are made with `topic`."""

    def __init__(self, runner: CaseRunner, directory: Path) -> None:
        self.kafka: Kafka = runner.kafka()
        self.directory = directory
        self._runner = runner
        self._sessions: list[Session] = []

    def topic(self, stem: str, partitions: int = 1, *, create: bool = True) -> str:
        name = f"{stem}-{uuid.uuid4().hex[:8]}"
        if create:
            self.kafka.create({name: partitions})
        return name

    def produce(self, topic: str, rows: Sequence[Any], partition: int = 0, timestamp: int | None = None) -> None:
        """Each row as JSON; those of upsert topics are (key, row) pairs, whose row may be None."""
        pairs = [row if isinstance(row, tuple) else (None, row) for row in rows]
        self.kafka.produce(
            Record(topic, key and key.encode(), None if row is None else json.dumps(row).encode(), partition, timestamp)
            for key, row in pairs
        )

    def transaction(self, topic: str, rows: Sequence[Any], *, commit: bool) -> None:
        alone = {"max.in.flight.requests.per.connection": 1}  # see `producer_settings`
        servers = {"bootstrap.servers": self.kafka.bootstrap_servers}
        producer = Producer({**servers, **alone, "transactional.id": uuid.uuid4().hex})
        producer.init_transactions(30)
        producer.begin_transaction()
        for row in rows:
            producer.produce(topic, json.dumps(row), partition=0)
        producer.flush(30)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)

    @property
    def spark(self) -> SparkSession:
        return self._runner.spark()

    def session(self, checkpoint: str = "") -> Session:
        """On the run's Spark; batches follow each other quickly."""
        where = str(self.directory / checkpoint) if checkpoint else ""
        session = connect(self._runner.spark(), checkpoint=where, variables={"kafka": self.kafka.bootstrap_servers})
        self._sessions.append(session)
        return session

    def table(self, columns: str, **options: str) -> list[tuple[Any, ...]]:
        """What a table has, from its start position to its end, in order."""
        session = self.session()
        session.sql(self.ddl("t", columns, **options))
        return sorted(tuple(row) for row in session.table("t").collect())

    def ddl(self, name: str, columns: str, **options: str) -> str:
        """`__` in a name stands for '.', `_` for '-'."""
        given = {"connector": "kafka", "properties.bootstrap.servers": "${kafka}", "format": "json"}
        given |= {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
        if given["connector"] == "upsert-kafka":
            del given["format"]
            given |= {"key.format": "raw", "value.format": "json"}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        return f"CREATE TABLE {name} ({columns}) WITH ({listed});"

    def values(self, topic: str, partitions: int = 1) -> list[Any]:
        """All messages of a topic, without their keys."""
        ends = {p: end for (_, p), end in self.kafka.ends({topic: partitions}).items()}
        return [record.value and json.loads(record.value) for record in self.kafka.read(topic, {}, ends)]

    def close(self) -> None:
        for session in self._sessions:
            session.close()
