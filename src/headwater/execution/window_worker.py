"""In a worker: rows of a source are added up by window and group before the shuffle, without those that are late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.accumulators import Accumulator

from headwater.changelog.columns import flat
from headwater.changelog.local_windows import END, START, LocalWindows, PartitionWatermarks, WindowedRows
from headwater.connectors.workers import Batches
from headwater.execution.packed_rows import PackedRows
from headwater.execution.watermark_worker import report_watermarks, rows_by_place
from headwater.execution.worker import INPUT, OUTPUT_ROWS, Reports, TaskBatch, input_column, task_number

__all__ = ["WindowBranch", "WindowTask", "branch_column"]


@dataclass(frozen=True)
class WindowBranch:
    """One GROUP BY of windows. `output` has the columns of groups, then END. Rows that are late are reported as those
    of the `operator` behind the shuffle."""

    windows: LocalWindows
    operator: str
    output: pa.Schema

    def complete(self, groups: pa.Table) -> Iterator[pa.RecordBatch]:
        starts = flat(groups, START).cast(pa.int64()).to_numpy()
        ends = pa.array(self.windows.ends(starts), pa.timestamp("us"))
        whole = groups.append_column(END, ends).select(self.output.names).cast(self.output)
        yield from whole.to_batches(max_chunksize=OUTPUT_ROWS)


@dataclass(frozen=True)
class WindowTask:
    """Over the rows of a scan with PLACE, in the order of each partition, packed or not. Each branch has its columns
    under names of its own (`branch_column`). Of several branches groups are tagged: INPUT is the number of the branch,
    and each has a struct of its columns."""

    source: int
    prefix: str
    rows: PackedRows
    branches: tuple[WindowBranch, ...]
    reports: Accumulator[Reports]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        batch = TaskBatch.current()
        known = batch.watermarks_of(self.source, self.prefix)
        windowed = [WindowedRows(branch.windows, PartitionWatermarks(known)) for branch in self.branches]
        for rows in self.rows.unpacked(batches):
            for place, mine in rows_by_place(pa.Table.from_batches([rows])):
                for number, one in enumerate(windowed):
                    columns = {name: mine.column(branch_column(number, name)) for name in one.columns}
                    for groups in one.add(place, pa.table(columns)):
                        yield from self._complete(number, groups)
        for number, one in enumerate(windowed):
            for groups in one.rest():
                yield from self._complete(number, groups)
        # The watermark is that of the table, whichever branch has looked.
        report_watermarks(self.reports, batch, self.source, self.prefix, windowed[0].watermarks)
        # By task and not by state partition: it is not known yet which one would have received a late row.
        for branch, one in zip(self.branches, windowed, strict=True):
            if one.late:
                self.reports.add({(batch.attempt, "late", branch.operator, f"read {task_number()}"): one.late})

    def _complete(self, number: int, groups: pa.Table) -> Iterator[pa.RecordBatch]:
        for found in self.branches[number].complete(groups):
            yield found if len(self.branches) == 1 else self._tagged(number, found)

    def _tagged(self, number: int, groups: pa.RecordBatch) -> pa.RecordBatch:
        count = groups.num_rows
        structs = [
            pa.StructArray.from_arrays(groups.columns, fields=list(branch.output))
            if place == number
            else pa.nulls(count, pa.struct(list(branch.output)))
            for place, branch in enumerate(self.branches)
        ]
        names = [INPUT, *(input_column(place) for place in range(len(structs)))]
        return pa.RecordBatch.from_arrays([pa.repeat(pa.scalar(number, pa.int8()), count), *structs], names=names)


def branch_column(number: int, name: str) -> str:
    """What a column of a branch is called where those of all branches are together."""
    return f"{number}:{name}"
