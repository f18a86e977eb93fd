"""The loop: one micro-batch after the other, each of them one Spark job.

    1. Look how far each source can be read, and write that down (the intent).
    2. Lower the plan for exactly that data and write the result into the sink; operators save their state on the way.
    3. Write the commit: now the batch is done. If it ended earlier than was intended, that is written down before.
    4. Tell the sources (they move their group offsets).

A crash before 3 leaves an intent without a commit: the next run computes the same batch from the same state again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql import DataFrame

from headwater.changelog.early import EarlyGroups
from headwater.connectors.io import IoContext, Position, Sink, SinkStart
from headwater.connectors.open import open_sink
from headwater.errors import IncompatibleCheckpointError, JobError, UnknownSchemaError, UnusualMessagesError
from headwater.plan.chance import is_repeatable, keeps_tasks
from headwater.plan.nodes import Scan, Values
from headwater.plan.signature import Signature, dealt_by, differences, fed_by, signature_of
from headwater.runtime.checkpoint import Intent
from headwater.runtime.failures import is_passing
from headwater.runtime.inputs import Inputs, is_finished, rows_of
from headwater.runtime.lower import Batch, lower
from headwater.runtime.shortcut import Shortcut

if TYPE_CHECKING:
    from headwater.runtime.job import Job

__all__ = ["RETRY_SECONDS", "Loop"]

T = TypeVar("T")

RETRY_SECONDS = (0.5, 1, 2, 4, 8, 15, 30, 30)


class Loop:
    """The life of one run of a job."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.warnings: list[str] = []
        context = IoContext(job.spark, job.name, self.warnings)
        self.inputs = Inputs(job.plan, context)
        self.sink: Sink = job.around_sink(open_sink(job.plan, context))
        self.wrote_at = time.monotonic()
        self.shortcut = Shortcut()

    def run(self) -> None:
        try:
            batch, position, bounds, intent = self._recover()
            self.job.report(status="running", positions=tuple(position), warnings=tuple(self.warnings))
            while not self.job.stopping.is_set():
                with self.job.turn:
                    intent = intent or self._next_intent(position, bounds)
                    position, waiting = intent.start, rows_of(intent)
                    if waiting:
                        batch += 1
                        position = self._run_batch(batch, intent).end
                    intent = None
                if waiting:
                    continue
                if is_finished(position, bounds):
                    return
                self.job.woken.wait(self.job.settings.poll_seconds)
                self.job.woken.clear()
        finally:
            self.inputs.close()
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
        start = self._patiently(self.inputs.start)
        bounds = self._patiently(lambda: self.inputs.bounds(start))
        signature, partitions = signature_of(self.job.plan).to_json(), self.job.settings.partitions
        job = {"signature": signature, "partitions": partitions, "start": start, "bounds": bounds}
        return self.job.checkpoint.create(job)

    def _start_sink(self, identity: str, batch: int, begun: bool) -> None:
        plan = self.job.plan
        remembered = self.job.checkpoint.sink()
        told = f"{fed_by(plan)}\n{dealt_by(plan)}"
        start = SinkStart(identity, batch, begun, told, is_repeatable(plan), remembered)
        self.job.checkpoint.remember_sink(self._patiently(lambda: self.sink.start(start)))

    def _next_intent(self, position: list[Position], bounds: list[Position | None]) -> Intent:
        """What can be read now; nothing, if start and end are the same."""
        limit = self.job.settings.max_rows
        intent = self._patiently(lambda: self.inputs.available(position, bounds, limit))
        if len(self.warnings) > len(self.job.reported.warnings):
            self.job.report(warnings=tuple(self.warnings))
        held_back = self._held_back(rows_of(intent), is_finished(intent.end, bounds))
        return Intent(intent.start, intent.start, bounds) if held_back else intent

    def _held_back(self, waiting: int, at_the_end: bool) -> bool:
        """Whether the sink wants more changes, or more time, before the next batch."""
        pace = self.sink.pace
        if pace is None or at_the_end or waiting >= pace.rows:
            return False
        return time.monotonic() - self.wrote_at < pace.seconds

    def _run_batch(self, batch: int, intent: Intent) -> Intent:
        """What was done: the intent, unless the batch ended earlier. Then it is as if that had been intended."""
        began = self.wrote_at = time.monotonic()
        if self.job.checkpoint.intent(batch) is None:
            self.job.checkpoint.intend(batch, intent)  # 1
        done = self._patiently(lambda: self._compute(batch, intent))  # 2
        if done.intent != intent:
            self.job.checkpoint.intend(batch, done.intent)
        rows = rows_of(done.intent)
        self.job.checkpoint.commit(batch, {"rows": rows, "written": done.written, "bad": done.bad})  # 3
        self.inputs.done(done.intent)  # 4
        self._account(done, time.monotonic() - began)
        return done.intent

    def _compute(self, batch: int, intent: Intent) -> _Done:
        """A schema that is met for the first time is asked for, with all others of the batch."""
        try:
            return self._computed(batch, intent)
        except Exception as error:
            if not isinstance(self.job.translate(error), UnknownSchemaError):
                raise
        self.inputs.learn(intent)
        return self._computed(batch, intent)

    def _computed(self, batch: int, intent: Intent) -> _Done:
        """The short cut is for ordinary messages. Where something unusual ends it with an error, either nothing is
        written by then, because all that is read has gone to its group first, or what is written is not written again,
        because the sink keeps account of it. Otherwise the batch ends before it."""
        if not self.shortcut.is_open():
            return self._attempt(batch, intent, quickly=False)
        try:
            result = self._attempt(batch, intent, quickly=True)
        except Exception as error:
            if not isinstance(self.job.translate(error), UnusualMessagesError):
                raise
            self.shortcut.failed()
            return self._attempt(batch, intent, quickly=False)
        if result.intent == intent:
            self.shortcut.worked()
        else:
            self.shortcut.failed()
        return result

    def _attempt(self, batch: int, intent: Intent, *, quickly: bool) -> _Done:
        def groups(scan: Scan, early: EarlyGroups) -> DataFrame | None:
            begun = self.inputs.read_groups(intent, scan, early) if quickly else None
            if begun is not None:
                self.shortcut.take()
            return begun

        def rows(scan: Scan | Values) -> DataFrame:
            ordinary = self.inputs.read_ordinary(intent, scan, self.sink.whole) if quickly else None
            if ordinary is None:
                return self.inputs.read(intent, scan)
            self.shortcut.take()
            return ordinary

        partitions, location = self.job.settings.partitions, self.job.checkpoint.state_location
        around = Batch(batch, uuid.uuid4().hex, partitions, rows, groups, location)
        steady = keeps_tasks(self.job.plan) and self.inputs.keep_tasks(intent)
        written = self.sink.write(lower(self.job.plan, around), batch, steady=steady)
        reached = self.inputs.reached(intent) if quickly else intent
        return _Done(reached, written, self.inputs.settle(reached))

    def _patiently(self, action: Callable[[], T]) -> T:
        """Try again, with growing pauses, while the trouble may pass by itself (a broker that restarts)."""
        for pause in (*RETRY_SECONDS[: self.job.settings.retries], None):
            try:
                result = action()
                if self.job.reported.note:
                    self.job.report(note="")
                return result
            except Exception as error:  # noqa: BLE001 - translated, without its trace: that may hold secrets
                problem = self.job.translate(error)
                if pause is None or not is_passing(problem) or self._never_worked():
                    raise problem from None
                self.job.report(note=f"{problem.fact} Trying again in {pause} s.")
                if self.job.stopping.wait(pause):
                    raise problem from None
        raise JobError(f"Job '{self.job.name}' gave up.")

    def _never_worked(self) -> bool:
        """No broker has answered yet: wrong settings are likelier than a passing fault, so fail at once."""
        return self.job.reported.status == "starting" and not self.job.checkpoint.last_commit()

    def _account(self, done: _Done, seconds: float) -> None:
        before, written, rows = self.job.reported, done.written, rows_of(done.intent)
        out = before.rows_out if written is None else (before.rows_out or 0) + written
        self.job.report(
            batches=before.batches + 1,
            rows_in=before.rows_in + rows,
            rows_out=out,
            bad_records=before.bad_records + done.bad,
            lag=self.inputs.lag(done.intent),
            batch_seconds=seconds,
            rows_per_second=rows / seconds if seconds else 0.0,
            positions=tuple(done.intent.end),
            warnings=tuple(self.warnings),
            note="",
        )


@dataclass(frozen=True)
class _Done:
    """Of one batch: what was read, how many rows were written if that is known, and how many messages could not be
    read."""

    intent: Intent
    written: int | None
    bad: int


def _check_compatible(stored: dict[str, object], current: Signature, location: str) -> None:
    problems = differences(Signature.from_json(stored), current)
    if problems:
        raise IncompatibleCheckpointError(
            "The checkpoint was written by a job that this SQL cannot continue.",
            detail="\n".join(f"- {p}" for p in problems) + f"\nCheckpoint: {location}",
            hint="Undo the change, or start with a new --checkpoint directory (the job then reads its input again).",
        )
