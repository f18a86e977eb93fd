"""In a worker: rows of a source are added up by window and group before the shuffle, without those that are late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.accumulators import Accumulator

from headwater.changelog.columns import flat
from headwater.changelog.local_windows import END, START, LocalWindows, PartitionWatermarks, WindowedRows
from headwater.connectors.runtime import PLACE
from headwater.connectors.workers import Batches
from headwater.execution.packed_rows import PackedRows
from headwater.execution.watermark_worker import report_watermarks, rows_by_place
from headwater.execution.worker import OUTPUT_ROWS, Reports, TaskBatch, task_number

__all__ = ["WindowTask"]


@dataclass(frozen=True)
class WindowTask:
    """Over the rows of a scan with PLACE, in the order of each partition, packed or not. `output` has the columns of
    groups, then END. Rows that are late are reported as those of the `operator` behind the shuffle."""

    source: int
    prefix: str
    rows: PackedRows
    windows: LocalWindows
    operator: str
    output: pa.Schema
    reports: Accumulator[Reports]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        batch = TaskBatch.current()
        windowed = WindowedRows(self.windows, PartitionWatermarks(batch.watermarks_of(self.source, self.prefix)))
        for rows in self.rows.unpacked(batches):
            wanted = pa.table({name: rows.column(name) for name in (*self.windows.columns, PLACE)})
            for place, mine in rows_by_place(wanted):
                for groups in windowed.add(place, mine):
                    yield from self._complete(groups)
        for groups in windowed.rest():
            yield from self._complete(groups)
        report_watermarks(self.reports, batch, self.source, self.prefix, windowed.watermarks)
        # By task and not by state partition: it is not known yet which one would have received a late row.
        if windowed.late:
            self.reports.add({(batch.attempt, "late", self.operator, f"read {task_number()}"): windowed.late})

    def _complete(self, groups: pa.Table) -> Iterator[pa.RecordBatch]:
        starts = flat(groups, START).cast(pa.int64()).to_numpy()
        ends = pa.array(self.windows.ends(starts), pa.timestamp("us"))
        whole = groups.append_column(END, ends).select(self.output.names).cast(self.output)
        yield from whole.to_batches(max_chunksize=OUTPUT_ROWS)
