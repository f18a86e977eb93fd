"""In a worker: rows of a source get the watermark of their partition, or the time of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.accumulators import Accumulator

from headwater.changelog.columns import Ints
from headwater.changelog.local_windows import NONE, PartitionWatermarks
from headwater.changelog.operator import OWN_WATERMARK
from headwater.connectors.runtime import PLACE
from headwater.connectors.workers import Batches
from headwater.execution.worker import Reports, TaskBatch

__all__ = ["ROW_WATERMARK", "ProcessingTimeTask", "WatermarkTask"]

ROW_WATERMARK = "__row_watermark"
"""What the table's WATERMARK says for a row, as a time."""


@dataclass(frozen=True)
class WatermarkTask:
    """Over the rows of a scan, with ROW_WATERMARK and PLACE as their last columns: in the place of these,
    OWN_WATERMARK. `prefix` and the value of PLACE are the name of a partition in positions."""

    source: int
    prefix: str
    reports: Accumulator[Reports]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        batch = TaskBatch.current()
        watermarks = PartitionWatermarks(batch.watermarks_of(self.source, self.prefix))
        for rows in batches:
            yield _with_own(rows, watermarks)
        for place, watermark in watermarks.seen().items():
            self.reports.add({(batch.attempt, "watermark", str(self.source), f"{self.prefix}{place}"): watermark})


def _with_own(rows: pa.RecordBatch, watermarks: PartitionWatermarks) -> pa.RecordBatch:
    micros = rows.column(ROW_WATERMARK).cast(pa.int64())
    own: Ints = np.empty(rows.num_rows, dtype=np.int64)
    # A task may read several partitions, each with a watermark of its own.
    places = rows.column(PLACE).dictionary_encode()
    codes = places.indices.to_numpy()
    for code, place in enumerate(places.dictionary.to_pylist()):
        here = np.flatnonzero(codes == code)
        alone = len(here) == len(own)
        own[here] = watermarks.before_each(str(place), micros if alone else micros.take(pa.array(here)))
    mask = own == NONE
    stamps = pa.array(np.where(mask, 0, own * 1000), pa.int64(), mask=mask).cast(pa.timestamp("us"))
    kept = rows.schema.names[:-2]
    columns = [*(rows.column(name) for name in kept), stamps]
    return pa.RecordBatch.from_arrays(columns, names=[*kept, OWN_WATERMARK])


@dataclass(frozen=True)
class ProcessingTimeTask:
    """Sets a column to the time of the batch."""

    column: str

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        now = pa.scalar(TaskBatch.current().time * 1000, pa.int64()).cast(pa.timestamp("us", "UTC"))
        for rows in batches:
            place = rows.schema.get_field_index(self.column)
            yield rows.set_column(place, self.column, pa.repeat(now, rows.num_rows))
