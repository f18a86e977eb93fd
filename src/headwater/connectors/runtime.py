"""What a connector does while a job runs: the two ports that `execution` drives.

A source names places in its data by a `Position`: plain numbers that can be written to a checkpoint. A batch is the
data between two positions, divided into splits that are written down before anything is read; reading a split again
gives the same rows in the same order, whenever and wherever that is.

Both ports have a driver side (these classes) and a worker side (`ScanPlan.reader`, `Sink.writer`): values that travel
to Spark's Python workers once, with the prepared plan. What belongs to a single batch reaches them as arguments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from headwater.options.session import CHUNK_ROWS
from headwater.protocol.batch_ids import BatchId
from headwater.protocol.records import Position

# `headwater check` knows all connectors without Spark.
if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headwater.catalog.tables import Table
    from headwater.changelog.conditions import Condition
    from headwater.changelog.preaggregate import PreAggregation

__all__ = [
    "PLACE",
    "BatchId",
    "FlushInterval",
    "LeftOut",
    "LocalAggregation",
    "Position",
    "ReadColumns",
    "Reader",
    "Renderer",
    "RowOrder",
    "RuntimeContext",
    "ScanPlan",
    "Sink",
    "SinkStart",
    "Source",
    "Split",
    "UnchangingSource",
    "Writer",
]

Split = Any
"""What one task reads of one piece of the input, as JSON: for Kafka [topic, partition, first offset, end offset]."""

RowOrder = Literal["any", "partition", "ignored"]
"""In which order a source is read: as it likes, or each partition from its beginning, as watermarks need it. Where the
order is ignored, changes do not have the columns that tell it."""

PLACE = "__hw_place"
"""Of rows that are read for a watermark: the partition they came from, in whose order they come."""

Writer = Callable[[int, BatchId, "Iterable[pa.RecordBatch]"], int]
Renderer = Callable[[int, "Iterable[pa.RecordBatch]"], "Iterator[bytes]"]
Reader = Callable[[Sequence[Split]], "Iterator[pa.RecordBatch]"]


@dataclass(frozen=True)
class LeftOut:
    """A message or row that was left out, for people to look at. `kind` is bad or late, `place` where it was found,
    `payload` its content as text, perhaps shortened."""

    kind: str
    place: str
    problem: str
    payload: str


@dataclass(frozen=True)
class RuntimeContext:
    """The job's own Spark session, its name, how many tasks read or write by default, and where warnings go (a warning
    is one sentence). `spelled` puts a sentence in the option names that the table was declared with. `leave_out` is
    called with some of the messages that were left out. `chunk_rows` is how many messages are decoded together; rows
    are the same for any number."""

    spark: SparkSession
    job: str
    tasks: int
    warnings: list[str]
    spelled: Callable[[str], str] = str
    leave_out: Callable[[LeftOut], None] = lambda _: None
    chunk_rows: int = CHUNK_ROWS

    def warn(self, sentence: str) -> None:
        if self.spelled(sentence) not in self.warnings:
            self.warnings.append(self.spelled(sentence))

    def about(self, table: Table) -> RuntimeContext:
        return replace(self, spelled=table.spelling.said)


@dataclass(frozen=True)
class LocalAggregation:
    """Pre-aggregation where rows are read: `groups` reduces rows that were decoded in columns; `sql` has, per output
    column of `groups`, the same for a single row as SQL over the scan's columns (for messages that a column reader
    refused and that Spark's expressions decode). The aggregate operator adds up both. Only rows for which the
    condition is TRUE count: `where` for rows in columns, `where_sql` for the others."""

    groups: PreAggregation
    sql: Mapping[str, str]
    where: Condition | None = None
    where_sql: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """All that must be read."""
        tested = sorted(self.where.columns) if self.where is not None else []
        return tuple(dict.fromkeys([*self.groups.columns, *tested]))


@dataclass(frozen=True)
class ReadColumns:
    """For whoever works on rows between a reader and `ScanPlan.decode`, in the same Python worker.

    names    columns of the scan that are complete as the reader gives them, and what they are called there
    refused  a column that is NULL for rows that were read; all other rows are made by `decode`
    place    columns whose values, joined by ':', are PLACE
    decode   as `ScanPlan.decode`, for rows that have further columns, which are kept
    """

    names: Mapping[str, str]
    refused: str
    place: tuple[str, ...]
    decode: Callable[[DataFrame, Sequence[str]], DataFrame]


@dataclass(frozen=True)
class ScanPlan:
    """How the rows of a scan come to be, for any batch: `reader` runs in the workers and gives columns of `schema`;
    `decode` is what Spark's expressions add to get the rows. A client that only the JVM has (`messages`) takes the
    place of `reader` where 'properties.*' cannot be translated; then the plan is made again for every batch.

    `bad_metric` names the observed metric `bad` that counts messages which were left out because they are bad.
    `place_prefix` and a value of PLACE are the name of a partition in positions. `read` is given for rows with a PLACE,
    if column readers read them."""

    schema: StructType
    decode: Callable[[DataFrame], DataFrame]
    reader: Reader | None = None
    messages: Callable[[Sequence[Sequence[Split]]], DataFrame] | None = None
    bad_metric: str = ""
    place_prefix: str = ""
    read: ReadColumns | None = None


class Source(Protocol):
    """One table being read."""

    @property
    def tasks(self) -> int:
        """How many tasks read it."""
        ...

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

    def splits(self, start: Position, end: Position) -> list[list[Split]]:
        """What each of the `tasks` reads of the batch between two positions."""
        ...

    def scan(
        self,
        columns: Sequence[str],
        local: LocalAggregation | None = None,
        order: RowOrder = "any",
        fields: Mapping[str, Sequence[str]] | None = None,
        where: Condition | None = None,
    ) -> ScanPlan | None:
        """How `columns` are read, with the kind and order columns of a changelog source; or, with `local`, groups and
        partial aggregates instead of rows: None if this source cannot do that. With the order
        'partition', every row is read, in the order of its partition, which is in the column PLACE; where the order is
        'ignored', the source may leave the order columns out. Of the columns in
        `fields`, which are of type ROW, only these fields are read; the source may leave out the others. It may also
        leave out rows for which `where` is not TRUE: whoever asks tests the rest again."""
        ...

    def partitions(self, position: Position) -> Sequence[str]:
        """What has a watermark of its own."""
        ...

    @property
    def revision(self) -> int:
        """Counts up when scans must be planned again: a schema was learned from a registry."""
        ...

    def learn(self, splits: Sequence[Sequence[Split]]) -> None:
        """Ask for whatever these messages need to be read and is not known yet: their schemas."""
        ...

    def divert_bad_records(self, splits: Sequence[Sequence[Split]], columns: Sequence[str], bad: int) -> int:
        """The batch was computed and written, but is not committed yet, and `bad` messages were counted. Answers how
        many were left out because they are bad, and keeps them in the dead-letter topic if there is one."""
        ...

    def divert_late_rows(self, messages: Mapping[str, Sequence[int]]) -> None:
        """The same for messages with rows that came too late, as positions name partitions, with offsets. Only asked of
        sources whose rows have the column ORIGIN."""
        ...

    def facts(self) -> dict[str, Any]:
        """What identifies the data that positions are about (ids of cluster and topics), for the commit. Raises if it
        is not what `check_facts` was given."""
        ...

    def check_facts(self, facts: Mapping[str, Any]) -> None:
        """Compare what an earlier commit says of the data with what is there now."""
        ...

    def lag(self, position: Position) -> int:
        """How many rows (or messages) lie beyond `position` as of the last look."""
        ...

    def unanswered(self) -> str:
        """As `Sink.unanswered`."""
        ...

    def done(self, position: Position) -> None:
        """All up to `position` has been processed and committed."""
        ...

    def close(self) -> None: ...


class UnchangingSource:
    """What sources have in common whose rows need no client: nothing to learn, to commit or to close."""

    tasks: int = 1
    revision: int = 0

    def learn(self, splits: Sequence[Sequence[Split]]) -> None:
        return

    def divert_bad_records(self, splits: Sequence[Sequence[Split]], columns: Sequence[str], bad: int) -> int:
        return 0

    def divert_late_rows(self, messages: Mapping[str, Sequence[int]]) -> None:
        return

    def facts(self) -> dict[str, Any]:
        return {}

    def check_facts(self, facts: Mapping[str, Any]) -> None:
        return

    def partitions(self, position: Position) -> Sequence[str]:
        return list(position)

    def lag(self, position: Position) -> int:
        return 0

    def unanswered(self) -> str:
        return ""

    def done(self, position: Position) -> None:
        return

    def close(self) -> None:
        return


@dataclass(frozen=True)
class FlushInterval:
    """A batch waits until so many rows have come or so much time has passed since the batch before."""

    rows: int
    seconds: float


@dataclass(frozen=True)
class SinkStart:
    """What a sink must know to go on exactly where the job stopped.

    checkpoint     the identity of the checkpoint: another one counts its batches from the start
    committed      the last batch that is committed
    pending        the batch that was intended and not committed, if any: some writers may have written it
    rerouted       whether the pending batch would now be computed or divided among writers in another way: then none of
                   it may have been written
    deterministic  whether computing a batch again gives the very same rows
    writers        how many tasks may write, if the sink takes rows where they are
    remembered     what `facts` gave for the pending batch, or else for the last one
    """

    checkpoint: str
    committed: BatchId
    pending: BatchId | None
    rerouted: bool
    deterministic: bool
    writers: int
    remembered: Mapping[str, Any] = field(default_factory=dict)


class Sink(ABC):
    """One table being written, in one of three ways: by a `writer` in the workers; by `encode` alone, where rows are
    only counted; or, if it `shows` rows, by chunks that a `renderer` makes of them and that the driver takes one by
    one. A client of the JVM `saves` messages instead, where 'properties.*' cannot be translated for a writer."""

    flush_interval: FlushInterval | None = None
    shows: bool = False
    saves: bool = False

    def start(self, job: SinkStart) -> None:
        """Called once, before the first batch. Raises if the sink has seen batches that this checkpoint has not."""
        del job

    def facts(self) -> dict[str, Any]:
        """Kept in every commit, and given back by `SinkStart.remembered`."""
        return {}

    @abstractmethod
    def encode(self, rows: DataFrame) -> DataFrame:
        """Messages for the writers, as part of the prepared plan. May bring rows together by key first."""

    def writer(self) -> Writer | None:
        """In a worker, for the messages of one task (its number comes first): write them all, durably as the guarantee
        says, and answer how many there were. None: computing the messages is all there is to do."""
        return None

    def renderer(self) -> Renderer | None:
        """In a worker, of a sink that `shows` rows: chunks of them for the driver, whatever a chunk is."""
        return None

    def show(self, chunk: bytes) -> int:
        """On the driver: one chunk. Answers how many rows it held."""
        raise NotImplementedError

    def save(self, messages: DataFrame) -> int | None:
        """Write messages by a client of the JVM, where a `writer` cannot be had; answers how many, if that is known."""
        raise NotImplementedError

    def unanswered(self) -> str:
        """Asked from another thread while a batch takes long: a sentence if nobody answers where rows go to."""
        return ""

    def close(self) -> None:
        """The job ends."""
        return
