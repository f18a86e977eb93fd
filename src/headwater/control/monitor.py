"""All jobs of this process: what they do now, what they did over the last hour, and what has happened to them."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING

from headwater.control.history import Event, Events, History, Sample
from headwater.control.meter import JobSample, Meter
from headwater.control.status import ENDED, JobStatus, RunStatus
from headwater.plan.nodes import Scan, walk
from headwater.protocol.locations import shown

if TYPE_CHECKING:
    from headwater.execution.job import Job, Progress

__all__ = ["Monitor", "Watched"]

_LEVELS = {"retrying": "warning", "failed": "error"}


@dataclass
class Watched:
    """One job and what is remembered of it."""

    job: Job
    meter: Meter
    started: int
    history: History = field(default_factory=History)
    ended: int | None = None
    said: set[str] = field(default_factory=set)
    last: tuple[str, str] = ("", "")


class Monitor:
    """`add` and `saw` are what a `Session` calls (`on_job`, `on_batch`), from the jobs' own threads; everything else is
    for whoever shows it, from any thread. `on_progress` hears of the same after it is known here."""

    def __init__(self, title: str = "", clock: Callable[[], float] = time.time) -> None:
        self.title = title
        self.spark_ui = ""
        self.page = ""
        self.on_progress: Callable[[Job, Progress], None] = lambda *_: None
        self.started = int(clock() * 1000)
        self._clock = clock
        self._events = Events()
        self._jobs: dict[str, Watched] = {}
        self._lock = threading.Lock()

    def add(self, job: Job, origin: str = "") -> None:
        """A job that is about to start. One of the same name that has ended is forgotten."""
        with self._lock:
            self._jobs[job.name] = Watched(job, Meter(job.progress, origin), int(self._clock() * 1000))

    def place(self, name: str, origin: str) -> None:
        """Where the job's INSERT is written."""
        with self._lock:
            self._jobs[name].meter.origin = origin

    def saw(self, progress: Progress) -> None:
        with self._lock:
            watched = self._jobs.get(progress.name)
            if watched is None:
                return
            now = self._clock()
            watched.history.add(progress, now)
            self._notice(watched, progress, now)
            if progress.status in ENDED and watched.ended is None:
                watched.ended = int(now * 1000)
        # Outside of the lock: it writes into the checkpoint, and a slow store must not stop whoever looks at the jobs.
        self.on_progress(watched.job, progress)

    def stop(self, name: str) -> bool:
        """Ask a job to end after its current batch, unless it has ended; false if there is none of this name."""
        with self._lock:
            watched = self._jobs.get(name)
        if watched is not None and watched.ended is None:
            with self._lock:
                self._events.add(self._clock(), "info", name, "A stop was requested.")
            # Without waiting: the answer goes to a browser or another terminal, and a batch may take minutes.
            watched.job.request_stop()
        return watched is not None

    def readings(self) -> list[JobSample]:
        with self._lock:
            return [self._read(watched) for watched in self._jobs.values()]

    def events(self) -> list[Event]:
        with self._lock:
            return list(self._events.kept)

    def samples(self, name: str) -> list[Sample]:
        with self._lock:
            watched = self._jobs.get(name)
            return [] if watched is None else list(watched.history.samples)

    def history(self, name: str) -> History:
        """A copy, as of now, without samples."""
        with self._lock:
            kept = self._jobs[name].history
            # Copied under the lock: a histogram that changes while it is printed would not add up.
            return History(deque(), deepcopy(kept.batch_times), deepcopy(kept.latencies), kept.committed)

    def job(self, name: str) -> Job | None:
        with self._lock:
            watched = self._jobs.get(name)
            return None if watched is None else watched.job

    def status(self) -> RunStatus:
        with self._lock:
            jobs = tuple(_status(watched, self._read(watched)) for watched in self._jobs.values())
        return RunStatus(
            os.getpid(),
            self.title,
            socket.gethostname(),
            version("headwater"),
            self.started,
            self.spark_ui,
            self.page,
            jobs=jobs,
        )

    def _read(self, watched: Watched) -> JobSample:
        """A job that waits for an answer reports nothing: that it does is seen only here."""
        reading = watched.meter.read()
        self._notice(watched, reading.progress, self._clock())
        return reading

    def _notice(self, watched: Watched, progress: Progress, now: float) -> None:
        """What is worth a line: the start, every change of status, every warning once."""
        before, watched.last = watched.last, (progress.status, progress.note)
        for text, level in [(progress.begins, "info"), *((warning, "warning") for warning in progress.warnings)]:
            if text and text not in watched.said:
                watched.said.add(text)
                self._events.add(now, level, progress.name, text)
        if watched.last == before or progress.status == "starting":
            return
        text = watched.job.error.fact if watched.job.error is not None else progress.note
        text = f"{progress.status}: {text}" if text else progress.status
        self._events.add(now, _LEVELS.get(progress.status, "info"), progress.name, text)


def _status(watched: Watched, reading: JobSample) -> JobStatus:
    job, p = watched.job, reading.progress
    sources = dict.fromkeys(node.table.name for node in walk(job.plan) if isinstance(node, Scan))
    return JobStatus(
        name=p.name,
        status=p.status,
        note=p.note,
        error=str(job.error) if job.error is not None else "",
        origin=reading.origin,
        table=job.plan.table.name,
        sources=tuple(sources),
        started=watched.started,
        ended=watched.ended,
        begins=p.begins,
        batch=p.batch,
        batches=p.batches,
        committed=int(watched.history.committed * 1000) or None,
        rows_in=p.rows_in,
        rows_out=p.rows_out,
        rate_in=reading.rate_in,
        rate_out=reading.rate_out,
        lag=p.lag,
        batch_seconds=p.batch_seconds,
        spark_seconds=p.spark_seconds,
        latency_seconds=p.latency_seconds,
        state_rows=p.state_rows,
        state_bytes=p.state_bytes,
        bad_records=p.bad_records,
        late_rows=p.late_rows,
        watermark=p.watermark,
        checkpoint=shown(job.location),
        route=p.route,
        warnings=p.warnings,
        positions=p.positions,
        operators={name: asdict(operator) for name, operator in p.operators.items()},
    )
