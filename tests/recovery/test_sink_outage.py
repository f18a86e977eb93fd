"""The broker of the sink goes away while the one of the source stays: every row is counted once.

HEADWATER_OUTAGE_SECONDS=20 sets how long it is away.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from second_broker import SecondBroker

from headwater.session import Session, connect
from headwater.testing import CaseRunner
from headwater.testing.kafka import Kafka, Record

ROWS = 70_000
FIRST = 20_000
PEOPLE = 500
PARTITIONS = 2
ARRAYS = (15_000, 45_000)  # messages that are a JSON array of one row: legal, and not for the column reader
OUTAGE_SECONDS = os.environ.get("HEADWATER_OUTAGE_SECONDS")
WAIT_SECONDS = 180.0
SEEN_SECONDS = 10.0  # by then the job says that the broker is away

SCRIPT = """
SET 'headwater.batch.max-rows' = '5000';
CREATE TABLE clicks (id BIGINT, who STRING) WITH ('connector' = 'kafka', 'topic' = '${source}', 'format' = 'json',
  'properties.bootstrap.servers' = '${from}', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE counts (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
  'topic' = 'counts', 'properties.bootstrap.servers' = '${to}', 'key.format' = 'raw', 'value.format' = 'json'${more});
INSERT INTO counts SELECT UPPER(who), COUNT(*) FROM clicks GROUP BY UPPER(who);
"""
GIVES_UP = ", 'properties.delivery.timeout.ms' = '3000', 'properties.request.timeout.ms' = '2000'"


@pytest.fixture
def sink_broker(tmp_path: Path) -> Iterator[SecondBroker]:
    with SecondBroker(tmp_path / "sink-broker") as running:
        yield running


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        pytest.param(GIVES_UP, 8.0, id="batch fails"),  # more than once: it gives up after three seconds
        pytest.param("", 20.0, id="producer waits", marks=pytest.mark.long),
    ],
)
def test_every_row_is_counted_once(
    options: str,
    seconds: float,
    case_runner: CaseRunner,
    sink_broker: SecondBroker,
    unique_topic: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """Either the client's own retries last as long as the outage, or the batch fails and is computed again."""
    source, sink, topic = case_runner.kafka(), Kafka(sink_broker.bootstrap_servers), unique_topic("clicks")
    source.create({topic: PARTITIONS})
    sink.create({"counts": PARTITIONS})
    places = {"from": source.bootstrap_servers, "to": sink.bootstrap_servers, "source": topic, "more": options}
    session = connect(case_runner.spark(), checkpoint=str(tmp_path / "state"), variables=places)
    session.sql(SCRIPT)
    _produce(source, topic, range(FIRST))
    _await(session, lambda: session.jobs[0].progress().batches > 0)
    _produce(source, topic, range(FIRST, ROWS))
    sink_broker.stop()  # takes about a second, in which batches are under way
    assert session.jobs[0].progress().rows_in < ROWS, "all was written before the broker had stopped"
    away = time.monotonic()
    _await(session, lambda: session.jobs[0].progress().status == "retrying")
    assert time.monotonic() - away < SEEN_SECONDS
    assert "does not answer" in session.jobs[0].progress().note
    time.sleep(max(0.0, away + float(OUTAGE_SECONDS or seconds) - time.monotonic()))
    assert session.jobs[0].progress().rows_in < ROWS
    sink_broker.start()
    _await(session, lambda: session.jobs[0].progress().rows_in >= ROWS)
    session.close()
    assert _counts(sink) == {f"P{i}": ROWS // PEOPLE for i in range(PEOPLE)}
    sink.close()


def _await(session: Session, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    [job] = session.jobs
    while not condition():
        if job.error is not None:
            raise job.error
        assert time.monotonic() < deadline, job.progress()
        time.sleep(0.01)


def _produce(kafka: Kafka, topic: str, numbers: range) -> None:
    kafka.produce(Record(topic, None, _message(number), number % PARTITIONS) for number in numbers)


def _message(number: int) -> bytes:
    row = {"id": number, "who": f"p{number % PEOPLE}"}
    return json.dumps([row] if number in ARRAYS else row).encode()


def _counts(kafka: Kafka) -> dict[str, int]:
    ends = {partition: end for (_, partition), end in kafka.ends({"counts": PARTITIONS}).items()}
    rows = [json.loads(record.value or b"") for record in kafka.read("counts", {}, ends)]
    return {row["who"]: row["n"] for row in rows}
