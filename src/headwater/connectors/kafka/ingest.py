"""Many messages on their way to the decoders: fetched, superseded ones dropped, ordinary ones read by Arrow, in Python.

Worth a trip to Python only for large batches. What comes out of it is the same with and without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import BooleanType, DataType, StructType

from headwater.changelog.collapse import keep_last
from headwater.changelog.columns import spread, widen
from headwater.changelog.early import EarlyGroups
from headwater.connectors.kafka.consume import Range, fetching
from headwater.errors import UnusualMessagesError
from headwater.formats.base import ColumnReader
from headwater.runtime.keyed import in_worker

__all__ = [
    "Fetch",
    "Messages",
    "Read",
    "Treatment",
    "complete",
    "fetched",
    "field_names",
    "ingest",
    "ingest_groups",
    "is_read",
]

ROWS_AT_ONCE = 50_000
BYTES_AT_ONCE = 1 << 28
ROWS_REDUCED = 500_000
BYTES_REDUCED = 1 << 26
GROUPS_AT_ONCE = 4096

Batches = Iterable[pa.RecordBatch]


def is_read(payload: str) -> str:
    """The column that tells whether a payload was read here; if not, the expressions have to do it."""
    return f"__{payload}_is_read"


def field_names(payload: str, reader: ColumnReader) -> list[str]:
    """The columns with what was read."""
    return [f"__{payload}_read_{place}" for place in range(len(reader.types))]


@dataclass(frozen=True)
class Fetch:
    """For workers that read a batch themselves: ranges of offsets, one per task, and the settings of their client."""

    ranges: Sequence[Range]
    client: Mapping[str, Any]


@dataclass(frozen=True)
class Messages:
    """The messages of a batch, as Spark reads them, and perhaps another way to get at them. If they are `many`, a trip
    to Python pays."""

    frame: DataFrame
    fetch: Fetch | None = None
    many: bool = False


@dataclass(frozen=True)
class Treatment:
    """What becomes of messages. Without one of the `present` payloads they are left out. Of `keyed` ones only the last
    one of a key in a partition counts. Unless it `keeps_payloads`, one that was read and has no error is NULL."""

    columns: Sequence[str]
    present: tuple[str, ...]
    keyed: bool
    keeps_payloads: bool


def ingest(messages: Messages, readers: Mapping[str, ColumnReader], treatment: Treatment) -> DataFrame:
    """The columns of the messages that are left, with `is_read` and the fields for every reader."""
    rows, step, schema = _ingesting(messages, readers, treatment)
    return rows.mapInArrow(in_worker(step), schema)


def ingest_groups(
    messages: Messages,
    readers: Mapping[str, ColumnReader],
    treatment: Treatment,
    names: Mapping[str, str],
    early: EarlyGroups,
    schema: StructType,
) -> DataFrame:
    """Groups and contributions as `early` has them, of `schema`; `names` are the fields behind its columns."""
    rows, step, _ = _ingesting(messages, readers, treatment)
    marks = tuple(map(is_read, readers))
    reduce = _Reduce(dict(names), marks, early, to_arrow_schema(schema))
    return rows.mapInArrow(in_worker(lambda batches: reduce(step(batches))), schema)


def _ingesting(
    messages: Messages, readers: Mapping[str, ColumnReader], treatment: Treatment
) -> tuple[DataFrame, Callable[[Batches], Batches], StructType]:
    """Rows for the workers, what they do with them, and what comes out."""
    schema = StructType([messages.frame.schema[name] for name in treatment.columns])
    rows, fetch = _rows(messages, schema)
    reads = []
    for payload, reader in readers.items():
        read = Read.by(payload, reader)
        drops = not treatment.keeps_payloads and reader.error(read.names) is None
        reads.append((read, drops))
        schema.add(is_read(payload), BooleanType())
        for name, kind in zip(read.names, read.types, strict=True):
            schema.add(name, kind)
    step = _Ingest(tuple(reads), treatment.present, treatment.keyed, to_arrow_schema(schema))
    return rows, lambda batches: step(fetch(batches)), schema


def _rows(messages: Messages, schema: StructType) -> tuple[DataFrame, Callable[[Batches], Batches]]:
    """Rows for the workers, and what makes messages of them."""
    if messages.fetch is None:
        return messages.frame.selectExpr(*schema.names), lambda batches: batches
    return fetched(messages.fetch, messages.frame.sparkSession, schema)


def fetched(fetch: Fetch, spark: SparkSession, schema: StructType) -> tuple[DataFrame, Callable[[Batches], Batches]]:
    """Rows for the workers, and what makes messages of them, with the columns of `schema`."""
    places = spark.range(0, len(fetch.ranges), 1, len(fetch.ranges))
    return places, fetching(fetch.ranges, fetch.client, to_arrow_schema(schema))


@dataclass(frozen=True)
class Read:
    """One payload of many messages → its fields."""

    payload: str
    reader: ColumnReader
    types: tuple[DataType, ...]

    @staticmethod
    def by(payload: str, reader: ColumnReader) -> Read:
        """Only the driver knows Spark's names of types."""
        return Read(payload, reader, tuple(DataType.fromDDL(t) for t in reader.types))

    @property
    def names(self) -> list[str]:
        return field_names(self.payload, self.reader)

    @cached_property
    def _arrow_types(self) -> list[pa.DataType]:
        return [to_arrow_type(t) for t in self.types]

    def fields(self, payloads: pa.Array) -> list[pa.Array] | None:
        """NULL where the payload is; None if any message is left to the expressions."""
        found = payloads.drop_null()
        read = self.reader.read(found, self._arrow_types) if len(found) else [pa.nulls(0, t) for t in self._arrow_types]
        if read is None or len(found) == len(payloads):
            return read
        present = payloads.is_valid().to_numpy(zero_copy_only=False)
        return [spread(column, present) for column in read]

    def apply(self, columns: dict[str, pa.Array], drops_payload: bool) -> dict[str, pa.Array]:
        payloads = columns[self.payload]
        count, read = len(payloads), self.fields(payloads)
        payload = pa.nulls(count, payloads.type) if read is not None and drops_payload else payloads
        values = read if read is not None else [pa.nulls(count, t) for t in self._arrow_types]
        added = dict(zip(self.names, values, strict=True))
        return {**columns, self.payload: payload, is_read(self.payload): pa.repeat(read is not None, count), **added}


