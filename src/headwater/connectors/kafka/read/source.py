"""The driver's side of reading topics: where a job is, what there is to read, who reads it, and what was bad."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructField, StructType

from headwater.catalog.connector import Emits
from headwater.catalog.tables import Table
from headwater.changelog.conditions import Condition
from headwater.connectors.kafka.clients.admin import Bounds, Isolation, Look, Offsets, TopicPartition, open_admin
from headwater.connectors.kafka.clients.answering import unanswered
from headwater.connectors.kafka.clients.broker_errors import UnknownTopicError
from headwater.connectors.kafka.clients.spark_options import NOT_FOR_CLIENTS, commits_offsets
from headwater.connectors.kafka.read.bad_records import BadRecords
from headwater.connectors.kafka.read.data_loss import DataLossPolicy
from headwater.connectors.kafka.read.discovery import Discovery
from headwater.connectors.kafka.read.expressions import only_topic
from headwater.connectors.kafka.read.fetch import Fetch, client_settings
from headwater.connectors.kafka.read.jvm import JvmReader
from headwater.connectors.kafka.read.late import LateMessages
from headwater.connectors.kafka.read.payloads import with_fields
from headwater.connectors.kafka.read.reader import KafkaReader, MessageDecoding
from headwater.connectors.kafka.read.scan import TableScan
from headwater.connectors.kafka.read.schemas import HeaderReader, TableSchemas
from headwater.connectors.kafka.read.splits import assign_splits, offsets_of, position_of
from headwater.connectors.kafka.read.startup import end_offsets, start_offsets
from headwater.connectors.positions import rows_between, share_limit
from headwater.connectors.runtime import LocalAggregation, Position, Reader, RowOrder, RuntimeContext, ScanPlan, Split
from headwater.errors import KafkaUnavailableError
from headwater.formats.base import RegisteredFormat

__all__ = ["KafkaSource"]

_scan_numbers = count(1)


class KafkaSource:
    """A `kafka` or `upsert-kafka` table being read. Positions are offsets under 'topic:partition', a split is a list of
    topic, partition, first offset and end."""

    def __init__(self, table: Table, context: RuntimeContext) -> None:
        self._table = table
        self._context = context
        self._options = table.options
        self._properties = table.options.family("properties.")
        self._admin = open_admin(context.spark, self._properties)
        self._discovery = Discovery(table, self._admin, context)
        self._data_loss = DataLossPolicy(table, self._admin, context)
        self._bad = BadRecords(table, context.leave_out)
        self._schemas = TableSchemas(table)
        self._latest: Offsets = {}

    @property
    def tasks(self) -> int:
        return self._options.integer("scan.parallelism") or self._context.tasks

    def start(self) -> Position:
        partitions = self._discovery.look_for_all()
        # Asked for before the first message: a dead-letter topic that does not exist would otherwise show with the
        # first bad message, maybe after days.
        if self._bad.topic:
            self._admin.partitions([self._bad.topic], "scan.dead-letter.topic")
        self._schemas.look()
        return position_of(start_offsets(self._options, self._admin, partitions, self._context, self._table.name))

    def bound(self, start: Position) -> Position | None:
        begin = offsets_of(start)
        ends = end_offsets(self._options, self._admin, list(begin), begin, self._isolation)
        if ends is None:
            return None
        # A bound before the start would make the lag negative; it means that nothing is to be read.
        return position_of({tp: max(end, begin[tp]) for tp, end in ends.items()})

    def available(self, position: Position, bound: Position | None, limit: int) -> tuple[Position, Position]:
        """A bounded table keeps to the partitions it began with; what it has read to its end is not looked at."""
        self._schemas.look()
        here = offsets_of(position)
        bounds = offsets_of(bound) if bound is not None else {}
        # A partition that is read to its bound may be deleted since: asking for it would fail a job that needs
        # nothing of it any more.
        done = {tp: end for tp, end in bounds.items() if here.get(tp, 0) >= end}
        open_ends = bounds.keys() - done.keys()
        look = self._look(sorted(open_ends) if bound is not None else None)
        self._latest = look.latest
        start = self._data_loss.checked(
            {tp: offset for tp, offset in here.items() if tp not in done}, look, self._isolation
        )
        if bound is not None:
            gone = {tp: bounds[tp] for tp in open_ends - self._latest.keys()}
            start = {**{tp: min(offset, bounds[tp]) for tp, offset in start.items()}, **done, **gone}
        # Never back: with read_committed the stable end may lie before an offset that an earlier run has reached.
        end = {tp: max(offset, self._end_of(tp, offset, bounds)) for tp, offset in start.items()}
        return position_of(start), share_limit(position_of(start), position_of(end), limit)

    def splits(self, start: Position, end: Position) -> list[list[Split]]:
        assigned = assign_splits(offsets_of(start), offsets_of(end), self.tasks, self._pieces)
        return [[list(split) for split in mine] for mine in assigned]

    def partitions(self, position: Position) -> Sequence[str]:
        return list(position)

    def scan(
        self,
        columns: Sequence[str],
        local: LocalAggregation | None = None,
        order: RowOrder = "any",
        fields: Mapping[str, Sequence[str]] | None = None,
        where: Condition | None = None,
    ) -> ScanPlan | None:
        metric = f"headwater-bad-{self._table.name}-{next(_scan_numbers)}" if self._bad.tolerated else ""
        # Of changes, one that a condition leaves out may be what retracts another.
        where = where if self._appends else None
        wanted = TableScan(with_fields(self._table, fields or {}), tuple(columns), self._bad.tolerated, metric)
        scan = replace(wanted, placed=order == "partition", where=where, ordered=order != "ignored")
        if local is None:
            plan = self._plan(scan.rows, scan.decoding(), scan.expressions.rows, metric)
            topic = only_topic(self._table)
            return replace(plan, place_prefix=f"{topic}:" if topic is not None else "", read=scan.read_columns())
        groups = scan.local(local)
        if groups is None:
            return None
        return self._plan(groups.schema, groups.decoding(), groups.decode, metric)

    def _plan(
        self, schema: StructType, decoding: MessageDecoding, decode: Callable[[DataFrame], DataFrame], metric: str
    ) -> ScanPlan:
        if self._fetch is None:
            return ScanPlan(schema, decode, messages=lambda s: self._jvm.rows(s, decoding, schema), bad_metric=metric)
        return ScanPlan(schema, decode, reader=KafkaReader(self._fetch, decoding), bad_metric=metric)

    @property
    def revision(self) -> int:
        return self._schemas.revision

    def learn(self, splits: Sequence[Sequence[Split]]) -> None:
        payloads = self._schemas.payloads
        if not payloads:
            return
        if self._fetch is None:
            beginning = f"substring({{0}}, 1, {RegisteredFormat.HEADER}) AS {{0}}"
            headers = self._jvm.messages(splits).selectExpr(*map(beginning.format, payloads))
        else:
            schema = StructType([StructField(payload, BinaryType()) for payload in payloads])
            headers = self._read_now(schema, HeaderReader(self._fetch, tuple(payloads)), splits)
        self._schemas.learn(headers)

    def divert_bad_records(self, splits: Sequence[Sequence[Split]], columns: Sequence[str], bad: int) -> int:
        if bad == 0 or not self._bad.tolerated:
            return 0
        # The messages are read a second time: the batch itself carries only a count, so that the usual case pays
        # nothing for messages that are never bad.
        scan = TableScan(self._table, tuple(columns), tolerant=True)
        schema, decoding = scan.doubtful()
        if self._fetch is None:
            return self._bad.divert_bad_records(self._jvm.rows(splits, decoding, schema), scan, self._jvm)
        return self._bad.divert_bad_records(
            self._read_now(schema, KafkaReader(self._fetch, decoding), splits), scan, None
        )

    def divert_late_rows(self, messages: Mapping[str, Sequence[int]]) -> None:
        late = LateMessages({place: frozenset(offsets) for place, offsets in messages.items()})
        if self._fetch is None:
            found = self._jvm.messages([late.splits]).selectExpr(*late.schema.names).mapInArrow(late, late.schema)
            self._bad.keep_late(found, self._jvm)
        else:
            self._bad.keep_late(self._read_now(late.schema, late.reader(self._fetch), [late.splits]), None)

    def _read_now(self, schema: StructType, reader: Reader, splits: Sequence[Sequence[Split]]) -> DataFrame:
        """What a reader gives for these splits, in a Spark job of its own."""
        recorded = [list(mine) for mine in splits]

        def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for task in batch.column(0).to_pylist():
                    yield from reader(recorded[task])

        return self._context.spark.range(0, len(recorded), 1, len(recorded)).mapInArrow(read, schema)

    def facts(self) -> dict[str, Any]:
        """As of the last look, when they were found to be what they must be."""
        topics = {**self._data_loss.topic_ids, **self._data_loss.seen_ids}
        missing = position_of(self._data_loss.missing)
        return {"cluster": self._cluster, "topics": topics, **({"missing": missing} if missing else {})}

    def check_facts(self, facts: Mapping[str, Any]) -> None:
        self._data_loss.check_cluster(str(facts.get("cluster", "")), self._cluster)
        self._data_loss.check_topics(facts.get("topics", {}), offsets_of(facts.get("missing", {})))

    @cached_property
    def _cluster(self) -> str:
        return self._admin.cluster_id()

    def lag(self, position: Position) -> int:
        latest = position_of(self._latest)
        return max(0, rows_between({k: position.get(k, 0) for k in latest}, latest))

    def done(self, position: Position) -> None:
        """Move the group's offsets, for lag tools; nothing here depends on them."""
        self._data_loss.committed(offsets_of(position))
        group = self._properties.get("group.id")
        if not group or not commits_offsets(self._properties):
            return
        try:
            # Best effort: positions are in the checkpoint, and a group that may not be written must not stop the job.
            self._admin.commit(group, offsets_of(position))
        except KafkaUnavailableError as error:
            self._context.warn(f"Offsets of group '{group}' could not be committed. {error.fact} {error.detail}")

    def unanswered(self) -> str:
        return unanswered(self._table.name, self._properties)

    def close(self) -> None:
        self._admin.close()

    @cached_property
    def _fetch(self) -> Fetch | None:
        """None: only the JVM's client understands the table's properties."""
        client = client_settings({k: v for k, v in self._properties.items() if k not in NOT_FOR_CLIENTS})
        return None if client is None else Fetch(client, self._data_loss.policy, self._context.chunk_rows)

    @cached_property
    def _jvm(self) -> JvmReader:
        context = self._context
        return JvmReader(context.spark, context.job, self._properties, self._data_loss.continues, self._pieces)

    @property
    def _pieces(self) -> int:
        """In how many splits a batch is cut, if it is. Where the order in a partition matters, one task reads it: of
        changes, and where rows are late if they come behind their watermark."""
        # Cut into more splits than partitions, the parts of a partition are read by several tasks and meet in any
        # order.
        free = self._appends and self._table.watermark is None
        return (self._options.integer("scan.parallelism") or 0) if free else 0

    @property
    def _appends(self) -> bool:
        return self._table.connector.gives(self._table) is Emits.APPEND

    @property
    def _isolation(self) -> Isolation:
        level = self._properties.get("isolation.level", "")
        return "read_committed" if level == "read_committed" else "read_uncommitted"

    def _look(self, partitions: list[TopicPartition] | None) -> Look:
        """The ends of these partitions, or of all; without those whose topics have been deleted."""
        wanted = self._discovery.partitions() if partitions is None else partitions
        try:
            return self._look_at(wanted)
        except UnknownTopicError:
            # A topic was deleted between two looks: who is still there is asked from scratch, and the policy for data
            # loss judges what is missing.
            there = self._discovery.look()
            return self._look_at([tp for tp in there if partitions is None or tp in partitions])

    def _look_at(self, partitions: list[TopicPartition]) -> Look:
        if not partitions:
            return Look({})
        bounds: Bounds = "both" if self._data_loss.asks_earliest else "latest"
        return self._admin.look(partitions, self._isolation, bounds)

    def _end_of(self, tp: TopicPartition, offset: int, bounds: Offsets) -> int:
        latest = self._latest.get(tp, offset)
        return min(latest, bounds[tp]) if bounds else latest
