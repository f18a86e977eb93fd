"""Jobs whose checkpoints lie in a real object store: stopped, killed and continued as if on other hosts; and a second
run of the same jobs, or a rescale, while the first is at work."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
from checkpoint_view import CheckpointView
from orders import ORDERS_TABLE, TOTALS_JOB, Orders, totals_in
from processes import Job, await_progress, kill_all, kill_driver, running
from typer.testing import CliRunner

from headwater.broker import Broker
from headwater.cli import app
from headwater.protocol.locations import join
from headwater.testing.kafka import Kafka
from object_server import SECRET, ObjectServer

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

PARTITIONS = 2
PLACED, CHANGES = 250, 5_000
SCRIPT = f"""
SET 'headwater.batch.max-rows' = '150';
{ORDERS_TABLE}
{TOTALS_JOB}
CREATE TABLE changes (line STRING) WITH ('connector' = 'kafka', 'topic' = '${{orders}}', 'format' = 'raw',
  'properties.bootstrap.servers' = '${{kafka}}', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE copies (line STRING) WITH ('connector' = 'kafka', 'topic' = '${{copies}}', 'format' = 'raw',
  'properties.bootstrap.servers' = '${{kafka}}', 'sink.delivery-guarantee' = 'exactly-once');
INSERT INTO copies SELECT line FROM changes WHERE line IS NOT NULL;
"""


@dataclass
class Jobs:
    """Totals with state, and an exactly-once copy, of the same topic."""

    kafka: Kafka
    root: str
    topics: dict[str, str]
    directory: Path
    orders: Orders

    def running(self, log: str = "log") -> AbstractContextManager[Job]:
        variables = {**self.topics, "kafka": self.kafka.bootstrap_servers}
        return running(self.directory / "jobs.sql", self.root, variables, self.directory / log)

    @property
    def checkpoints(self) -> list[CheckpointView]:
        return [CheckpointView(join(self.root, name)) for name in ("totals", "copies")]

    def await_batches(self, job: Job, more: int) -> None:
        """Until both jobs have committed so many more."""
        for checkpoint in self.checkpoints:
            wanted = checkpoint.batch + more
            await_progress(job, checkpoint, lambda c=checkpoint, wanted=wanted: c.batch >= wanted)  # type: ignore[misc]

    def finish(self, job: Job) -> None:
        """Until all is read; then stop in order."""
        for checkpoint in self.checkpoints:
            await_progress(job, checkpoint, lambda c=checkpoint: c.rows_read >= self.orders.sent)  # type: ignore[misc]
        self.stop(job)

    def change_until_ended(self, job: Job) -> None:
        """Some changes all the time, so that whoever runs has something to write."""
        deadline = time.monotonic() + 120
        while True:
            self.orders.change(10)
            try:
                job.wait(0.2)
                return
            except subprocess.TimeoutExpired:
                assert time.monotonic() < deadline, "the job goes on"

    def stop(self, job: Job) -> None:
        job.terminate()  # not its whole group: Spark's JVM must live until the current batch is done
        assert job.wait(60) == 0, self.said()

    def left(self) -> list[int]:
        return [self.orders.sent - checkpoint.rows_read for checkpoint in self.checkpoints]

    def said(self, log: str = "log") -> str:
        return (self.directory / log).read_text()

    def differences(self) -> dict[bytes | None, int]:
        """Message → how often it is copied beyond as often as it was sent."""
        found = Counter(self._values("copies"))
        found.subtract(value for value in self._values("orders") if value is not None)
        return {value: count for value, count in found.items() if count}

    def _values(self, name: str) -> list[bytes | None]:
        topic = self.topics[name]
        ends = {partition: end for (_, partition), end in self.kafka.ends({topic: PARTITIONS}).items()}
        return [record.value for record in self.kafka.read(topic, {}, ends)]

    def check(self) -> None:
        assert totals_in(self.kafka, self.topics["totals"], PARTITIONS) == self.orders.recount()
        assert self.differences() == {}


@pytest.fixture
def jobs(
    object_server: ObjectServer, broker: Broker, unique_topic: Callable[[str], str], tmp_path: Path
) -> Iterator[Jobs]:
    kafka = Kafka(broker.bootstrap_servers)
    topics = {name: unique_topic(name) for name in ("orders", "totals", "copies")}
    kafka.create(dict.fromkeys(topics.values(), PARTITIONS))
    orders = Orders(kafka, topics["orders"])
    orders.place(PLACED)
    orders.change(CHANGES)
    (tmp_path / "jobs.sql").write_text(SCRIPT)
    yield Jobs(kafka, object_server.location(uuid.uuid4().hex), topics, tmp_path, orders)
    kafka.close()


@pytest.fixture
def other_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Makes the next run begin without copies of the checkpoint's files."""
    made: list[str] = []

    def move() -> None:
        made.append(tempfile.mkdtemp(prefix="hw-", dir="/tmp"))  # short: sockets lie there
        monkeypatch.setenv("TMPDIR", made[-1])

    yield move
    for directory in made:
        shutil.rmtree(directory, ignore_errors=True)


def test_jobs_are_stopped_killed_and_continued(jobs: Jobs, other_host: Callable[[], None]) -> None:
    for end in (jobs.stop, kill_all, kill_driver):
        other_host()
        with jobs.running() as job:
            jobs.await_batches(job, 2)
            end(job)
    assert min(jobs.left()) > 0, "the jobs were done before they were killed"
    other_host()
    with jobs.running() as job:
        jobs.finish(job)
    jobs.check()
    assert SECRET not in jobs.said()


def test_of_two_runs_one_stops(jobs: Jobs) -> None:
    with jobs.running("first.log") as first:
        jobs.await_batches(first, 2)
        with jobs.running("second.log") as second:
            jobs.change_until_ended(first)
            jobs.finish(second)
    assert first.returncode != 0
    assert "Another run of this job has taken the checkpoint over." in jobs.said("first.log")
    jobs.check()


def test_a_rescale_takes_the_checkpoint_of_a_running_job_over(jobs: Jobs) -> None:
    with jobs.running("first.log") as first:
        jobs.await_batches(first, 2)
        command = ["checkpoint", "rescale", join(jobs.root, "totals"), "--partitions", "5"]
        rescaled = CliRunner().invoke(app, command)
        jobs.change_until_ended(first)
    assert first.returncode != 0
    assert "Another run of this job has taken the checkpoint over." in jobs.said("first.log")
    # A batch that was under way stays with its partitions, and a run must finish it first.
    assert rescaled.exit_code == 0 or "of this checkpoint is not finished" in str(rescaled.exception)
    with jobs.running("second.log") as second:
        jobs.finish(second)
    jobs.check()
    assert CliRunner().invoke(app, command).exit_code == 0
    with jobs.running("third.log") as third:
        jobs.orders.change(100)
        jobs.finish(third)
    jobs.check()
