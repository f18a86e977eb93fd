"""In a worker: rows of a source get the watermark of their partition, or the time of the batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.accumulators import Accumulator

from headwater.changelog.columns import Ints
from headwater.changelog.operator import OWN_WATERMARK
from headwater.connectors.runtime import PLACE
from headwater.connectors.workers import Batches
from headwater.execution.worker import Reports, TaskBatch

__all__ = ["ROW_WATERMARK", "ProcessingTimeTask", "WatermarkTask"]

ROW_WATERMARK = "__row_watermark"
"""What the table's WATERMARK says for a row, as a time."""
_NONE = -(1 << 62)


@dataclass(frozen=True)
class WatermarkTask:
    """Over the rows of a scan, with ROW_WATERMARK and PLACE as their last columns: in the place of these,
    OWN_WATERMARK. `prefix` and the value of PLACE are the name of a partition in positions."""

    source: int
    prefix: str
    reports: Accumulator[Reports]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        batch = TaskBatch.current()
        known = batch.watermarks[self.source] if batch.watermarks else {}
        greatest: dict[object, int] = {}
        for rows in batches:
            yield self._with_own(rows, greatest, known)
        for place, watermark in greatest.items():
            # A partition whose rows had no time reports nothing: its watermark stays what it was.
            if watermark != _NONE:
                self.reports.add({(batch.attempt, "watermark", str(self.source), f"{self.prefix}{place}"): watermark})

    def _with_own(self, rows: pa.RecordBatch, greatest: dict[object, int], known: Mapping[str, int]) -> pa.RecordBatch:
        """`greatest` has the watermark of each partition so far, `known` that of the last commit."""
        micros = rows.column(ROW_WATERMARK).cast(pa.int64())
        values: Ints = np.where(micros.is_valid(), micros.fill_null(0).to_numpy() // 1000, _NONE)
        own: Ints = np.empty(len(values), dtype=np.int64)
        # A task may read several partitions, each with a watermark of its own.
        places = rows.column(PLACE).dictionary_encode()
        codes = places.indices.to_numpy()
        for code, place in enumerate(places.dictionary.to_pylist()):
            here = np.flatnonzero(codes == code) if len(places.dictionary) > 1 else slice(None)
            before = greatest.get(place, known.get(f"{self.prefix}{place}", _NONE))
            # The watermark before each row: the greatest of all earlier ones of its partition, this batch or any other.
            # So it does not depend on where batches are cut.
            running = np.maximum.accumulate(np.concatenate([[before], values[here]]))
            own[here] = running[:-1]
            greatest[place] = int(running[-1])
        mask = own == _NONE
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
