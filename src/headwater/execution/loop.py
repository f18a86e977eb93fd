"""The life of one run of a job: recover, then one micro-batch after the other, each of them one Spark job.

`protocol.batches` has the steps of a batch and what holds when any of them fails. This loop decides *what* a batch
reads: how far each source can be read now, and when the sink wants it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, TypeVar

from headwater.connectors.runtime import LeftOut, Position, RuntimeContext, Sink, SinkStart, Source
from headwater.errors import KafkaNotReadyError, UnknownSchemaError
from headwater.execution.compaction import Compactor
from headwater.execution.executor import BatchExecutor
from headwater.execution.failures import is_transient
from headwater.execution.inputs import InputRange, Inputs, is_finished
from headwater.execution.latency import Latency, total_of
from headwater.execution.lowering import tasks_of
from headwater.execution.operator_metrics import operators_after
from headwater.execution.route import Route, route_digest
from headwater.execution.start_message import beginning
from headwater.execution.unanswered import watched
from headwater.execution.watermarks import Watermarks
from headwater.plan.determinism import is_deterministic
from headwater.plan.fingerprint import Fingerprint, check_compatible, fingerprint_of
from headwater.plan.nodes import Write
from headwater.plan.time_attributes import processing_period
from headwater.protocol.batches import Batches
from headwater.protocol.checkpoint import Checkpoint, Recovered
from headwater.protocol.records import Commit, Genesis, Intent, files_of

if TYPE_CHECKING:
    from headwater.execution.job import Job

__all__ = ["Loop"]

T = TypeVar("T")

_RETRY_SECONDS = (0.5, 1, 2, 4, 8, 15, 30, 30)
_LEARNING_ATTEMPTS = 3
_PATIENCE_SECONDS = 30.0
_FAR_MILLIS = 8_000_000_000_000_000  # beyond any calendar


class Loop:
    """One run. Positions and bounds are lists with one entry per source."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.warnings: list[str] = []
        tasks = job.settings.tasks or job.spark.sparkContext.defaultParallelism
        chunk_rows = job.settings.chunk_rows
        context = RuntimeContext(
            job.spark, job.name, tasks, self.warnings, leave_out=job.leave_out, chunk_rows=chunk_rows
        )
        self.inputs = Inputs(job.plan, context)
        self.sink: Sink = job.around_sink(_open_sink(job.plan, context))
        compactor = Compactor(job.name, job.spark, job.storage, context.warn)
        self.executor = BatchExecutor(job.name, job.plan, job.spark, self.inputs, self.sink, compactor)
        self.checkpoint = Checkpoint(job.storage)
        self.batches = Batches(self.checkpoint, job.around_executor(self.executor), self._failed, self._committed)
        # Of the plan, not of the settings: only sources whose time somebody uses have a watermark that can hold back
        # others.
        sources = self.inputs.watermarked(job.settings.idle_seconds)
        self.watermarks = Watermarks(sources, processing_period(job.plan))
        self._fingerprint = fingerprint_of(job.plan, job.settings.time_zone)
        self._parties: list[Source | Sink] = [*self.inputs.sources, self.sink]
        self._latency = Latency()
        self._started_at = time.monotonic()
        self._warned: set[int] = set()  # sources whose watermark waits
        # Start of the last batch, and of the last one that read rows; before the first, of this run.
        self._began = self._read = time.monotonic()
        self._ends: list[Position] = []  # of what there was to read at the last look

    def run(self) -> None:
        """1. Recover. 2. Finish the pending batch of an earlier run. 3. Batch after batch, until it is stopped or
        all input is read. One without rows runs where only time has moved: at the end of the input, it is final."""
        try:
            recovered = self._recover()  # 1
            self._started(recovered)
            commit = self._replayed()  # 2
            while not self.job.stopping.is_set():  # 3
                with self.job.turn:
                    wanted = self._wanted(commit)
                    watermarks = self.watermarks.next(commit, self._ends)
                    # A watermark may move without rows, by an idle partition or by the clock: windows must close then,
                    # too.
                    runs = bool(wanted.rows) or any(before != now for before, now in watermarks)
                    runs = runs or _only_the_end_is_left(wanted, commit)
                    if runs:
                        commit = self._run_batch(commit, wanted, watermarks)
                if runs:
                    continue
                if is_finished(commit.positions, commit.bounds):
                    return
                self._pause(self.job.settings.poll_seconds)
            self._last_look(commit)
        finally:
            self._close()

    def _close(self) -> None:
        """All of it, also where something fails to close: its client may have lost the JVM. Otherwise the checkpoint
        would stay locked as long as this process lives."""
        with ExitStack() as closing:
            # In reverse: the compactor first, because its merges use the storage and Spark; the claim last, so that
            # nobody takes the checkpoint over while something of this run still writes.
            closing.callback(self.checkpoint.release)
            closing.callback(self.sink.close)
            closing.callback(self.inputs.close)
            closing.callback(self.executor.compactor.close)

    def _recover(self) -> Recovered:
        """Where to go on.

        1. A new job writes down where it starts and ends at once, so that what comes before its first batch, or while
           it is stopped without one, is not lost.
        2. The checkpoint must be of this very job.
        3. Take it over.
        4. Positions must be about the same topics, and the sink must not know more than the checkpoint.
        """
        # 'latest' has a meaning only once: a restart before the first batch must not skip what came in between.
        genesis = self._with_retries(lambda: self.checkpoint.genesis() or self._begin())  # 1
        check_compatible(Fingerprint.from_json(genesis.facts), self._fingerprint, str(self.job.storage))  # 2
        recovered = self.batches.claim()  # 3
        # Of a pending batch, the topics are those of its intent: one that was made again may be read in it first.
        topics = recovered.committed.topics if recovered.pending is None else recovered.pending.topics
        self._with_retries(lambda: self.inputs.check_facts(topics))  # 4
        self._start_sink(recovered)
        return recovered

    def _begin(self) -> Genesis:
        start = self.inputs.start()
        bounds = self.inputs.bounds(start)
        genesis = Genesis(
            uuid.uuid4().hex[:16],
            self._fingerprint.rows,
            self.job.settings.partitions,
            start,
            bounds,
            self.inputs.facts(),
            self._fingerprint.to_json(),
        )
        return self.checkpoint.begin(genesis)

    def _start_sink(self, recovered: Recovered) -> None:
        pending, route = recovered.pending, self._route(recovered.committed)
        start = SinkStart(
            recovered.genesis.identity,
            recovered.committed.id,
            recovered.pending_id,
            pending is not None and Route.from_json(pending.route).plan != route.plan,
            is_deterministic(self.job.plan),
            tasks_of(self.job.plan, self.inputs, route.tasks, route.partitions),
            (pending.sink if pending is not None else recovered.committed.sink),
        )
        self._with_retries(lambda: self.sink.start(start))

    def _started(self, recovered: Recovered) -> None:
        cores, partitions = self.job.spark.sparkContext.defaultParallelism, recovered.committed.partitions
        if recovered.committed.state and cores > partitions:
            self.warnings.append(
                f"Spark has {cores} cores, but the state of job '{self.job.name}' is in {partitions} partitions. "
                f"When it is stopped, 'headwater checkpoint rescale {self.job.storage} --partitions {cores}' lets it "
                "use them all."
            )
        positions = recovered.committed.positions
        # Planning takes seconds the first time; done here, the first message does not wait for it.
        self.executor.prepare(self._route(recovered.committed))
        self.job.report(
            status="running",
            positions=tuple(positions),
            warnings=tuple(self.warnings),
            route=self.executor.route,
            batch=recovered.committed.batch,
            operators=operators_after({}, {}, recovered.committed.state),
            watermark=_least(recovered.committed.watermarks),
            begins=beginning(recovered),
            state_rows=sum(run.rows for run in files_of(recovered.committed.state)),
            state_bytes=sum(run.bytes for run in files_of(recovered.committed.state)),
        )

    def _replayed(self) -> Commit:
        if self.checkpoint.pending is None:
            return self.checkpoint.committed
        self._began = time.monotonic()
        with watched(self.job, self._began, self._parties):
            return self.batches.replay()

    def _route(self, committed: Commit) -> Route:
        tasks = tuple(source.tasks for source in self.inputs.sources)
        return Route(tasks, committed.partitions, route_digest(self._fingerprint, self.job.plan.table))

    def _wanted(self, commit: Commit) -> InputRange:
        """What the next batch reads, when it is due; nothing, if nothing has come or the sink wants to wait."""
        wanted = self._arrived(commit)
        # From start to start: a slow batch is followed by the next one at once.
        due = self._began + self.job.settings.interval_seconds if self.job.reported.batches else 0.0
        if wanted.rows and time.monotonic() < due:
            while (early := due - time.monotonic()) > 0 and not self.job.stopping.is_set():
                self._pause(early)
            # What has come meanwhile belongs to the batch that is due now.
            wanted = wanted.nothing if self.job.stopping.is_set() else self._arrived(commit)
        waits = wanted.rows and self._waits(wanted, commit)
        return wanted.nothing if waits else wanted

    def _arrived(self, commit: Commit) -> InputRange:
        limit = self.job.settings.max_rows
        wanted = self._with_retries(lambda: self._look(commit, limit))
        self._ends = wanted.end
        lag = self.inputs.lag(commit.positions)
        self._latency.look(time.monotonic(), total_of(commit.positions) + lag)
        self._warn_of_waiting(commit)
        if lag != self.job.reported.lag or len(self.warnings) > len(self.job.reported.warnings):
            self.job.report(lag=lag, warnings=tuple(self.warnings))
        return wanted

    def _warn_of_waiting(self, commit: Commit) -> None:
        """Once for each source: nothing closes because of partitions that nothing has come from."""
        if self._started_at + _PATIENCE_SECONDS > time.monotonic():
            return
        for place, partitions in self.watermarks.waiting(commit).items():
            sentence = (
                f"The watermark of table '{self.inputs.name_of(place)}' waits for partitions without messages: "
                f"{', '.join(partitions)}. Nothing that depends on it is emitted before. Set "
                "'scan.watermark.idle-timeout' if they may stay empty."
            )
            if place not in self._warned:
                self._warned.add(place)
                self.warnings.append(sentence)

    def _look(self, commit: Commit, limit: int) -> InputRange:
        self.job.asking_since = time.monotonic()
        try:
            return self.inputs.available(commit.positions, commit.bounds, limit)
        finally:
            self.job.asking_since = None

    def _last_look(self, commit: Commit) -> None:
        """What is left to read when the job stops; as it was known before, if there is no answer now."""
        if self.job.reported.status == "running":
            with suppress(Exception):
                self._look(commit, 1)
                self.job.report(lag=self.inputs.lag(commit.positions))

    def _waits(self, wanted: InputRange, commit: Commit) -> bool:
        """Whether the sink wants more changes, or more time, before the next batch."""
        # Not since the last batch: those without rows, which run because time has moved, would put it off for good.
        since = time.monotonic() - self._read
        flush = self.sink.flush_interval
        if flush is None or is_finished(wanted.end, commit.bounds):
            return False
        return wanted.rows < flush.rows and since < flush.seconds

    def _run_batch(self, commit: Commit, wanted: InputRange, watermarks: list[list[int | None]]) -> Commit:
        self._began = time.monotonic()
        self._read = self._began if wanted.rows else self._read
        intent = Intent(
            commit.batch + 1,
            wanted.start,
            wanted.end,
            commit.bounds,
            self.inputs.splits(wanted),
            self._route(commit).to_json(),
            self.watermarks.processing_time(watermarks),
            self.inputs.facts(),
            self.sink.facts(),
            watermarks,
        )
        with watched(self.job, self._began, self._parties):
            return self.batches.run(intent)

    def _committed(self, commit: Commit, gone: tuple[str, ...]) -> None:
        """Tell the sources (they move their group offsets) and whoever watches."""
        del gone
        # Planned from what was committed: a merge of files that no commit names would be work for an attempt that
        # failed.
        self.executor.compactor.plan(commit.state)
        self.inputs.done(commit.positions)
        # Late rows are reported after the commit, so that a batch that is repeated does not report them twice.
        for (_, kind, *where), rows in self.executor.reported.items():
            for row in rows if kind == "late rows" else ():
                self.job.leave_out(LeftOut("late", where[0], "It came behind the watermark.", row))
        before, now = self.job.reported, time.monotonic()
        seconds = now - self._began
        rows, written = commit.counts["in"], commit.counts["out"]
        self.job.report(
            status="running",
            batches=before.batches + 1,
            rows_in=before.rows_in + rows,
            rows_out=(before.rows_out or 0) + written,
            bad_records=before.bad_records + commit.counts["bad"],
            late_rows=before.late_rows + commit.counts.get("late", 0),
            due=self._is_due(commit),
            lag=self.inputs.lag(commit.positions),
            batch_seconds=seconds,
            spark_seconds=self.executor.spark_seconds,
            rows_per_second=rows / seconds if seconds else 0.0,
            positions=tuple(commit.positions),
            state_rows=sum(run.rows for run in files_of(commit.state)),
            state_bytes=sum(run.bytes for run in files_of(commit.state)),
            batch=commit.batch,
            operators=operators_after(before.operators, self.executor.reported, commit.state),
            watermark=_least(commit.watermarks),
            latency_seconds=self._latency.committed(now, total_of(commit.positions) - rows),
            warnings=tuple(self.warnings),
            note="",
        )

    def _is_due(self, commit: Commit) -> bool:
        """Whether the watermark of a source has moved since the batch began."""
        return any(before != now for before, now in self.watermarks.next(commit)[: len(commit.positions)])

    def _failed(self, error: Exception, failures: int) -> None:
        """After a failure: returns, perhaps after a pause, to try again; raises to give up."""
        problem = self.job.translate(error)
        pending = self.checkpoint.pending
        if isinstance(problem, UnknownSchemaError) and pending is not None and failures <= _LEARNING_ATTEMPTS:
            try:
                self.executor.learn(pending)
                return
            except Exception as failure:  # noqa: BLE001 - a registry that is away is a failure like others
                problem = self.job.translate(failure)
        # Counted per action and not per run: a job that lives for months may meet any number of short outages.
        # A job that never worked fails at once: a wrong address should be an error in seconds, not a retry in minutes.
        # A broker that says it is not ready is at the right address: topics that were just created have no leader yet.
        hopeless = self._never_worked() and not isinstance(problem, KafkaNotReadyError)
        if failures > len(_RETRY_SECONDS) or not is_transient(problem) or hopeless:
            raise problem from None  # without its trace: that may hold secrets
        pause = _RETRY_SECONDS[failures - 1]
        self.job.report(status="retrying", note=f"{problem.fact} Trying again in {pause} s.")
        if self.job.stopping.wait(pause):
            raise problem from None

    def _with_retries(self, action: Callable[[], T]) -> T:
        failures = 0
        while True:
            try:
                result = action()
            except Exception as error:  # noqa: BLE001 - translated and judged
                failures += 1
                self._failed(error, failures)
                continue
            if failures:
                self.job.report(status="running", note="")
            return result

    def _never_worked(self) -> bool:
        """Nothing has answered yet: wrong settings are likelier than a transient fault, so fail at once."""
        return self.job.reported.status == "starting"

    def _pause(self, seconds: float) -> None:
        self.job.woken.wait(seconds)
        self.job.woken.clear()


def _least(watermarks: Sequence[Position]) -> int | None:
    """Of all partitions; None if there is none, or the input has ended and time with it."""
    known = [watermark for partitions in watermarks for watermark in partitions.values()]
    return min(known) if known and abs(min(known)) < _FAR_MILLIS else None


def _only_the_end_is_left(wanted: InputRange, commit: Commit) -> bool:
    """Retention has removed all that was left before the bounds: a batch without rows commits that they are reached."""
    finished = is_finished(commit.positions, commit.bounds)
    return not wanted.rows and not finished and is_finished(wanted.end, commit.bounds)


def _open_sink(root: Write, context: RuntimeContext) -> Sink:
    sink: Sink = root.table.connector.sink(root.table, context.about(root.table))
    return sink
