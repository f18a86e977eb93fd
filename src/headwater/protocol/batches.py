"""One numbered batch after the other. Whoever executes them is behind a port, so that all of this can be simulated.

    1. Intend: what the batch reads is decided and written down.
    2. Execute. A failure that may pass is tried again, under a new attempt id: nothing of the failed attempt is seen.
    3. Commit: the batch is done.
    4. Collect garbage.
    5. Notify.

A run that is started again claims the checkpoint first, and goes on with 2 if the batch after the last commit was
intended: that very intent, also if it reads nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from headwater.errors import IncompatibleCheckpointError, StaleCheckpointError, StorageUnavailableError
from headwater.protocol.checkpoint import Checkpoint, Recovered
from headwater.protocol.records import Commit, Intent, Json, Position, StateFiles

__all__ = ["BatchOutcome", "Batches", "Executor", "OnFailure"]

T = TypeVar("T")

OnFailure = Callable[[Exception, int], None]
"""Asked after each failure, with how many there were in a row: returns, perhaps after a pause, to try again; raises to
give up. Errors of the checkpoint itself are never asked about."""


@dataclass(frozen=True)
class BatchOutcome:
    """What executing an intent gave: the complete state after it, and what the sink and the sources report."""

    state: StateFiles
    sink: Json = field(default_factory=dict)
    watermarks: list[Position] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


class Executor(Protocol):
    def execute(self, intent: Intent, committed: Commit, attempt: str) -> BatchOutcome:
        """Compute exactly `intent` from the state of `committed`, and nothing else, and write the result to the sink.

        New files are named by `state_name` with this `attempt`. The outcome names files of successful tasks only. What
        tasks do that go on after this has raised must be harmless: their files are named by nobody.
        """
        ...


class Batches:
    """The life of one run: `claim`, then `replay`, then `run` for each batch."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        executor: Executor,
        on_failure: OnFailure,
        on_commit: Callable[[Commit, tuple[str, ...]], None] = lambda *_: None,
    ) -> None:
        """`on_commit` gets each commit, and which files of the state are gone since."""
        self.checkpoint = checkpoint
        self._executor = executor
        self._on_failure = on_failure
        self._on_commit = on_commit
        self._failed: list[str] = []  # attempts whose files have not been removed yet

    def claim(self) -> Recovered:
        run = uuid.uuid4().hex
        return self.with_retries(lambda: self.checkpoint.claim(run))

    def replay(self) -> Commit:
        """Finish the pending batch of an earlier run, if there is one; answers the newest commit."""
        pending = self.checkpoint.pending
        return self.checkpoint.committed if pending is None else self._finish(pending)

    def run(self, intent: Intent) -> Commit:
        self.with_retries(lambda: self.checkpoint.intend(intent))  # 1
        return self._finish(intent)

    def _finish(self, intent: Intent) -> Commit:
        committed = self.checkpoint.committed
        commit = self.with_retries(lambda: self._attempt(intent, committed))  # 2
        self.with_retries(lambda: self.checkpoint.commit(commit))  # 3
        gone = self.with_retries(self._collect)  # 4
        self._on_commit(commit, gone)  # 5
        return commit

    def _attempt(self, intent: Intent, committed: Commit) -> Commit:
        # A new id for every attempt: tasks of a failed one may still be writing, and must never meet the files of
        # this one.
        attempt = f"{intent.batch:012d}-{uuid.uuid4().hex}"
        try:
            outcome = self._executor.execute(intent, committed, attempt)
        except Exception:
            # Removed later, after the next commit: now its tasks may still be running.
            self._failed.append(attempt)
            raise
        return Commit(
            intent.batch,
            attempt,
            intent.digest,
            committed.partitions,
            intent.end,
            intent.bounds,
            outcome.watermarks,
            outcome.state,
            outcome.sink,
            intent.topics,
            outcome.counts,
            [now for _, now in intent.watermarks],
        )

    def _collect(self) -> tuple[str, ...]:
        gone = self.checkpoint.collect()
        self.checkpoint.collect_attempts(self._failed)
        self._failed = []
        return gone

    def _refuse_if_overtaken(self) -> None:
        failures = 0
        while True:
            try:
                return self.checkpoint.refuse_if_overtaken()
            except StorageUnavailableError as error:
                failures += 1
                self._on_failure(error, failures)

    def with_retries(self, action: Callable[[], T]) -> T:
        """For whatever belongs to a batch, or to the start of the run.

        What seems to be damage may be the work of a newer run, which has removed or written what this one does not
        expect. Then that is what is said.
        """
        failures = 0
        while True:
            try:
                return action()
            except (IncompatibleCheckpointError, StaleCheckpointError):
                self._refuse_if_overtaken()
                raise
            except Exception as error:  # noqa: BLE001 - judged by whoever started the run
                failures += 1
                self._on_failure(error, failures)
