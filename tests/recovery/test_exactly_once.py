"""Exactly-once under kill -9: every row is in the topic once, compared message by message by a reader that takes only
what is committed.

A few kills by default. The acceptance run is the same test with more of everything:

    HEADWATER_KILLS=20 HEADWATER_ROWS=1000000 pytest tests/recovery/test_exactly_once.py
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest
from confluent_kafka import Producer
from processes import await_progress, kill_all, kill_driver, kill_workers, running

from headwater.broker import Broker
from headwater.runtime.checkpoint import Checkpoint
from headwater.testing.kafka import Kafka

KILLS = int(os.environ.get("HEADWATER_KILLS", "2"))
ROWS = int(os.environ.get("HEADWATER_ROWS", "100000"))
BATCHES = KILLS * 4
PARTITIONS = 3
SIZES = (ROWS // BATCHES, ROWS // BATCHES // 4)  # of batches, from run to run: large ones are written without a shuffle
WAYS = (kill_workers, kill_driver, kill_workers, kill_workers, kill_all, kill_workers)

SCRIPT = """
SET 'headwater.batch.max-rows' = '${rows}';
CREATE TABLE source (id BIGINT, who STRING) WITH ('connector' = 'kafka', 'topic' = '${source}',
  'properties.bootstrap.servers' = '${kafka}', 'format' = 'csv',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
CREATE TABLE sink (id BIGINT, who STRING) WITH ('connector' = 'kafka', 'topic' = '${sink}',
  'properties.bootstrap.servers' = '${kafka}', 'format' = 'csv', 'key.format' = 'raw', 'key.fields' = 'who',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.parallelism' = '3');
INSERT INTO sink SELECT id, UPPER(who) FROM source;
"""


@pytest.mark.timeout(300 + 60 * KILLS)
def test_every_row_is_there_once(broker: Broker, unique_topic: Callable[[str], str], tmp_path: Path) -> None:
    dice = random.Random(7)
    kafka = Kafka(broker.bootstrap_servers)
    topics = {"source": unique_topic("source"), "sink": unique_topic("sink")}
    kafka.create(dict.fromkeys(topics.values(), PARTITIONS))
    _fill(broker.bootstrap_servers, topics["source"])
    script = tmp_path / "copy.sql"
    script.write_text(SCRIPT)
    checkpoint = Checkpoint(str(tmp_path / "state" / "1-sink"))
    variables = {**topics, "kafka": broker.bootstrap_servers}
    sizes = cycle(SIZES)
    number = 0
    while number < KILLS:
        variables["rows"] = str(next(sizes))
        with running(script, tmp_path / "state", variables, tmp_path / "log") as job:
            while number < KILLS and job.poll() is None:
                wanted = checkpoint.last_commit() + 1 + dice.randrange(2)
                await_progress(job, checkpoint, lambda wanted=wanted: checkpoint.last_commit() >= wanted)
                time.sleep(dice.random() * 0.5)
                WAYS[number % len(WAYS)](job)
                number += 1
    assert checkpoint.last_commit() < BATCHES, "the job was done before it was killed often enough"
    variables["rows"] = str(ROWS)  # what is left may be written at once
    with running(script, tmp_path / "state", variables, tmp_path / "log") as job:
        assert job.wait(240) == 0, (tmp_path / "log").read_text()
    assert _differences(kafka, topics["sink"]) == {}
    kafka.close()


def _fill(servers: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "queue.buffering.max.messages": 2_000_000})
    for number in range(ROWS):
        producer.produce(topic, f"{number},u{number % 1000}".encode(), partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def _differences(kafka: Kafka, topic: str) -> dict[tuple[bytes | None, bytes | None], int]:
    """Message → how often it is there beyond the one time it should be (-1: lost)."""
    ends = {partition: end for (_, partition), end in kafka.ends({topic: PARTITIONS}).items()}
    found = Counter((record.key, record.value) for record in kafka.read(topic, {}, ends))
    for number in range(ROWS):
        found[f"U{number % 1000}".encode(), f"{number},U{number % 1000}".encode()] -= 1
    return {message: count for message, count in found.items() if count}
