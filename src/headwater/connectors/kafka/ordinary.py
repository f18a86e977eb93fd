"""Ordinary messages → rows, by nothing but the formats' readers of columns, in the workers that fetch them.

Nearly all large batches are ordinary from beginning to end, and a plan that is ready for nothing else is made and run
more quickly. A chunk with an unusual message in it ends that: either the batch ends before it, or it fails, and is read
in the way that knows every message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headwater.catalog.tables import Table
from headwater.connectors.kafka.admin import Offsets
from headwater.connectors.kafka.decode import Watch, behind_metadata, decoded, needed, selected, with_topic
from headwater.connectors.kafka.ingest import Batches, Fetch, Read, complete, fetched
from headwater.connectors.kafka.metadata import MESSAGE_WITH_HEADERS
from headwater.connectors.kafka.sides import Side, present_payloads, used_sides
from headwater.errors import UnusualMessagesError
from headwater.formats.base import Decoder
from headwater.runtime.keyed import in_worker

__all__ = ["Ends", "ordinary_rows"]

PLACE = ("topic", "partition", "offset")


def ordinary_rows(
    spark: SparkSession, fetch: Fetch, table: Table, columns: Sequence[str], ends: Ends | None, watch: Watch | None
) -> DataFrame | None:
    """As `decode`; None if it takes more than readers to read the messages. Before an unusual message rows end, as
    `ends` then knows; without that there is an UnusualMessagesError."""
    sides = used_sides(table, columns)
    reads = [read for side in sides if (read := _read(side)) is not None]
    if len(reads) < len(sides):
        return None
    present, message = present_payloads(table), _message()
    kept = _kept(message.names, table, columns, sides)
    fetched_too = {*kept, *present, *(read.payload for read in reads), *PLACE}
    output = StructType([f for f in message if f.name in kept])
    for read in reads:
        for name, kind in zip(read.names, read.types, strict=True):
            output.add(name, kind)
    places, fetching = fetched(fetch, spark, StructType([f for f in message if f.name in fetched_too]))
    told = (ends.seen, ends.reading) if ends is not None else None
    step = _Ordinary(tuple(reads), present, to_arrow_schema(output), told)
    rows = places.mapInArrow(in_worker(lambda batches: step(fetching(batches))), output)
    if any(map(_holds_changes, sides)):
        rows = with_topic(rows, table)
    for side, read in zip(sides, reads, strict=True):
        over = side.decoder.over(read.names) if side.decoder.over else Decoder("", read.reader.columns(read.names))
        rows = decoded(rows, side, watch, over)
    return rows.selectExpr(*selected(table, columns))


def _kept(available: Sequence[str], table: Table, columns: Sequence[str], sides: Sequence[Side]) -> set[str]:
    """Which columns of the messages rows need, besides what is read of them. Where changes are, a message that was read
    may still make no sense, and has to be told of."""
    changes = {side.payload for side in sides if _holds_changes(side)}
    return set(needed(available, table, columns, changes)) if changes else behind_metadata(table, columns)


@cache
def _message() -> StructType:
    return cast("StructType", StructType.fromDDL(MESSAGE_WITH_HEADERS))


def _read(side: Side) -> Read | None:
    """How a side is read, if a reader can do all of it."""
    reader = side.decoder.reader
    if reader is None:
        return None
    read = Read.by(side.payload, reader)
    return read if _holds_changes(side) or reader.error(read.names) is None else None


def _holds_changes(side: Side) -> bool:
    return side.decoder.changes is not None


Seen = dict[tuple[int, str, int], int]
"""Number of a reading, topic, partition → the offset where its rows ended."""


class Ends:
    """Where rows of partitions ended before an unusual message. There is one of these for a source: Spark keeps what
    tasks add to for good. Each reading has a number: a task that was given up may tell of an earlier one."""

    def __init__(self, spark: SparkSession) -> None:
        self.seen: Accumulator[Seen] = spark.sparkContext.accumulator({}, _Least())
        self.reading = 0

    def begin(self) -> None:
        self.reading += 1
        self.seen.value = {}

    def applied(self, offsets: Offsets) -> Offsets:
        seen = self.seen.value
        return {tp: min(offset, seen.get((self.reading, *tp), offset)) for tp, offset in offsets.items()}


class _Least(AccumulatorParam[Seen]):
    """A task that Spark repeats may tell it twice."""

    def zero(self, value: Seen) -> Seen:
        del value
        return {}

    def addInPlace(self, value1: Seen, value2: Seen) -> Seen:  # noqa: N802 - Spark's name
        for place, offset in value2.items():
            value1[place] = min(offset, value1.get(place, offset))
        return value1


@dataclass(frozen=True)
class _Ordinary:
    """In a worker. `told` is where an early end is noted, and under which number."""

    reads: tuple[Read, ...]
    present: tuple[str, ...]
    output: pa.Schema
    told: tuple[Accumulator[Seen], int] | None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for received in batches:
            batch = complete(received, self.present)
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for read in self.reads:
                fields = read.fields(columns[read.payload])
                if fields is None:
                    return self._end(received)
                columns |= dict(zip(read.names, fields, strict=True))
            yield pa.RecordBatch.from_arrays([columns[name] for name in self.output.names], schema=self.output)

    def _end(self, batch: pa.RecordBatch) -> None:
        if self.told is None:
            raise UnusualMessagesError("A batch has messages that are read in another way.")
        topic, partition, offset = (batch.column(name)[0].as_py() for name in PLACE)
        ends, reading = self.told
        ends.add({(reading, topic, partition): offset})
