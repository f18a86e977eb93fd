"""The broker goes away and comes back: the job waits, says so, and goes on by itself; nothing is lost.

HEADWATER_OUTAGE_SECONDS=30 keeps it away for longer than a test run does.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.broker import Broker
from headwater.cli.view import PlainView
from headwater.control.meter import Meter
from headwater.execution.job import Job
from headwater.session import connect
from headwater.testing import CaseRunner
from headwater.testing.kafka import Kafka, Record

PATIENCE = 150.0
OUTAGE_SECONDS = float(os.environ.get("HEADWATER_OUTAGE_SECONDS", "6"))
ROWS = 3_000

SCRIPT = """
SET 'headwater.batch.max-rows' = '300';
CREATE TABLE numbers (n INT) WITH ('connector' = 'kafka', 'topic' = 'numbers', 'format' = 'json',
  'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE copies (n INT) WITH ('connector' = 'kafka', 'topic' = 'copies', 'format' = 'json',
  'properties.bootstrap.servers' = '${kafka}');
INSERT INTO copies SELECT n FROM numbers;
"""


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    broker = _start(tmp_path, 0)
    yield broker
    Broker.find(broker.directory).stop()  # type: ignore[union-attr]


def _start(directory: Path, port: int) -> Broker:
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return Broker.start(directory / "broker", port, die_with_parent=True, jvm_options=quick)


@pytest.mark.timeout(600)
def test_a_job_survives_the_absence_of_its_broker(case_runner: CaseRunner, own_broker: Broker, tmp_path: Path) -> None:
    servers = own_broker.bootstrap_servers
    kafka = Kafka(servers)
    kafka.create({"numbers": 2, "copies": 1})
    _produce(kafka, 0, ROWS)
    session = connect(case_runner.spark(), checkpoint=str(tmp_path / "state"), variables={"kafka": servers})
    session.sql(SCRIPT)
    [job] = session.jobs
    # In the middle of batches that follow each other without a pause.
    _await(job, lambda: job.progress().batches >= 3)
    own_broker.stop()
    time.sleep(OUTAGE_SECONDS)
    _start(tmp_path, own_broker.port)
    _await(job, lambda: job.progress().rows_in == ROWS)
    assert _copies(kafka) == set(range(ROWS))
    # While it waits for messages: now it can say what it waits for.
    Broker.find(own_broker.directory).stop()  # type: ignore[union-attr]
    _await(job, lambda: "No Kafka broker answers" in job.progress().note)  # the first request may end half-way
    assert f"No Kafka broker answers at '{servers}'. Trying again in " in job.progress().note
    lines: list[str] = []
    PlainView(lines.append).show([Meter(job.progress).read()])
    assert [line for line in lines if "No Kafka broker answers" in line]
    _start(tmp_path, own_broker.port)
    _produce(kafka, ROWS, ROWS + 10)
    _await(job, lambda: job.progress().rows_in == ROWS + 10)
    assert job.progress().note == ""
    assert _copies(kafka) == set(range(ROWS + 10))
    session.close()
    kafka.close()


def _await(job: Job, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if job.error is not None:
            raise job.error
        assert time.monotonic() < deadline, job.progress()
        time.sleep(0.05)


def _produce(kafka: Kafka, start: int, stop: int) -> None:
    kafka.produce(Record("numbers", None, json.dumps({"n": n}).encode(), n % 2) for n in range(start, stop))


def _copies(kafka: Kafka) -> set[int]:
    ends = {partition: end for (_, partition), end in kafka.ends({"copies": 1}).items()}
    return {json.loads(record.value or b"")["n"] for record in kafka.read("copies", {}, ends)}
