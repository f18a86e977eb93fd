"""A job: one INSERT at work, which can be watched, paused, woken and stopped. `loop` is what it does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from headwater.connectors.io import Position, Sink
from headwater.errors import HeadwaterError
from headwater.options.session import SessionOptions
from headwater.options.spelling import retold
from headwater.plan.nodes import Scan, Write, walk
from headwater.plan.signature import signature_of
from headwater.runtime.checkpoint import Checkpoint
from headwater.runtime.failures import translate
from headwater.runtime.layers import state_rows
from headwater.runtime.loop import RETRY_SECONDS, Loop
from headwater.runtime.spark import job_session

__all__ = ["Job", "JobSettings", "Progress", "make_job"]


@dataclass(frozen=True)
class JobSettings:
    """`poll_seconds` is the pause when nothing has arrived; `retries` how often a passing fault is waited for."""

    max_rows: int = 2_000_000
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

    `around_sink` lets a test stand between the job and its sink, to fail there as a crash would. `stopping`, `turn` and
    `woken` are how its loop, in that thread, hears of what others ask.
    """

    name: str
    plan: Write
    spark: SparkSession
    checkpoint: Checkpoint
    settings: JobSettings
    on_batch: Callable[[Progress], None] = lambda _: None
    around_sink: Callable[[Sink], Sink] = lambda sink: sink
    error: HeadwaterError | None = None
    reported: Progress = field(init=False)
    stopping: threading.Event = field(default_factory=threading.Event)
    turn: threading.Lock = field(default_factory=threading.Lock)
    woken: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.reported = Progress(self.name)

    def start(self) -> Job:
        self._thread = threading.Thread(target=self._run, name=f"headwater-{self.name}", daemon=True)
        self._thread.start()
        return self

    def request_stop(self) -> None:
        """Ask for the end without waiting for it."""
        self.stopping.set()
        self.woken.set()

    def stop(self, timeout: float | None = None) -> None:
        """End after the batch at hand. State and output stay consistent; the job can be started again."""
        self.request_stop()
        if self._thread is not None:
            self._thread.join(timeout)

    def pause(self) -> None:
        """Returns when no batch is under way; none starts before `resume`. Resume before you stop a paused job."""
        self.turn.acquire()

    def resume(self) -> None:
        self.turn.release()
        self.wake()

    def wake(self) -> None:
        """Look for new data at once."""
        self.woken.set()

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
        return replace(self.reported, state_rows=entries)

    def _run(self) -> None:
        try:
            self.checkpoint.acquire()
            try:
                Loop(self).run()
            finally:
                self.checkpoint.release()
            status = "stopped" if self.stopping.is_set() else "finished"
            self.report(status=status)
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends the job and is told to the user
            self.error = self.translate(error)
            self.report(status="failed")

    def translate(self, error: BaseException) -> HeadwaterError:
        tables = [node.table for node in walk(self.plan) if isinstance(node, Scan | Write)]
        problem = translate(error, self.name, [table.raw_options for table in tables])
        return retold(problem, {table.name: table.spelling for table in tables})

    def report(self, **facts: object) -> None:
        self.reported = replace(self.reported, **facts)  # type: ignore[arg-type]
        self.on_batch(self.reported)


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
