r"""Exactly-once under kill -9, and with the sink's broker away: every row is in the topic once, compared message by
message by a reader that takes only what is committed; and the counts of a job with state are right.

The acceptance run is the long one with more of everything:

    HEADWATER_ROWS=1000000 HEADWATER_KILLS=20 HEADWATER_OUTAGES=5 \
        pytest -m long -o faulthandler_timeout=3600 tests/recovery/test_exactly_once.py
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pytest
from copy_job import CopyJob
from processes import await_progress, kill_all, kill_driver, kill_workers
from second_broker import SecondBroker

from headwater.broker import Broker
from headwater.testing.kafka import Kafka

LONG_ROWS = int(os.environ.get("HEADWATER_ROWS", "200000"))
LONG_KILLS = int(os.environ.get("HEADWATER_KILLS", "6"))
LONG_OUTAGES = int(os.environ.get("HEADWATER_OUTAGES", "2"))
OUTAGE_SECONDS = float(os.environ.get("HEADWATER_OUTAGE_SECONDS", "20"))
VICTIMS = (kill_workers, kill_driver, kill_workers, kill_workers, kill_all, kill_workers)

MakeJob = Callable[[Kafka, int, str], CopyJob]


@pytest.fixture
def make_job(broker: Broker, unique_topic: Callable[[str], str], tmp_path: Path) -> Iterator[MakeJob]:
    """From the broker of the run to the one that is handed in: a number of rows, options of the sink."""
    source = Kafka(broker.bootstrap_servers)

    def make(sink: Kafka, rows: int, options: str) -> CopyJob:
        job = CopyJob(source, sink, (unique_topic("source"), unique_topic("sink")), rows, tmp_path, options)
        job.create()
        return job

    yield make
    source.close()


@pytest.mark.timeout(300 + 60 * LONG_KILLS)
@pytest.mark.parametrize(
    ("kills", "rows"), [(2, 100_000), pytest.param(LONG_KILLS, LONG_ROWS, marks=pytest.mark.long, id="long")]
)
def test_every_row_is_there_once_after_kills(kills: int, rows: int, broker: Broker, make_job: MakeJob) -> None:
    """Batches have two sizes, from run to run: a batch that was begun keeps its own."""
    dice = random.Random(7)
    kafka = Kafka(broker.bootstrap_servers)
    copy = make_job(kafka, rows, ", 'sink.parallelism' = '3'")
    checkpoint = copy.checkpoint
    batches = kills * 4
    sizes = cycle((rows // batches, rows // batches // 4))
    number = 0
    while number < kills:
        with copy.running(next(sizes)) as job:
            while number < kills and job.poll() is None:
                wanted = checkpoint.batch + 1 + dice.randrange(2)
                await_progress(job, checkpoint, lambda wanted=wanted: checkpoint.batch >= wanted)
                time.sleep(dice.random() * 0.5)
                VICTIMS[number % len(VICTIMS)](job)
                number += 1
    assert checkpoint.rows_read < rows, "the job was done before it was killed often enough"
    copy.finish()
    assert copy.differences() == {}
    assert copy.miscounted() == {}
    kafka.close()


@pytest.mark.long
@pytest.mark.timeout(300 + (60 + OUTAGE_SECONDS) * LONG_OUTAGES)
def test_every_row_is_there_once_after_outages_of_the_sink(make_job: MakeJob, tmp_path: Path) -> None:
    dice = random.Random(13)
    with SecondBroker(tmp_path / "sink-broker") as away:
        kafka = Kafka(away.bootstrap_servers)
        copy = make_job(kafka, LONG_ROWS, "")
        checkpoint = copy.checkpoint
        with copy.running(LONG_ROWS // (LONG_OUTAGES * 20)) as job:
            for _ in range(LONG_OUTAGES):
                wanted = checkpoint.batch + 1 + dice.randrange(2)
                await_progress(job, checkpoint, lambda wanted=wanted: checkpoint.batch >= wanted)
                away.stop()
                assert checkpoint.rows_read < LONG_ROWS, "the job was done before its sink was away often enough"
                time.sleep(OUTAGE_SECONDS)
                away.start()
            await_progress(job, checkpoint, lambda: job.poll() is not None or checkpoint.rows_read >= LONG_ROWS)
            assert job.wait(240) == 0, (tmp_path / "log").read_text()
        assert copy.differences() == {}
        assert copy.miscounted() == {}
        kafka.close()
