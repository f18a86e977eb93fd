"""Reading a topic: ranges of offsets → Spark rows."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from pyspark.sql import DataFrame

from headwater.catalog.tables import Table
from headwater.connectors.io import IoContext, Position, limit_evenly, total
from headwater.connectors.kafka.admin import KafkaAdmin, Offsets, TopicPartition
from headwater.connectors.kafka.client import reader_options
from headwater.connectors.kafka.decode import decode
from headwater.connectors.kafka.offsets import end_offsets, start_offsets
from headwater.errors import DataLossError, KafkaUnavailableError

__all__ = ["KafkaSource"]


class KafkaSource:
    """A `kafka` or `upsert-kafka` table being read. Positions are offsets under 'topic:partition'."""

    def __init__(self, table: Table, context: IoContext) -> None:
        self._table = table
        self._context = context
        self._options = table.options
        self._properties = table.options.family("properties.")
        self._topics = table.options.strings("topic")
        self._admin = KafkaAdmin(context.spark, self._properties)
        self._partitions: list[TopicPartition] = []
        self._described_at = 0.0
        self._checked = False
        self._latest: Offsets = {}

    def start(self) -> Position:
        partitions = self._discover(force=True)
        if self._table.connector.reads_upserts:
            # A changelog is only whole from its beginning.
            return _to_position(self._admin.earliest(partitions))
        return _to_position(start_offsets(self._options, self._admin, partitions, self._context, self._table.name))

    def bound(self, start: Position) -> Position | None:
        ends = end_offsets(
            self._options, self._admin, self._discover(force=True), _to_offsets(start), self._read_committed
        )
        if ends is None:
            return None
        begin = _to_offsets(start)
        return _to_position({tp: max(end, begin.get(tp, 0)) for tp, end in ends.items()})

    def available(self, position: Position, bound: Position | None, limit: int) -> Position:
        if bound is not None:
            partitions = list(_to_offsets(bound))
        else:
            partitions = self._discover()
        self._latest = self._admin.latest(partitions, self._read_committed)
        here = _to_offsets(position)
        end = {tp: offset for tp, offset in here.items() if tp not in self._latest}
        for tp, latest in self._latest.items():
            begin = here.get(tp, 0)
            stop = latest if bound is None else min(latest, _to_offsets(bound)[tp])
            end[tp] = max(stop, begin)
        self._check_nothing_lost(here)
        return limit_evenly(position, _to_position(end), limit)

    def read(self, start: Position, end: Position, columns: Sequence[str]) -> DataFrame:
        begin, stop = _to_offsets(start), _to_offsets(end)
        assigned: dict[str, list[int]] = {}
        for topic, partition in stop:
            assigned.setdefault(topic, []).append(partition)
        reader = (
            self._context.spark.read.format("kafka")
            .options(**reader_options(self._properties, self._context.job))
            .option("assign", json.dumps(assigned))
            .option("startingOffsets", _as_json({tp: begin.get(tp, 0) for tp in stop}))
            .option("endingOffsets", _as_json(stop))
            .option("includeHeaders", "true" if self._needs_headers(columns) else "false")
        )
        parallelism = self._options.integer("scan.parallelism")
        if parallelism and not self._table.connector.reads_upserts:
            reader = reader.option("minPartitions", str(parallelism))
        return decode(reader.load(), self._table, columns)

    def lag(self, position: Position) -> int:
        latest = _to_position(self._latest)
        return max(0, total({k: position.get(k, 0) for k in latest}, latest))

    def done(self, position: Position) -> None:
        """Move the group's offsets, for lag tools; nothing here depends on them."""
        group = self._properties.get("group.id")
        if not group or self._properties.get("enable.auto.commit", "true") == "false":
            return
        try:
            self._admin.commit(group, _to_offsets(position))
        except KafkaUnavailableError as error:
            self._context.warn(f"Offsets of group '{group}' could not be committed. {error.detail}")

    def close(self) -> None:
        self._admin.close()

    @property
    def _read_committed(self) -> bool:
        return self._properties.get("isolation.level", "") == "read_committed"

    def _needs_headers(self, columns: Sequence[str]) -> bool:
        wanted = set(columns)
        return any(c.name in wanted and c.key in {"headers", "header-list"} for c in self._table.metadata_columns)

    def _discover(self, force: bool = False) -> list[TopicPartition]:
        """All partitions, asked for again after the discovery interval; new ones are read from their beginning."""
        interval = self._options.duration("scan.topic-partition-discovery.interval").total_seconds()
        age = time.monotonic() - self._described_at
        if force or not self._partitions or (interval > 0 and age >= interval):
            self._partitions = self._admin.partitions(self._topics)
            self._described_at = time.monotonic()
        return self._partitions

    def _check_nothing_lost(self, here: Offsets) -> None:
        """What lies between the job's position and the log's start or end must still be there."""
        behind = [tp for tp in here if tp in self._latest and here[tp] > self._latest[tp]]
        if behind and not self._read_committed:
            raise self._lost(behind[0], here[behind[0]], f"the topic ends at {self._latest[behind[0]]}")
        if self._checked:
            return
        earliest = self._admin.earliest(list(self._latest))
        for tp, offset in earliest.items():
            if here.get(tp, offset) < offset < self._latest[tp]:
                raise self._lost(tp, here[tp], f"the topic now begins at {offset}")
        self._checked = True

    def _lost(self, tp: TopicPartition, offset: int, why: str) -> DataLossError:
        return DataLossError(
            f"Table '{self._table.name}' needs messages that topic '{tp[0]}' no longer has.",
            detail=f"Partition {tp[1]}: the job stands at offset {offset}, and {why}.",
            hint="Retention removed them, or the topic is a new one. Start with a new checkpoint to read what is left.",
        )


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
