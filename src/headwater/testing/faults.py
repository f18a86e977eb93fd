"""Crashes in the middle of a batch, at the moments that recovery has to tell apart."""

from __future__ import annotations

from enum import Enum
from typing import Any

from pyspark.sql import DataFrame

from headwater.connectors.io import Pace, Sink, SinkStart
from headwater.errors import JobError

__all__ = ["Crash", "CrashingSink", "Fault"]


class Fault(Enum):
    """INTENDED: the batch is written down, nothing is computed. UNWRITTEN: operators have saved their state, the sink
    has nothing. UNCOMMITTED: the sink has everything, the commit is missing."""

    INTENDED = "intended"
    UNWRITTEN = "unwritten"
    UNCOMMITTED = "uncommitted"


class Crash(JobError):
    """A job ended where a test told it to."""


class CrashingSink(Sink):
    """Passes batches on to the real sink until `next_fault` is set; then one batch ends in a Crash."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.next_fault: Fault | None = None

    @property
    def pace(self) -> Pace | None:  # type: ignore[override]  # what is a value there is asked for here
        return self._sink.pace

    @property
    def whole(self) -> bool:  # type: ignore[override]
        return self._sink.whole

    def start(self, job: SinkStart) -> dict[str, Any]:
        return self._sink.start(job)

    def write(self, rows: DataFrame, batch: int, *, steady: bool) -> int | None:
        fault, self.next_fault = self.next_fault, None
        if fault is Fault.INTENDED:
            raise Crash(f"Batch {batch} crashed before it was computed.")
        if fault is Fault.UNWRITTEN:
            rows.write.format("noop").mode("overwrite").save()
            raise Crash(f"Batch {batch} crashed before it was written.")
        written = self._sink.write(rows, batch, steady=steady)
        if fault is Fault.UNCOMMITTED:
            raise Crash(f"Batch {batch} crashed before it was committed.")
        return written

    def close(self) -> None:
        self._sink.close()
