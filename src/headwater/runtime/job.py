"""The loop: one micro-batch after the other, each of them one Spark job.

    1. Look how far each source can be read, and write that down (the intent).
    2. Lower the plan for exactly that data and write the result into the sink; operators save their state on the way.
    3. Write the commit: now the batch is done.
    4. Tell the sources (they move their group offsets).

A crash before 3 leaves an intent without a commit: the next run computes the same batch from the same state again.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from headwater.changelog.early import EarlyGroups
from headwater.connectors.io import GroupingSource, IoContext, Position, Sink, SinkStart, Source, total
from headwater.connectors.open import open_sink, open_source
from headwater.errors import (
    HeadwaterError,
    IncompatibleCheckpointError,
    JobError,
    UnknownSchemaError,
    UnusualMessagesError,
)
from headwater.options.session import SessionOptions
from headwater.options.spelling import retold
from headwater.plan.chance import is_repeatable
from headwater.plan.explain import explain
from headwater.plan.nodes import Scan, Values, Write, walk
from headwater.plan.signature import Signature, differences, signature_of
from headwater.runtime.checkpoint import Checkpoint, Intent
from headwater.runtime.failures import is_passing, translate
from headwater.runtime.layers import state_rows
from headwater.runtime.lower import Batch, lower
from headwater.runtime.shortcut import Shortcut
from headwater.runtime.spark import job_session

__all__ = ["Job", "JobSettings", "Progress", "make_job"]

T = TypeVar("T")

RETRY_SECONDS = (0.5, 1, 2, 4, 8, 15, 30, 30)


@dataclass(frozen=True)
class JobSettings:
    """`stop_after` ends a job after that many batches (tests); `poll_seconds` is the pause when nothing has arrived."""

    max_rows: int = 1_000_000
    poll_seconds: float = 0.05
    partitions: int = 2
    retries: int = len(RETRY_SECONDS)


@dataclass(frozen=True)
class Progress:
    """What a job has done so far, as of its last batch."""

    name: str
    status: str = "starting"  # starting, running, finished, stopped, failed
    batches: int = 0
    rows_in: int = 0
    rows_out: int | None = None
    lag: int = 0
    batch_seconds: float = 0.0
    rows_per_second: float = 0.0
    state_rows: int = 0
    positions: tuple[Position, ...] = ()
    warnings: tuple[str, ...] = ()
    note: str = ""
    bad_records: int = 0


@dataclass
class Job:
    """One INSERT at work in a thread of its own.

    `around_sink` lets a test stand between the job and its sink, to fail there as a crash would.
    """

    name: str
    plan: Write
    spark: SparkSession
    checkpoint: Checkpoint
    settings: JobSettings
    on_batch: Callable[[Progress], None] = lambda _: None
    around_sink: Callable[[Sink], Sink] = lambda sink: sink
    error: HeadwaterError | None = None
    _progress: Progress = field(init=False)
    _stop: threading.Event = field(default_factory=threading.Event)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _wake: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self._progress = Progress(self.name)

    def start(self) -> Job:
        self._thread = threading.Thread(target=self._run, name=f"headwater-{self.name}", daemon=True)
        self._thread.start()
        return self

    def request_stop(self) -> None:
        """Ask for the end without waiting for it."""
        self._stop.set()
        self._wake.set()

    def stop(self, timeout: float | None = None) -> None:
        """End after the batch at hand. State and output stay consistent; the job can be started again."""
        self.request_stop()
        if self._thread is not None:
            self._thread.join(timeout)

    def pause(self) -> None:
        """Returns when no batch is under way; none starts before `resume`. Resume before you stop a paused job."""
        self._turn.acquire()

    def resume(self) -> None:
        """Look for new data at once."""
        self._turn.release()
        self._wake.set()

    def wait(self, timeout: float | None = None) -> bool:
        """True when the job has ended; raises its error if it failed."""
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                return False
        if self.error is not None:
            raise self.error
        return True

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def progress(self) -> Progress:
        """What has happened so far; `state_rows` is looked up when asked."""
        entries = sum(state_rows(self.checkpoint.state_location(name)) for name in operator_names(self.plan))
        return replace(self._progress, state_rows=entries)

    def _run(self) -> None:
        try:
            self.checkpoint.acquire()
            try:
                _Loop(self).run()
            finally:
                self.checkpoint.release()
            status = "stopped" if self._stop.is_set() else "finished"
            self._report(status=status)
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends the job and is told to the user
            self.error = self._translate(error)
            self._report(status="failed")

    def _translate(self, error: BaseException) -> HeadwaterError:
        tables = [node.table for node in walk(self.plan) if isinstance(node, Scan | Write)]
        problem = translate(error, self.name, [table.raw_options for table in tables])
        return retold(problem, {table.name: table.spelling for table in tables})

    def _report(self, **facts: object) -> None:
        self._progress = replace(self._progress, **facts)  # type: ignore[arg-type]
        self.on_batch(self._progress)


def make_job(
    name: str,
    plan: Write,
    spark: SparkSession,
    location: str,
    options: SessionOptions,
    on_batch: Callable[[Progress], None],
) -> Job:
    """A job in a Spark session of its own, not started yet. The checkpoint keeps the number of state partitions."""
    checkpoint = Checkpoint(location)
    stored = checkpoint.job()
    partitions = options["headwater.state.partitions"] or options["parallelism.default"] or 0
    if stored is not None:
        partitions = stored["partitions"]
    settings = JobSettings(
        max_rows=options["headwater.batch.max-rows"],
        poll_seconds=options["headwater.batch.interval"].total_seconds(),
        partitions=partitions or spark.sparkContext.defaultParallelism,
    )
    session = job_session(spark, settings.partitions, options["table.local-time-zone"])
    return Job(name, plan, session, checkpoint, settings, on_batch)


def operator_names(plan: Write) -> list[str]:
    return [part.name for part in signature_of(plan).operators]


class _Loop:
    """The life of one run of a job."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.warnings: list[str] = []
        context = IoContext(job.spark, job.name, self.warnings)
        self.scans = [node for node in walk(job.plan) if isinstance(node, Scan | Values)]
        self.sources: list[Source] = [open_source(scan, context) for scan in self.scans]
        self.sink: Sink = job.around_sink(open_sink(job.plan, context))
        self.wrote_at = time.monotonic()
        self.shortcut = Shortcut()

    def run(self) -> None:
        try:
            batch, position, bounds, intent = self._recover()
            self.job._report(status="running", positions=tuple(position), warnings=tuple(self.warnings))
            while not self.job._stop.is_set():
                with self.job._turn:
                    intent = intent or self._next_intent(position, bounds)
                    position, waiting = intent.start, _rows(intent)
                    if waiting:
                        batch += 1
                        self._run_batch(batch, intent)
                        position = intent.end
                    intent = None
                if waiting:
                    continue
                if _finished(position, bounds):
                    return
                self.job._wake.wait(self.job.settings.poll_seconds)
                self.job._wake.clear()
        finally:
            for source in self.sources:
                source.close()
            self.sink.close()

    def _recover(self) -> tuple[int, list[Position], list[Position | None], Intent | None]:
        """The last batch done, where it ended, the bounds, and the batch that was under way, if any."""
        checkpoint = self.job.checkpoint
        stored = checkpoint.job() or self._begin()
        _check_compatible(stored["signature"], signature_of(self.job.plan), checkpoint.location)
        checkpoint.drop_uncommitted_state()
        done = checkpoint.last_commit()
        intent = checkpoint.intent(done + 1)
        self._start_sink(stored["identity"], done + 1, intent is not None)
        last = checkpoint.intent(done) if done else None
        if last is not None:
            return done, last.end, last.bounds, intent
        return done, stored["start"], stored["bounds"], intent

    def _begin(self) -> dict[str, Any]:
        """A new job: where it starts and ends is written down at once, so that what comes before its first batch, or
        while it is stopped without one, is not lost."""
        start = self._patiently(lambda: [source.start() for source in self.sources])
        bounds = self._patiently(lambda: [s.bound(p) for s, p in zip(self.sources, start, strict=True)])
        signature, partitions = signature_of(self.job.plan).to_json(), self.job.settings.partitions
        job = {"signature": signature, "partitions": partitions, "start": start, "bounds": bounds}
        return self.job.checkpoint.create(job)

    def _start_sink(self, identity: str, batch: int, begun: bool) -> None:
        plan = self.job.plan
        remembered = self.job.checkpoint.sink()
        start = SinkStart(identity, batch, begun, explain(plan), is_repeatable(plan), remembered)
        self.job.checkpoint.remember_sink(self._patiently(lambda: self.sink.start(start)))

    def _next_intent(self, position: list[Position], bounds: list[Position | None]) -> Intent:
        """What can be read now; nothing, if start and end are the same."""
        limit = self.job.settings.max_rows
        ranges = self._patiently(
            lambda: [s.available(p, b, limit) for s, p, b in zip(self.sources, position, bounds, strict=True)]
        )
        if len(self.warnings) > len(self.job._progress.warnings):
            self.job._report(warnings=tuple(self.warnings))
        start, end = [start for start, _ in ranges], [end for _, end in ranges]
        intent = Intent(start, end, bounds)
        return Intent(start, start, bounds) if self._held_back(_rows(intent), _finished(end, bounds)) else intent

    def _held_back(self, waiting: int, at_the_end: bool) -> bool:
        """Whether the sink wants more changes, or more time, before the next batch."""
        pace = self.sink.pace
        if pace is None or at_the_end or waiting >= pace.rows:
            return False
        return time.monotonic() - self.wrote_at < pace.seconds

    def _run_batch(self, batch: int, intent: Intent) -> None:
        began = self.wrote_at = time.monotonic()
        if self.job.checkpoint.intent(batch) is None:
            self.job.checkpoint.intend(batch, intent)  # 1
        written, bad = self._patiently(lambda: self._compute(batch, intent))  # 2
        rows = _rows(intent)
        self.job.checkpoint.commit(batch, {"rows": rows, "written": written, "bad": bad})  # 3
        for source, end in zip(self.sources, intent.end, strict=True):  # 4
            source.done(end)
        self._account(batch, intent, _Counts(rows, written, bad), time.monotonic() - began)

    def _compute(self, batch: int, intent: Intent) -> tuple[int | None, int]:
        """How many rows were written, and how many messages could not be read. A schema that is met for the first time
        is asked for, with all others of the batch."""
        try:
            return self._computed(batch, intent)
        except Exception as error:
            if not isinstance(self.job._translate(error), UnknownSchemaError):
                raise
        for source, start, end in zip(self.sources, intent.start, intent.end, strict=True):
            source.learn(start, end)
        return self._computed(batch, intent)

    def _computed(self, batch: int, intent: Intent) -> tuple[int | None, int]:
        """The short cut fails before anything is written: all that is read has gone to its group by then."""
        if not self.shortcut.is_open():
            return self._attempt(batch, intent, begins_groups=False)
        try:
            result = self._attempt(batch, intent, begins_groups=True)
        except Exception as error:
            if not isinstance(self.job._translate(error), UnusualMessagesError):
                raise
            self.shortcut.failed()
            return self._attempt(batch, intent, begins_groups=False)
        self.shortcut.worked()
        return result

    def _attempt(self, batch: int, intent: Intent, *, begins_groups: bool) -> tuple[int | None, int]:
        ranges = list(zip(self.scans, self.sources, intent.start, intent.end, strict=True))
        by_scan = {id(scan): (source, start, end) for scan, source, start, end in ranges}

        def rows(scan: Scan | Values) -> DataFrame:
            source, start, end = by_scan[id(scan)]
            return source.read(start, end, scan.names)

        def groups(scan: Scan, early: EarlyGroups) -> DataFrame | None:
            source, start, end = by_scan[id(scan)]
            if not begins_groups or not isinstance(source, GroupingSource):
                return None
            return source.read_groups(start, end, early)

        partitions, location = self.job.settings.partitions, self.job.checkpoint.state_location
        around = Batch(batch, uuid.uuid4().hex, partitions, rows, groups, location)
        written = self.sink.write(lower(self.job.plan, around), batch)
        return written, sum(source.settle(start, end, scan.names) for scan, source, start, end in ranges)

    def _patiently(self, action: Callable[[], T]) -> T:
        """Try again, with growing pauses, while the trouble may pass by itself (a broker that restarts)."""
        for pause in (*RETRY_SECONDS[: self.job.settings.retries], None):
            try:
                result = action()
                if self.job._progress.note:
                    self.job._report(note="")
                return result
            except Exception as error:  # noqa: BLE001 - translated, without its trace: that may hold secrets
                problem = self.job._translate(error)
                if pause is None or not is_passing(problem) or self._never_worked():
                    raise problem from None
                self.job._report(note=f"{problem.fact} Trying again in {pause} s.")
                if self.job._stop.wait(pause):
                    raise problem from None
        raise JobError(f"Job '{self.job.name}' gave up.")

    def _never_worked(self) -> bool:
        """No broker has answered yet: wrong settings are likelier than a passing fault, so fail at once."""
        return self.job._progress.status == "starting" and not self.job.checkpoint.last_commit()

    def _account(self, batch: int, intent: Intent, counts: _Counts, seconds: float) -> None:
        before, written = self.job._progress, counts.written
        rows_in = before.rows_in + counts.rows
        out = before.rows_out if written is None else (before.rows_out or 0) + written
        self.job._report(
            batches=before.batches + 1,
            rows_in=rows_in,
            rows_out=out,
            bad_records=before.bad_records + counts.bad,
            lag=sum(s.lag(e) for s, e in zip(self.sources, intent.end, strict=True)),
            batch_seconds=seconds,
            rows_per_second=counts.rows / seconds if seconds else 0.0,
            positions=tuple(intent.end),
            warnings=tuple(self.warnings),
            note="",
        )


@dataclass(frozen=True)
class _Counts:
    """Of one batch: messages or rows read, rows written if that is known, messages that could not be read."""

    rows: int
    written: int | None
    bad: int


def _rows(intent: Intent) -> int:
    return sum(total(s, e) for s, e in zip(intent.start, intent.end, strict=True))


def _finished(position: list[Position], bounds: list[Position | None]) -> bool:
    return all(
        bound is not None and all(position[i].get(k, 0) >= v for k, v in bound.items())
        for i, bound in enumerate(bounds)
    )


def _check_compatible(stored: dict[str, object], current: Signature, location: str) -> None:
    problems = differences(Signature.from_json(stored), current)
    if problems:
        raise IncompatibleCheckpointError(
            "The checkpoint was written by a job that this SQL cannot continue.",
            detail="\n".join(f"- {p}" for p in problems) + f"\nCheckpoint: {location}",
            hint="Undo the change, or start with a new --checkpoint directory (the job then reads its input again).",
        )
