"""From a job's running totals to what a person wants to see: how much, how fast, how far behind."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.control.status import ENDED

if TYPE_CHECKING:
    from headwater.execution.job import Progress

__all__ = ["JobSample", "Meter"]

_WINDOW = 5.0  # rates are over the last so many seconds


@dataclass(frozen=True)
class JobSample:
    """A job at one moment. Rates of a job that has ended are over its whole life."""

    progress: Progress
    origin: str
    age: float
    rate_in: float
    rate_out: float | None

    @property
    def ended(self) -> bool:
        return self.progress.status in ENDED


@dataclass
class Meter:
    """Watches one job. `origin` is where its INSERT stands: 'totals.sql:12'."""

    look: Callable[[], Progress]
    origin: str = ""
    clock: Callable[[], float] = time.monotonic
    _seen: deque[tuple[float, int, int]] = field(default_factory=deque)
    _started: float = field(init=False)
    _ended: float | None = None

    def __post_init__(self) -> None:
        self._started = self.clock()
        self._seen.append((self._started, 0, 0))

    def read(self) -> JobSample:
        now, progress = self.clock(), self.look()
        if self._ended is None:
            self._seen.append((now, progress.rows_in, progress.rows_out or 0))
            if progress.status in ENDED:
                self._ended = now
        # The newest reading that is at least as old as the window stays, or the rate would be over less than the
        # window.
        while len(self._seen) > 2 and self._seen[1][0] <= now - _WINDOW:
            self._seen.popleft()
        age = (self._ended or now) - self._started
        rate_in, rate_out = self._average(progress, age) if self._ended is not None else self._recent()
        return JobSample(progress, self.origin, age, rate_in, None if progress.rows_out is None else rate_out)

    def _recent(self) -> tuple[float, float]:
        (then, rows_in, rows_out), (now, in_now, out_now) = self._seen[0], self._seen[-1]
        passed = max(now - then, 1e-6)
        return (in_now - rows_in) / passed, (out_now - rows_out) / passed

    @staticmethod
    def _average(progress: Progress, age: float) -> tuple[float, float]:
        passed = max(age, 1e-6)
        return progress.rows_in / passed, (progress.rows_out or 0) / passed
