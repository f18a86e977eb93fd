"""What a connector does while a job runs: the two ports that `runtime.loop` drives.

A source names places in its data by a `Position`: plain numbers that can be written to a checkpoint. A batch is the
data between two positions; reading it again gives the same rows, whenever that is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from pyspark.sql import DataFrame, SparkSession

from headwater.catalog.tables import Table
from headwater.changelog.early import EarlyGroups

__all__ = ["IoContext", "Pace", "Position", "QuickSource", "Sink", "SinkStart", "Source"]

Position = dict[str, int]


@dataclass(frozen=True)
class IoContext:
    """The job's own Spark session, its name, and where to tell the user something (a warning is one sentence). `said`
    puts it in the words of the table at hand."""

    spark: SparkSession
    job: str
    warnings: list[str]
    said: Callable[[str], str] = str

    def warn(self, sentence: str) -> None:
        if self.said(sentence) not in self.warnings:
            self.warnings.append(self.said(sentence))

    def about(self, table: Table) -> IoContext:
        return replace(self, said=table.spelling.said)


class Source(Protocol):
    """One table being read."""

    def start(self) -> Position:
        """Where a new job begins. Not asked again once a checkpoint exists."""
        ...

    def bound(self, start: Position) -> Position | None:
        """Where a bounded table ends, fixed when the job is new; None if it never ends."""
        ...

    def available(self, position: Position, bound: Position | None, limit: int) -> tuple[Position, Position]:
        """From where to where the next batch may read now: at most about `limit` rows, never beyond `bound`.

        It starts at `position`, except that what is new since then is in it with its beginning.
        """
        ...

    def read(self, start: Position, end: Position, columns: Sequence[str]) -> DataFrame:
        """The rows in between: `columns` and, for a changelog source, its kind and order columns."""
        ...

    def learn(self, start: Position, end: Position) -> None:
        """Ask for whatever the messages in between need to be read and is not known yet: their schemas."""
        ...

    def settle(self, start: Position, end: Position, columns: Sequence[str]) -> int:
        """What was read in between has been computed and written, but not committed yet. Answers how many messages
        could not be read and were left out."""
        ...

    def keeps_tasks(self, start: Position, end: Position, columns: Sequence[str]) -> bool:
        """Whether every `read` of what lies in between puts the same rows into the same tasks."""
        ...

    def lag(self, position: Position) -> int:
        """How many rows (or messages) lie beyond `position` as of the last look."""
        ...

    def done(self, position: Position) -> None:
        """All up to `position` has been processed and committed."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class QuickSource(Protocol):
    """A source with quicker ways to read what is ordinary. An UnusualMessagesError, while rows are computed, says that
    something is not."""

    def read_ordinary(self, start: Position, end: Position, columns: Sequence[str], whole: bool) -> DataFrame | None:
        """As `read`; None if that is the only way. Unless the batch must be `whole`, it may end before something
        unusual, at `reached`."""
        ...

    def reached(self, end: Position) -> Position:
        """How far the rows of `read_ordinary` went, when they have been computed: to `end`, or less far."""
        ...

    def read_groups(self, start: Position, end: Position, early: EarlyGroups) -> DataFrame | None:
        """The rows in between as groups and contributions, which begins a GROUP BY; None if they have to be read one
        by one."""
        ...


@dataclass(frozen=True)
class Pace:
    """A batch waits until so many rows have come or so much time has passed since the batch before."""

    rows: int
    seconds: float


@dataclass(frozen=True)
class SinkStart:
    """What a sink must know to go on exactly where the job stopped.

    checkpoint  the identity of the checkpoint: another one starts to count its batches anew
    batch       the number of the batch that comes next, and `begun` whether an earlier run has begun it
    plan        the same text only if the same rows are computed from the same input, in the same tasks
    repeatable  whether computing a batch again gives the very same rows: nothing in them is chance or the clock
    remembered  what `start` answered last time
    """

    checkpoint: str
    batch: int
    begun: bool
    plan: str
    repeatable: bool
    remembered: Mapping[str, Any] = field(default_factory=dict)


class Sink(ABC):
    """One table being written. `whole`: what was intended for a batch is what it must hold, to the last row."""

    pace: Pace | None = None
    whole: bool = False

    def start(self, job: SinkStart) -> dict[str, Any]:
        """Called once, before the first batch. The answer is kept in the checkpoint until the next start."""
        del job
        return {}

    @abstractmethod
    def write(self, rows: DataFrame, batch: int, *, steady: bool) -> int | None:
        """Write one batch; answer with the number of rows written if it is known. `steady`: if it is computed again,
        each task has the rows it has now."""

    def close(self) -> None:
        """The job ends."""
        return


def total(start: Position, end: Position) -> int:
    """How many rows lie between two positions."""
    return sum(end[k] - start.get(k, 0) for k in end)


def limit_evenly(position: Position, end: Position, limit: int) -> Position:
    """`end`, or a place before it so that about `limit` rows are read, shared out in proportion to what waits."""
    waiting = total(position, end)
    if waiting <= limit:
        return end
    return {
        k: min(end[k], position.get(k, 0) + max(1, (end[k] - position.get(k, 0)) * limit // waiting))
        if end[k] > position.get(k, 0)
        else end[k]
        for k in end
    }
