"""What runs the script of a case: jobs that can be watched, held still, broken and started again.

`LocalEngine` runs them in this process, on a Spark that all cases share. A crash there is a sink that fails at a chosen
moment and is never asked again: the job thread ends, the checkpoint stays as a killed process would leave it. `process`
has the other engine, whose jobs live in a process that is really killed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from headwater.errors import HeadwaterError
from headwater.options.session import SessionOptions
from headwater.session import Session
from headwater.sql.parser import parse_script
from headwater.sql.statements import Insert, StatementSet
from headwater.testing.case import Phase
from headwater.testing.faults import Crash, CrashingExecutor, Fault
from headwater.testing.table_values import show_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.execution.job import Job, Progress

__all__ = ["QUICK", "Engine", "EngineJob", "LocalEngine", "StatementFailed"]

QUICK = {"headwater.batch.poll-interval": "500 ms", "headwater.state.partitions": "2"}
"""Settings for many small jobs on a small machine; a script may SET others. Jobs that wait do not look all the time,
because whoever waits for them wakes them."""


@dataclass
class StatementFailed(Exception):
    """A statement of a script was refused. A script that cannot be parsed fails before it is known what fails."""

    phase: Phase | Literal["parse"]
    error: HeadwaterError


@dataclass(frozen=True)
class EngineJob:
    """`positions` say how far its input is read and committed, as 'topic:partition'; `error` is why it failed, as text.
    `crashed` means that it failed because a test wanted it to, `due` that another batch follows without more input:
    time has moved."""

    name: str
    state: str  # as `Progress.status`
    batches: int
    positions: Mapping[str, int]
    error: str = ""
    crashed: bool = False
    due: bool = False

    @property
    def live(self) -> bool:
        return self.state in {"starting", "running", "retrying"}


class Engine(Protocol):
    """The jobs of one script on one checkpoint directory."""

    def run(self, script: str, name: str) -> None:
        """Execute statements; INSERTs start jobs. Raises StatementFailed."""
        ...

    def jobs(self) -> list[EngineJob]: ...

    def pause(self) -> None:
        """Returns when no batch is under way; none starts until `resume`."""
        ...

    def resume(self) -> None: ...

    def wake(self) -> None:
        """Let all jobs look for new data at once."""
        ...

    def crash_next(self, fault: Fault) -> None:
        """Let every job's next batch end in a crash."""
        ...

    def table(self, name: str) -> list[tuple[str, ...]]:
        """The rows of a table now, as text."""
        ...

    def stop(self) -> None:
        """End all jobs in order. The engine cannot be used again."""
        ...

    def kill(self) -> None:
        """End all jobs with no chance to tidy up. The engine cannot be used again."""
        ...


class _SharedSession(Session):
    """A session on a Spark that is asked for only when a job starts, and never stopped by it."""

    get_spark: Callable[[], SparkSession]

    @property
    def spark(self) -> SparkSession:
        return self.get_spark()


class LocalEngine:
    def __init__(
        self,
        spark: Callable[[], SparkSession],
        checkpoint: str,
        variables: Mapping[str, str],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        given = SessionOptions({**QUICK, **(settings or {})})
        self._session = _SharedSession(checkpoint, variables=variables, settings=given)
        self._session.on_batch, self._session.on_job = self._remember, self._prepare
        self._session.get_spark = spark
        self._progress: dict[str, Progress] = {}
        self._executors: list[CrashingExecutor] = []
        self._paused: list[Job] = []

    def run(self, script: str, name: str) -> None:
        try:
            statements = parse_script(script, name, self._session.variables)
        except HeadwaterError as error:
            raise StatementFailed("parse", error) from error
        for statement in statements:
            try:
                self._session.execute(statement)
            except HeadwaterError as error:
                starts_job = isinstance(statement, Insert | StatementSet)
                raise StatementFailed("insert" if starts_job else "create", error) from error

    def jobs(self) -> list[EngineJob]:
        return [self._status(job) for job in self._session.jobs]

    def pause(self) -> None:
        for job in self._session.jobs:
            job.pause()
            self._paused.append(job)

    def resume(self) -> None:
        while self._paused:
            self._paused.pop().resume()

    def wake(self) -> None:
        for job in self._session.jobs:
            job.wake()

    def crash_next(self, fault: Fault) -> None:
        for executor in self._executors:
            executor.next_fault = fault

    def table(self, name: str) -> list[tuple[str, ...]]:
        from headwater.execution.failures import translate

        try:
            return [tuple(map(show_value, row)) for row in self._session.table(name).collect()]
        except Exception as error:
            raise translate(error, f"table {name}") from error

    def stop(self) -> None:
        self.resume()
        self._session.stop_jobs()

    def kill(self) -> None:
        """Nothing is written when a job stops, so for what is committed this is the same; see `crash_next`."""
        self.stop()

    def _remember(self, progress: Progress) -> None:
        self._progress[progress.name] = progress

    def _prepare(self, job: Job) -> None:
        # Around every job from its start: a fault that is asked for later has to find its place in a prepared plan.
        crashing = CrashingExecutor()
        self._executors.append(crashing)
        job.around_executor, job.around_sink = crashing.around_executor, crashing.around_sink

    def _status(self, job: Job) -> EngineJob:
        progress = self._progress.get(job.name)
        positions = {key: at for position in (progress.positions if progress else ()) for key, at in position.items()}
        return EngineJob(
            job.name,
            progress.status if progress else "starting",
            progress.batches if progress else 0,
            positions,
            str(job.error) if job.error is not None else "",
            isinstance(job.error, Crash),
            progress is not None and progress.due,
        )