def complete(batch: pa.RecordBatch, present: Iterable[str]) -> pa.RecordBatch:
    """The messages that have these payloads."""
    for payload in present:
        if batch.column(payload).null_count:
            batch = batch.filter(pc.is_valid(batch.column(payload)))
    return batch


@dataclass(frozen=True)
class _Ingest:
    """`reads` come with whether they drop the payload."""

    reads: tuple[tuple[Read, bool], ...]
    present: tuple[str, ...]
    keyed: bool
    output: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        present = (complete(batch, self.present) for batch in batches)
        for batch in self._current(present) if self.keyed else present:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for read, drops_payload in self.reads:
                columns = read.apply(columns, drops_payload)
            yield pa.RecordBatch.from_arrays(list(columns.values()), schema=self.output)

    def _current(self, batches: Batches) -> list[pa.RecordBatch]:
        """Of the messages of one key in one partition only the last one counts."""
        received = list(batches)
        if not any(batch.num_rows for batch in received):
            return []
        rows = pa.Table.from_batches(received)
        last = keep_last(
            rows.cast(widen(rows.schema)).combine_chunks(), key="key", partition="partition", offset="offset"
        )
        at_once = max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE * last.num_rows // last.nbytes))
        chunks = (last.slice(start, at_once) for start in range(0, last.num_rows, at_once))
        return [chunk.cast(rows.schema).combine_chunks().to_batches()[0] for chunk in chunks]


@dataclass(frozen=True)
class _Reduce:
    """Rows that were all read → groups, some hundred thousand rows at a time."""

    names: Mapping[str, str]
    marks: tuple[str, ...]
    early: EarlyGroups
    output: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.Table] = []
        for batch in batches:
            for mark in self.marks:
                if not pc.all(batch.column(mark)).as_py():
                    raise UnusualMessagesError("A batch has messages that are read in another way.")
            columns = [batch.column(name) for name in self.names.values()]
            waiting.append(pa.table(columns, names=list(self.names)))
            if sum(t.num_rows for t in waiting) >= ROWS_REDUCED or sum(t.nbytes for t in waiting) >= BYTES_REDUCED:
                yield from self._reduced(waiting)
                waiting = []
        if waiting:
            yield from self._reduced(waiting)

    def _reduced(self, rows: list[pa.Table]) -> list[pa.RecordBatch]:
        groups = self.early.reduced(pa.concat_tables(rows).combine_chunks())
        found: list[pa.RecordBatch] = groups.cast(self.output).to_batches(max_chunksize=GROUPS_AT_ONCE)
        return found
