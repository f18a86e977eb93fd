"""What a job did over the last hour, for charts; and what has happened, for people.

An hour is kept as buckets of a few seconds, so that memory does not grow with the number of batches.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.execution.job import Progress

__all__ = ["BOUNDS", "BUCKET_SECONDS", "KEPT_SECONDS", "Event", "Events", "Histogram", "History", "Sample"]

BUCKET_SECONDS = 5
KEPT_SECONDS = 3600
_KEPT_EVENTS = 500
BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the parts of a histogram, in seconds; one more part is above them all."""


@dataclass(frozen=True)
class Sample:
    """One bucket: rows that were committed in it, and of its batches the longest time and latency. `lag` is the last
    that was seen. `time` is where it begins, in seconds since 1970."""

    time: int
    rows_in: int = 0
    rows_out: int = 0
    batches: int = 0
    lag: int = 0
    batch_seconds: float = 0.0
    latency_seconds: float = 0.0


@dataclass
class Histogram:
    """Of durations, since the job started: how many are in each part, and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds


@dataclass
class History:
    """Of one job. Buckets in which nothing was reported are not there: nothing was committed, and the lag stayed.
    `committed` is the time of the last commit of this run, in seconds since 1970; 0 if there was none."""

    samples: deque[Sample] = field(default_factory=deque)
    batch_times: Histogram = field(default_factory=Histogram)
    latencies: Histogram = field(default_factory=Histogram)
    committed: float = 0.0
    _before: Progress | None = None

    def add(self, progress: Progress, now: float) -> None:
        before, self._before = self._before, progress
        bucket = int(now) // BUCKET_SECONDS * BUCKET_SECONDS
        if not self.samples or self.samples[-1].time != bucket:
            self.samples.append(Sample(bucket))
        sample = replace(self.samples[-1], lag=progress.lag)
        # Reports also come without a new batch (a retry, a new lag); the times of the last one must not be counted
        # again.
        done = progress.batches - (before.batches if before is not None else 0)
        if done:
            self.committed = now
            self.batch_times.add(progress.batch_seconds)
            self.latencies.add(progress.latency_seconds)
            sample = replace(
                sample,
                batches=sample.batches + done,
                rows_in=sample.rows_in + progress.rows_in - (before.rows_in if before else 0),
                rows_out=sample.rows_out + (progress.rows_out or 0) - ((before.rows_out or 0) if before else 0),
                batch_seconds=max(sample.batch_seconds, progress.batch_seconds),
                latency_seconds=max(sample.latency_seconds, progress.latency_seconds),
            )
        self.samples[-1] = sample
        while self.samples[0].time < now - KEPT_SECONDS:
            self.samples.popleft()


@dataclass(frozen=True)
class Event:
    """`level` is info, warning or error; `job` is empty for what concerns the whole process."""

    number: int
    time: int
    level: str
    job: str
    text: str


@dataclass
class Events:
    """The newest ones, each with a number that counts up."""

    kept: deque[Event] = field(default_factory=lambda: deque(maxlen=_KEPT_EVENTS))
    _number: int = 0

    def add(self, now: float, level: str, job: str, text: str) -> None:
        self._number += 1
        self.kept.append(Event(self._number, int(now * 1000), level, job, text))
