"""A job: one INSERT at work, which can be watched, paused, woken and stopped. `loop` is what it does."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from pyspark.sql import SparkSession

from headwater.connectors.runtime import LeftOut, Position, Sink
from headwater.errors import HeadwaterError
from headwater.execution.failures import translate
from headwater.execution.loop import Loop
from headwater.execution.operator_metrics import OperatorProgress
from headwater.execution.spark import job_session
from headwater.options.session import CHUNK_ROWS, SessionOptions
from headwater.options.spelling import respelled
from headwater.plan.nodes import Scan, Write, walk
from headwater.protocol.batches import Executor
from headwater.protocol.storage import Storage, open_storage

_KEPT_LEFT_OUT = 50

__all__ = ["Job", "JobSettings", "Progress", "make_job"]


@dataclass(frozen=True)
class JobSettings:
    """`interval_seconds` is the shortest time from the start of one batch to the start of the next; `poll_seconds` the
    pause when nothing has arrived; `partitions` how
    many state partitions a new job has; `tasks` how many read and write (0: as many as Spark has cores);
    `idle_seconds` after which a partition without messages does not hold back the watermark of others (0: it does);
    `chunk_rows` how many messages are decoded together."""

    max_rows: int = 2_000_000
    interval_seconds: float = 0.0
    poll_seconds: float = 0.02
    partitions: int = 2
    time_zone: str = "UTC"
    idle_seconds: float = 0.0
    chunk_rows: int = CHUNK_ROWS
    tasks: int = 0


@dataclass(frozen=True)
class Progress:
    """What a job has done so far, as of its last batch. `lag` is what lies between the last commit and the end of the
    input, as of the last look at it; `spark_seconds` is the part of the last batch that was Spark's own job, without
    setting it up; `state_rows` counts entries of the state, tombstones included; `late_rows` came after their window
    had closed; `due` says that a batch without rows follows, because time has moved; `route` says how rows come from
    the readers to the writers. `batch` is the number of the last commit over all runs, `begins` where this run began or
    continued; `latency_seconds` the age of the last batch's oldest row when it was committed (see `execution.latency`);
    `operators` what each stateful operator did, by its name in the checkpoint; `watermark` the least one of all sources
    and partitions, in milliseconds."""

    name: str
    status: str = "starting"  # starting, running, retrying, finished, stopped, failed
    batches: int = 0
    rows_in: int = 0
    rows_out: int | None = None
    lag: int = 0
    batch_seconds: float = 0.0
    spark_seconds: float = 0.0
    rows_per_second: float = 0.0
    state_rows: int = 0
    positions: tuple[Position, ...] = ()
    warnings: tuple[str, ...] = ()
    note: str = ""
    bad_records: int = 0
    late_rows: int = 0
    due: bool = False
    route: str = ""
    batch: int = 0
    begins: str = ""
    latency_seconds: float = 0.0
    state_bytes: int = 0
    operators: Mapping[str, OperatorProgress] = field(default_factory=dict)
    watermark: int | None = None


@dataclass(repr=False)
class Job:
    """One INSERT at work in a thread of its own.

    `around_sink` and `around_executor` let a test stand between the job and its sink, or the execution of its batches,
    to fail there as a crash would. `stopping`, `turn` and `woken` are how its loop, in that thread, hears of what
    others ask; `asking_since` is when it has asked the sources how much there is to read, None while it has not;
    `batch_since` is when the current batch began; `unanswered` is whose broker does not answer, and of which batch
    that is true.
    """

    name: str
    plan: Write
    spark: SparkSession
    location: str
    settings: JobSettings
    on_batch: Callable[[Progress], None] = lambda _: None
    around_sink: Callable[[Sink], Sink] = lambda sink: sink
    around_executor: Callable[[Executor], Executor] = lambda executor: executor
    error: HeadwaterError | None = None
    reported: Progress = field(init=False)
    stopping: threading.Event = field(default_factory=threading.Event)
    turn: threading.Lock = field(default_factory=threading.Lock)
    woken: threading.Event = field(default_factory=threading.Event)
    asking_since: float | None = None
    batch_since: float | None = None
    unanswered: tuple[float, str] | None = None
    left_out: deque[tuple[float, LeftOut]] = field(default_factory=lambda: deque(maxlen=_KEPT_LEFT_OUT))
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.reported = Progress(self.name)

    def __repr__(self) -> str:
        return f"<Job {self.name}: {self.reported.status}, {self.reported.batches} batches>"

    def start(self) -> Job:
        self._thread = threading.Thread(target=self._run, name=f"headwater-{self.name}", daemon=True)
        self._thread.start()
        return self

    def request_stop(self) -> None:
        """Ask for the end without waiting for it."""
        self.stopping.set()
        self.woken.set()

    def stop(self, timeout: float | None = None) -> None:
        """End after the current batch. State and output stay consistent; the job can be started again."""
        self.request_stop()
        if self._thread is not None:
            self._thread.join(timeout)

    def pause(self) -> None:
        """Returns when no batch is under way; none starts before `resume`. Resume before you stop a paused job."""
        # The lock is the loop's for the length of a batch, so whoever has it knows that none is under way.
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
        """What has happened so far. A job whose broker does not answer is not running, also before its request has
        timed out and is tried again."""
        # Read once each: the thread of the job changes them meanwhile.
        asking, working, reported, now = self.asking_since, self.batch_since, self.reported, time.monotonic()
        if reported.status != "running":
            return reported
        # A request that is not answered blocks the loop, which then cannot report anything itself.
        if asking is not None and now - asking > _ANSWER_SECONDS:
            return replace(reported, status="retrying", note="Waiting for the brokers of the input to answer.")
        unanswered = self.unanswered
        if unanswered is not None and unanswered[0] == working:
            return replace(reported, status="retrying", note=unanswered[1])
        if working is not None and now - working > _LONG_BATCH_SECONDS:
            return replace(reported, note=f"Batch {reported.batch + 1:,} takes longer than {_LONG_BATCH_SECONDS:g} s.")
        return reported

    def leave_out(self, message: LeftOut) -> None:
        """Keep it for whoever wants to see what was left out: the newest few, with the time."""
        self.left_out.append((time.time(), message))

    @cached_property
    def storage(self) -> Storage:
        return open_storage(self.location)

    def _run(self) -> None:
        try:
            Loop(self).run()
            self.report(status="stopped" if self.stopping.is_set() else "finished")
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends the job and is reported
            self.error = self.translate(error)
            self.report(status="failed")

    def translate(self, error: BaseException) -> HeadwaterError:
        tables = [node.table for node in walk(self.plan) if isinstance(node, Scan | Write)]
        # With the options of all tables: any of their secrets may be in the text of an exception.
        problem = translate(error, self.name, [table.raw_options for table in tables])
        return respelled(problem, {table.name: table.spelling for table in tables})

    def report(self, **facts: object) -> None:
        self.reported = replace(self.reported, **facts)  # type: ignore[arg-type]
        self.on_batch(self.reported)


_ANSWER_SECONDS = 2.0
_LONG_BATCH_SECONDS = 60.0
_ALL_ROWS = 2**50  # one batch takes all there is


def make_job(
    name: str,
    plan: Write,
    spark: SparkSession,
    location: str,
    options: SessionOptions,
    on_batch: Callable[[Progress], None],
) -> Job:
    """A job in a Spark session of its own, not started yet. A checkpoint keeps its number of state partitions."""
    partitions = options["headwater.state.partitions"] or options["parallelism.default"]
    settings = JobSettings(
        max_rows=_ALL_ROWS if options["execution.runtime-mode"] == "batch" else options["headwater.batch.max-rows"],
        interval_seconds=options["headwater.batch.interval"].total_seconds(),
        poll_seconds=options["headwater.batch.poll-interval"].total_seconds(),
        partitions=partitions or spark.sparkContext.defaultParallelism,
        time_zone=options["table.local-time-zone"],
        idle_seconds=options["table.exec.source.idle-timeout"].total_seconds(),
        chunk_rows=options["headwater.source.chunk-rows"],
        tasks=options["parallelism.default"] or 0,
    )
    session = job_session(spark, settings.partitions, settings.time_zone)
    return Job(name, plan, session, location, settings, on_batch)
