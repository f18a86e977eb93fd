"""Reading a topic: ranges of offsets → Spark rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame

from headwater.catalog.tables import Table
from headwater.changelog.early import EarlyGroups
from headwater.connectors.base import Emits
from headwater.connectors.io import IoContext, Position, limit_evenly, total
from headwater.connectors.kafka.admin import KafkaAdmin, Offsets, TopicPartition
from headwater.connectors.kafka.bad_records import BadRecords
from headwater.connectors.kafka.client import NOT_FOR_CLIENTS, commits_offsets, reader_options, spark_connector
from headwater.connectors.kafka.consume import Range, client_settings, split_evenly
from headwater.connectors.kafka.decode import decode, reads_in_workers
from headwater.connectors.kafka.discovery import Discovery
from headwater.connectors.kafka.early import read_groups
from headwater.connectors.kafka.ingest import Fetch, Messages
from headwater.connectors.kafka.layout import registered_sides
from headwater.connectors.kafka.losses import Losses
from headwater.connectors.kafka.metadata import MESSAGE, MESSAGE_WITH_HEADERS
from headwater.connectors.kafka.offsets import end_offsets, start_offsets
from headwater.connectors.kafka.ordinary import Ends, ordinary_rows
from headwater.connectors.kafka.refusals import UnknownTopicError
from headwater.errors import KafkaUnavailableError
from headwater.formats.base import RegisteredFormat

__all__ = ["KafkaSource"]

MANY_MESSAGES = 10_000  # from here on a batch is decoded faster by a trip to Python


class KafkaSource:
    """A `kafka` or `upsert-kafka` table being read. Positions are offsets under 'topic:partition'."""

    def __init__(self, table: Table, context: IoContext) -> None:
        self._table = table
        self._context = context
        self._options = table.options
        self._properties = table.options.family("properties.")
        self._admin = KafkaAdmin(context.spark, self._properties)
        self._discovery = Discovery(table, self._admin, context)
        self._losses = Losses(table, self._admin, context)
        self._bad = BadRecords(table)
        self._latest: Offsets = {}
        self._stops: Ends | None = None

    def start(self) -> Position:
        partitions = self._discovery.look_for_all()
        if self._bad.topics:
            self._admin.partitions(self._bad.topics)
        self._look_for_schemas()
        return _to_position(start_offsets(self._options, self._admin, partitions, self._context, self._table.name))

    def bound(self, start: Position) -> Position | None:
        begin = _to_offsets(start)
        ends = end_offsets(self._options, self._admin, list(begin), begin, self._read_committed)
        if ends is None:
            return None
        return _to_position({tp: max(end, begin[tp]) for tp, end in ends.items()})

    def available(self, position: Position, bound: Position | None, limit: int) -> tuple[Position, Position]:
        """A bounded table keeps to the partitions it began with; what it has read to its end is not looked at."""
        here = _to_offsets(position)
        bounds = _to_offsets(bound) if bound is not None else {}
        done = {tp: end for tp, end in bounds.items() if here.get(tp, 0) >= end}
        open_ends = bounds.keys() - done.keys()
        self._latest = self._ends(sorted(open_ends) if bound is not None else None)
        start = self._losses.settled(
            {tp: offset for tp, offset in here.items() if tp not in done}, self._latest, self._read_committed
        )
        if bound is not None:
            gone = {tp: bounds[tp] for tp in open_ends - self._latest.keys()}
            start = {**{tp: min(offset, bounds[tp]) for tp, offset in start.items()}, **done, **gone}
        end = {tp: max(offset, self._end_of(tp, offset, bounds)) for tp, offset in start.items()}
        return _to_position(start), limit_evenly(_to_position(start), _to_position(end), limit)

    def read(self, start: Position, end: Position, columns: Sequence[str]) -> DataFrame:
        self._stops = None
        self._look_for_schemas()
        frame = self._messages(start, end, self._needs_headers(columns))
        many = total(start, end) >= MANY_MESSAGES
        messages = Messages(frame, self._fetch(start, end) if many else None, many)
        return decode(messages, self._table, columns, self._bad.watching(columns) if self._bad.tolerated else None)

    def read_ordinary(self, start: Position, end: Position, columns: Sequence[str], whole: bool) -> DataFrame | None:
        """A partition that several tasks read cannot end early: only one of them would."""
        self._stops = None
        fetch = self._fetch(start, end) if total(start, end) >= MANY_MESSAGES else None
        if fetch is None or self._table.connector.reads_upserts or (self._parallelism and not whole):
            return None
        self._look_for_schemas()
        ends = None if whole else self._ends_early
        if ends is not None:
            ends.begin()
        watch = self._bad.watching(columns) if self._bad.tolerated else None
        rows = ordinary_rows(self._context.spark, fetch, self._table, columns, ends, watch)
        if rows is not None:
            self._stops = ends
        return rows

    def reached(self, end: Position) -> Position:
        return end if self._stops is None else _to_position(self._stops.applied(_to_offsets(end)))

    def read_groups(self, start: Position, end: Position, early: EarlyGroups) -> DataFrame | None:
        self._stops = None
        if total(start, end) < MANY_MESSAGES or self._bad.tolerated or not self._appends:
            return None
        messages = Messages(self._messages(start, end, False), self._fetch(start, end), many=True)
        return read_groups(messages, self._table, early)

    def keeps_tasks(self, start: Position, end: Position, columns: Sequence[str]) -> bool:
        """Ranges of offsets are dealt out here, not by Spark, if the workers read them."""
        many = total(start, end) >= MANY_MESSAGES
        return many and reads_in_workers(self._table, columns) and self._fetch(start, end) is not None

    def settle(self, start: Position, end: Position, columns: Sequence[str]) -> int:
        if not self._bad.tolerated:
            return 0
        found = self._bad.count()
        if found == 0:
            return 0
        messages = self._messages(start, end, True)
        if self._bad.topics:
            self._bad.keep(messages, columns)
        return self._bad.recount(messages, columns) if found is None else found

    def learn(self, start: Position, end: Position) -> None:
        messages = self._messages(start, end, False)
        for payload, format_, side in registered_sides(self._table):
            beginnings = messages.selectExpr(f"substring({payload}, 1, {RegisteredFormat.HEADER}) AS beginning")
            found = beginnings.where("beginning IS NOT NULL").distinct().limit(MANY_MESSAGES).collect()
            format_.learn(side.options, [bytes(row[0]) for row in found])

    def _look_for_schemas(self) -> None:
        for _, format_, side in registered_sides(self._table):
            format_.before_reading(side.options)

    def _messages(self, start: Position, end: Position, headers: bool) -> DataFrame:
        begin, stop = self._ranges(start, end)
        if not stop:
            return self._context.spark.createDataFrame([], MESSAGE_WITH_HEADERS if headers else MESSAGE)
        assigned: dict[str, list[int]] = {}
        for topic, partition in stop:
            assigned.setdefault(topic, []).append(partition)
        reader = (
            self._context.spark.read.format("kafka")
            .options(**reader_options(self._properties, self._context.job))
            .option("failOnDataLoss", "false" if self._losses.skipped else "true")
            .option("assign", json.dumps(assigned))
            .option("startingOffsets", _as_json({tp: begin.get(tp, 0) for tp in stop}))
            .option("endingOffsets", _as_json(stop))
            .option("includeHeaders", "true" if headers else "false")
        )
        if self._parallelism:
            reader = reader.option("minPartitions", str(self._parallelism))
        with spark_connector(self._context.spark, self._properties):
            return reader.load()

    def _fetch(self, start: Position, end: Position) -> Fetch | None:
        """For the workers, if their client understands the table's properties."""
        begin, stop = self._ranges(start, end)
        if self._losses.skipped or not stop or self._client is None:
            return None
        ranges = [Range(*tp, begin.get(tp, 0), offset) for tp, offset in sorted(stop.items())]
        return Fetch(split_evenly(ranges, self._parallelism) if self._parallelism else ranges, self._client)

    def _ranges(self, start: Position, end: Position) -> tuple[Offsets, Offsets]:
        """Where each partition of the batch that has something begins, and where it stops."""
        begin = _to_offsets(start)
        stop = {tp: offset for tp, offset in self._remaining(_to_offsets(end)).items() if offset > begin.get(tp, 0)}
        return begin, stop

    @cached_property
    def _ends_early(self) -> Ends:
        return Ends(self._context.spark)

    @cached_property
    def _client(self) -> dict[str, Any] | None:
        return client_settings({k: v for k, v in self._properties.items() if k not in NOT_FOR_CLIENTS})

    @property
    def _parallelism(self) -> int:
        """How many tasks read; 0 if it is one per partition. Changes stay in order."""
        return (self._options.integer("scan.parallelism") or 0) if self._appends else 0

    @property
    def _appends(self) -> bool:
        return self._table.connector.gives(self._table) is Emits.APPEND

    def lag(self, position: Position) -> int:
        latest = _to_position(self._latest)
        return max(0, total({k: position.get(k, 0) for k in latest}, latest))

    def done(self, position: Position) -> None:
        """Move the group's offsets, for lag tools; nothing here depends on them."""
        group = self._properties.get("group.id")
        if not group or not commits_offsets(self._properties):
            return
        try:
            self._admin.commit(group, _to_offsets(position))
        except KafkaUnavailableError as error:
            self._context.warn(f"Offsets of group '{group}' could not be committed. {error.fact} {error.detail}")

    def close(self) -> None:
        self._admin.close()

    @property
    def _read_committed(self) -> bool:
        return self._properties.get("isolation.level", "") == "read_committed"

    def _needs_headers(self, columns: Sequence[str]) -> bool:
        wanted = set(columns)
        return any(c.name in wanted and c.key in {"headers", "header-list"} for c in self._table.metadata_columns)

    def _ends(self, partitions: list[TopicPartition] | None) -> Offsets:
        """The ends of these partitions, or of all; without those whose topics have been deleted."""
        wanted = self._discovery.partitions() if partitions is None else partitions
        try:
            return self._admin.latest(wanted, self._read_committed) if wanted else {}
        except UnknownTopicError:
            there = self._discovery.look()
            left = [tp for tp in there if partitions is None or tp in partitions]
            return self._admin.latest(left, self._read_committed) if left else {}

    def _end_of(self, tp: TopicPartition, offset: int, bounds: Offsets) -> int:
        latest = self._latest.get(tp, offset)
        return min(latest, bounds[tp]) if bounds else latest

    def _remaining(self, stop: Offsets) -> Offsets:
        """A batch that is computed again may name topics that have been deleted since then."""
        if not self._losses.skipped:
            return stop
        there = self._admin.partition_counts({topic for topic, _ in stop})
        return {tp: offset for tp, offset in stop.items() if tp[1] < there.get(tp[0], 0)}


def _to_position(offsets: Offsets) -> Position:
    return {f"{topic}:{partition}": offset for (topic, partition), offset in offsets.items()}


def _to_offsets(position: Position) -> Offsets:
    pairs = ((key.rsplit(":", 1), offset) for key, offset in position.items())
    return {(topic, int(partition)): offset for (topic, partition), offset in pairs}


def _as_json(offsets: Offsets) -> str:
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        nested.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(nested)
