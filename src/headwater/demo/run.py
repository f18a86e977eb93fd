"""The demo from its first process to its last, without a screen.

1. open    start a broker and Spark side by side, create the topics, start both jobs
2. feed    send page views until it is stopped
3. drain   wait until both jobs have read all there is
4. verify  recount the input and compare
5. close   stop everything and leave no file behind
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.demo.feed import Feed, create_topics
from headwater.demo.results import Counts, Follower, avro_counts, csv_counts, end_offsets, recount
from headwater.demo.scripts import COPY, COUNT, INPUT, OUTPUTS, script
from headwater.errors import JobError

if TYPE_CHECKING:
    from headwater.broker import Broker
    from headwater.execution.job import Job
    from headwater.session import Session

__all__ = ["SPARK_CONF", "DemoRun", "Verdict"]

_PARTITIONS = 2
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # two JVMs that live for a minute
_PATIENCE = 120.0
SPARK_CONF = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": " ".join(_QUICK_START)}


@dataclass(frozen=True)
class Verdict:
    """What must be in both output topics and what is."""

    expected: Counts
    found: dict[str, Counts]

    @property
    def equal(self) -> bool:
        return all(counts == self.expected for counts in self.found.values())

    @property
    def views(self) -> int:
        return sum(pv for pv, _ in self.expected.values())


@dataclass
class DemoRun:
    """`phase` says what is being done, for whoever watches. `start_spark` starts that of a session."""

    rate: int
    start_spark: Callable[[Session], None]
    phase: str = "Starting"
    jobs: list[Job] = field(default_factory=list)
    followers: dict[str, Follower] = field(default_factory=dict)
    feed: Feed | None = None
    _directory: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="headwater-demo-")))
    _broker: Broker | None = None
    _sessions: list[Session] = field(default_factory=list)

    @property
    def servers(self) -> str:
        assert self._broker is not None
        return self._broker.bootstrap_servers

    def open(self) -> None:
        from headwater.broker import Broker
        from headwater.session import Session

        counting = Session(checkpoint=str(self._directory / COUNT), conf=SPARK_CONF)
        self._sessions.append(counting)
        with ThreadPoolExecutor(1) as beside:
            spark = beside.submit(self.start_spark, counting)
            self.phase = "Starting a Kafka broker and Spark"
            self._broker = Broker.start(self._directory / "broker", 0, die_with_parent=True, jvm_options=_QUICK_START)
            self.phase = "Creating topics"
            create_topics(self.servers, _PARTITIONS, plain=[INPUT], compacted=OUTPUTS)
            self.phase = "Starting Spark"
            spark.result()
        self.phase = "Starting two jobs"
        copying = Session(checkpoint=str(self._directory / COPY), spark_session=counting.spark)
        self._sessions.append(copying)
        for session, name, decode in ((counting, COUNT, avro_counts), (copying, COPY, csv_counts)):
            session.variables = {"kafka": self.servers, **{topic: topic for topic in (INPUT, *OUTPUTS)}}
            session.sql(script(name), f"{name}.sql")
            self.jobs += session.jobs
            self.followers[name] = Follower(self.servers, name, decode).start()
        self.feed = Feed(self.servers, INPUT, self.rate).start()
        self.phase = "Waiting for the first results; the first batch is the slowest"

    def counts(self, name: str) -> Counts:
        follower = self.followers.get(name)
        return follower.counts if follower is not None else {}

    def check_jobs(self) -> None:
        """Raise what has stopped a job, if something has."""
        for job in self.jobs:
            if job.error is not None:
                raise JobError(f"The job of the demo that fills {job.plan.table.name} failed.", detail=str(job.error))

    def finish(self) -> Verdict:
        """Steps 3 and 4, after the last view has been sent."""
        assert self.feed is not None
        self.phase = "Feeding has ended; the jobs catch up"
        self.feed.stop()
        for job, read, written in zip(self.jobs, (INPUT, COUNT), OUTPUTS, strict=True):
            self._drain(job, sum(end_offsets(self.servers, read)), written)
        self.phase = "Recounting the input"
        return Verdict(recount(self.servers, INPUT), {name: self.counts(name) for name in OUTPUTS})

    def close(self) -> None:
        self.phase = "Stopping everything"
        if self.feed is not None:
            self.feed.stop()
        for follower in self.followers.values():
            follower.stop()
        for session in reversed(self._sessions):
            session.close()
        if self._broker is not None:
            self._broker.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _drain(self, job: Job, messages: int, written: str) -> None:
        """Until the job has done all `messages` of its input, and its follower has seen all it wrote."""
        deadline = time.monotonic() + _PATIENCE
        while _read(job) < messages and time.monotonic() < deadline:
            self.check_jobs()
            time.sleep(0.1)
        follower, expected = self.followers[written], sum(end_offsets(self.servers, written))
        while follower.messages < expected and time.monotonic() < deadline:
            time.sleep(0.1)


def _read(job: Job) -> int:
    """How many messages the job has done, from the beginning of its topic."""
    return sum(offset for position in job.progress().positions for offset in position.values())
