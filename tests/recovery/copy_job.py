"""An exactly-once copy from topic to topic, as a process, and the check that every row is there once. Beside it, a job
with state counts the rows of each key."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from checkpoint_view import CheckpointView
from confluent_kafka import Producer
from processes import Job, running

from headwater.testing.kafka import Kafka, Record

PARTITIONS = 3
KEYS = 1000

SCRIPT = """
SET 'headwater.batch.max-rows' = '${batch}';
CREATE TABLE source (id BIGINT, who STRING) WITH ('connector' = 'kafka', 'topic' = '${source}',
  'properties.bootstrap.servers' = '${from}', 'format' = 'csv',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
CREATE TABLE sink (id BIGINT, who STRING) WITH ('connector' = 'kafka', 'topic' = '${sink}',
  'properties.bootstrap.servers' = '${to}', 'format' = 'csv', 'key.format' = 'raw', 'key.fields' = 'who',
  'sink.delivery-guarantee' = 'exactly-once'${options});
CREATE TABLE counts (who STRING, n BIGINT, ids BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${sink}-counts', 'properties.bootstrap.servers' = '${to}',
  'key.format' = 'raw', 'value.format' = 'json');
INSERT INTO sink SELECT id, UPPER(who) FROM source;
INSERT INTO counts SELECT who, COUNT(*), COUNT(DISTINCT id) FROM source GROUP BY who;
"""


@dataclass(frozen=True)
class CopyJob:
    """`options` are further ones of the sink, each behind a comma."""

    source: Kafka
    sink: Kafka
    topics: tuple[str, str]
    rows: int
    directory: Path
    options: str = ""

    def create(self) -> None:
        """The topics, the rows and the script."""
        source, sink = self.topics
        self.source.create({source: PARTITIONS})
        self.sink.create({sink: PARTITIONS, f"{sink}-counts": PARTITIONS})
        settings = {"linger.ms": 5, "queue.buffering.max.messages": 2_000_000}
        producer = Producer({"bootstrap.servers": self.source.bootstrap_servers, **settings})
        for number in range(self.rows):
            producer.produce(source, f"{number},u{number % KEYS}".encode(), partition=number % PARTITIONS)
        assert producer.flush(120) == 0
        (self.directory / "copy.sql").write_text(SCRIPT)

    @property
    def checkpoint(self) -> CheckpointView:
        return CheckpointView(self.directory / "state" / "sink")

    @contextmanager
    def running(self, batch_rows: int) -> Iterator[Job]:
        variables = {
            "source": self.topics[0],
            "sink": self.topics[1],
            "from": self.source.bootstrap_servers,
            "to": self.sink.bootstrap_servers,
            "batch": str(batch_rows),
            "options": self.options,
        }
        script, state, log = (self.directory / name for name in ("copy.sql", "state", "log"))
        with running(script, state, variables, log) as job:
            yield job

    def finish(self) -> None:
        """What is left, in one batch."""
        with self.running(self.rows) as job:
            assert job.wait(240) == 0, (self.directory / "log").read_text()

    def differences(self) -> dict[tuple[bytes | None, bytes | None], int]:
        """Message → how often it is there beyond the one time it should be (-1: lost)."""
        found = Counter((record.key, record.value) for record in self._written(self.topics[1]))
        for number in range(self.rows):
            found[f"U{number % KEYS}".encode(), f"{number},U{number % KEYS}".encode()] -= 1
        return {message: count for message, count in found.items() if count}

    def miscounted(self) -> dict[str, tuple[int, int]]:
        """Keys whose last count, of rows or of different ids, is wrong."""
        rows = [json.loads(record.value or b"{}") for record in self._written(f"{self.topics[1]}-counts")]
        last = {row["who"]: (row["n"], row["ids"]) for row in rows}
        right = Counter(f"u{number % KEYS}" for number in range(self.rows))
        return {key: last.get(key, (0, 0)) for key, n in right.items() if last.get(key) != (n, n)}

    def _written(self, topic: str) -> list[Record]:
        ends = {partition: end for (_, partition), end in self.sink.ends({topic: PARTITIONS}).items()}
        return self.sink.read(topic, {}, ends)
