"""In a worker: rows of a source get the watermark of their partition, or the time of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import Accumulator

from headwater.changelog.columns import Ints
from headwater.changelog.conditions import Condition
from headwater.changelog.local_windows import NONE, PartitionWatermarks
from headwater.changelog.operator import OWN_WATERMARK
from headwater.connectors.runtime import PLACE
from headwater.connectors.workers import Batches
from headwater.execution.packed_rows import PackedRows
from headwater.execution.worker import Reports, TaskBatch

__all__ = [
    "ROW_WATERMARK",
    "PackedWatermarks",
    "ProcessingTimeTask",
    "WatermarkTask",
    "report_watermarks",
    "rows_by_place",
]

ROW_WATERMARK = "__hw_row_watermark"
"""What the table's WATERMARK says for a row, as a time."""


@dataclass(frozen=True)
class PackedWatermarks:
    """Rows that come packed, and how ROW_WATERMARK is made of them: a column, and the microseconds that are added."""

    rows: PackedRows
    moved: tuple[str, int]

    def with_watermark(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        column, micros = self.moved
        for rows in self.rows.unpacked(batches):
            times = pc.add(rows.column(column).cast(pa.int64()), micros)
            place = rows.schema.get_field_index(PLACE)
            others = [rows.column(i) for i in range(rows.num_columns) if i != place]
            names = [name for name in rows.schema.names if name != PLACE]
            yield pa.RecordBatch.from_arrays([*others, times, rows.column(place)], names=[*names, ROW_WATERMARK, PLACE])


@dataclass(frozen=True)
class WatermarkTask:
    """Over the rows of a scan, with ROW_WATERMARK and PLACE as their last columns: in the place of these,
    OWN_WATERMARK. `prefix` and the value of PLACE are the name of a partition in positions. Rows that come packed have
    the columns of `output` in any order. All rows count for the watermark; those for which `where` is not TRUE are left
    out."""

    source: int
    prefix: str
    reports: Accumulator[Reports]
    output: pa.Schema
    packed: PackedWatermarks | None = None
    where: Condition | None = None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        batch = TaskBatch.current()
        watermarks = PartitionWatermarks(batch.watermarks_of(self.source, self.prefix))
        for rows in batches if self.packed is None else self.packed.with_watermark(batches):
            yield self._with_own(rows, watermarks)
        report_watermarks(self.reports, batch, self.source, self.prefix, watermarks)

    def _with_own(self, rows: pa.RecordBatch, watermarks: PartitionWatermarks) -> pa.RecordBatch:
        micros = rows.column(ROW_WATERMARK).cast(pa.int64())
        own: Ints = np.empty(rows.num_rows, dtype=np.int64)
        # A task may read several partitions, each with a watermark of its own.
        places = rows.column(PLACE).dictionary_encode()
        codes = places.indices.to_numpy()
        for code, place in enumerate(places.dictionary.to_pylist()):
            here = np.flatnonzero(codes == code)
            alone = len(here) == len(own)
            own[here] = watermarks.before_each(str(place), micros if alone else micros.take(pa.array(here)))
        if self.where is not None:
            tested = {name: rows.column(name) for name in self.where.columns}
            wanted = pc.fill_null(self.where.evaluate(tested, rows.num_rows), False)
            rows, own = rows.filter(wanted), own[wanted.to_numpy(zero_copy_only=False)]
        mask = own == NONE
        stamps = pa.array(np.where(mask, 0, own * 1000), pa.int64(), mask=mask).cast(pa.timestamp("us"))
        columns = [stamps if f.name == OWN_WATERMARK else rows.column(f.name).cast(f.type) for f in self.output]
        return pa.RecordBatch.from_arrays(columns, schema=self.output)


def rows_by_place(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each partition, in their order, by the value of PLACE."""
    places = rows.column(PLACE).combine_chunks().dictionary_encode()
    for code, place in enumerate(places.dictionary.to_pylist()):
        alone = len(places.dictionary) == 1
        yield str(place), rows if alone else rows.filter(pc.equal(places.indices, code)).combine_chunks()


def report_watermarks(
    reports: Accumulator[Reports], batch: TaskBatch, source: int, prefix: str, watermarks: PartitionWatermarks
) -> None:
    for place, watermark in watermarks.seen().items():
        reports.add({(batch.attempt, "watermark", str(source), f"{prefix}{place}"): watermark})


@dataclass(frozen=True)
class ProcessingTimeTask:
    """Sets a column to the time of the batch."""

    column: str

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        now = pa.scalar(TaskBatch.current().time * 1000, pa.int64()).cast(pa.timestamp("us", "UTC"))
        for rows in batches:
            place = rows.schema.get_field_index(self.column)
            yield rows.set_column(place, self.column, pa.repeat(now, rows.num_rows))
