"""Crashes in the middle of a batch, at the points that recovery has to tell apart."""

from __future__ import annotations

import tempfile
import uuid
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.connectors.runtime import FlushInterval, Renderer, Sink, SinkStart, Writer
from headwater.errors import JobError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from headwater.protocol.batch_ids import BatchId
    from headwater.protocol.batches import BatchOutcome, Executor
    from headwater.protocol.records import Commit, Intent

__all__ = ["Crash", "CrashingExecutor", "CrashingSink", "Fault"]


class Fault(Enum):
    """INTENDED: the intent is written, nothing is computed. UNWRITTEN: operators have saved their state, the sink has
    nothing. UNCOMMITTED: the sink has everything, the commit is missing."""

    INTENDED = "intended"
    UNWRITTEN = "unwritten"
    UNCOMMITTED = "uncommitted"


class Crash(JobError):
    """A job ended where a test wanted it to."""


class CrashingExecutor:
    """Passes batches on until `next_fault` is set; then one batch ends in a Crash. While a file (`_flag`) exists,
    writers in the workers read their rows and write nothing."""

    def __init__(self) -> None:
        self.next_fault: Fault | None = None
        self._flag = Path(tempfile.gettempdir()) / f"headwater-fault-{uuid.uuid4().hex}"
        self._executor: Executor | None = None

    def around_executor(self, executor: Executor) -> CrashingExecutor:
        self._executor = executor
        return self

    def around_sink(self, sink: Sink) -> Sink:
        return CrashingSink(sink, self._flag)

    def execute(self, intent: Intent, committed: Commit, attempt: str) -> BatchOutcome:
        # Once: the batch must succeed when it is repeated.
        fault, self.next_fault = self.next_fault, None
        assert self._executor is not None
        if fault is Fault.INTENDED:
            raise Crash(f"Batch {intent.batch} crashed before it was computed.")
        if fault is Fault.UNWRITTEN:
            self._compute_without_writing(intent, committed, attempt)
            raise Crash(f"Batch {intent.batch} crashed before it was written.")
        outcome = self._executor.execute(intent, committed, attempt)
        if fault is Fault.UNCOMMITTED:
            raise Crash(f"Batch {intent.batch} crashed before it was committed.")
        return outcome

    def _compute_without_writing(self, intent: Intent, committed: Commit, attempt: str) -> None:
        assert self._executor is not None
        self._flag.touch()
        try:
            self._executor.execute(intent, committed, attempt)
        finally:
            self._flag.unlink()


class CrashingSink(Sink):
    """Passes everything on to the real sink, except that its writers write nothing while the file `flag` exists."""

    def __init__(self, sink: Sink, flag: Path) -> None:
        self._sink = sink
        self._flag = flag
        self.shows, self.saves = sink.shows, sink.saves

    @property
    def flush_interval(self) -> FlushInterval | None:  # type: ignore[override]  # a value there, asked for here
        return self._sink.flush_interval

    def start(self, job: SinkStart) -> None:
        self._sink.start(job)
        self.shows, self.saves = self._sink.shows, self._sink.saves

    def facts(self) -> dict[str, Any]:
        return self._sink.facts()

    def encode(self, rows: DataFrame) -> DataFrame:
        return self._sink.encode(rows)

    def writer(self) -> Writer | None:
        writer = self._sink.writer()
        return None if writer is None else _Unwriting(writer, str(self._flag))

    def renderer(self) -> Renderer | None:
        return self._sink.renderer()

    def show(self, chunk: bytes) -> int:
        return 0 if self._flag.exists() else self._sink.show(chunk)

    def save(self, messages: DataFrame) -> int | None:
        return self._sink.save(messages)

    def close(self) -> None:
        self._sink.close()


@dataclass(frozen=True)
class _Unwriting:
    """In a worker."""

    writer: Writer
    flag: str

    def __call__(self, task: int, batch: BatchId, messages: Iterable[pa.RecordBatch]) -> int:
        # A file, because workers are other processes and the plan, with this writer in it, is made before the fault is
        # wanted.
        if Path(self.flag).exists():
            deque(messages, maxlen=0)
            return 0
        return self.writer(task, batch, messages)
