"""In workers: rows of a source are added up by window and group, where they are read.

It takes two steps of one task, with Spark's expressions between them:

1. `ReadWindows`, in the process that reads: rows that column readers have read are added up. From the first message
   that they refuse, all further rows of that partition are left as they are, because that message may move the
   watermark, and what it says is not known yet. Behind the last row that was added up comes a row with the watermark of
   the partition so far.
2. `LeftWindows`, behind Spark's expressions: groups pass; rows that were left are added up in the same way, from that
   watermark on. It reports watermarks and late rows.

As a rule, nothing is left, and the second step sees nothing but groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import Accumulator

from headwater.changelog.columns import flat
from headwater.changelog.local_windows import END, START, LocalWindows, PartitionWatermarks, WindowedRows
from headwater.connectors.runtime import PLACE, ReadColumns
from headwater.connectors.workers import Batches
from headwater.execution.worker import OUTPUT_ROWS, ReadTask, Reports, TaskBatch, task_number

__all__ = ["GROUP", "LATE", "REACHED", "LeftWindows", "ReadWindows", "local_name"]

GROUP, REACHED, LATE = "__group", "__reached", "__late"
"""Columns beside those of rows: whether it is a group; the watermark of its partition, in milliseconds; how many rows
came too late. A row that was left has NULL in all of them."""


def local_name(column: str) -> str:
    """A column of groups, beside those of rows."""
    return f"__local_{column}"


@dataclass(frozen=True)
class ReadWindows:
    """`names` are the columns of the windows' rows, as they are called where they are read; `refused` and `place` as in
    `ReadColumns`. `output` has the columns of rows, then those of groups."""

    read: ReadTask
    windows: LocalWindows
    names: Mapping[str, str]
    refused: str
    place: tuple[str, ...]
    prefix: str
    output: pa.Schema

    @staticmethod
    def of(read: ReadTask, columns: ReadColumns, windows: LocalWindows, prefix: str, output: pa.Schema) -> ReadWindows:
        names = {column: columns.names[column] for column in windows.columns}
        return ReadWindows(read, windows, names, columns.refused, columns.place, prefix, output)

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        known = TaskBatch.current().watermarks_of(self.read.source, self.prefix)
        return _Reading(self, known).all(self.read(batches))


class _Reading:
    """What one task has read so far."""

    def __init__(self, task: ReadWindows, known: Mapping[str, int]) -> None:
        self._task = task
        self._rows = WindowedRows(task.windows, PartitionWatermarks(known))
        self._places: dict[str, list[Any]] = {}  # with the values of the columns that name them
        self._left: set[str] = set()

    def all(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for run in self._runs(batch):
                yield from self._run(run)
        for groups in self._rows.rest():
            yield from self._groups(groups)
        yield from (self._reached(place) for place in self._places if place not in self._left)
        yield self._alone(**{LATE: self._rows.late})

    def _runs(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Neighbouring rows of one partition."""
        changes = np.zeros(max(0, batch.num_rows - 1), dtype=np.bool_)
        for name in self._task.place:
            codes = batch.column(name).dictionary_encode().indices.to_numpy()
            changes |= np.diff(codes) != 0
        starts = [0, *(np.flatnonzero(changes) + 1).tolist(), batch.num_rows]
        yield from (batch.slice(start, end - start) for start, end in pairwise(starts) if end > start)

    def _run(self, run: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        values = [run.column(name)[0].as_py() for name in self._task.place]
        place = ":".join(map(str, values))
        self._places.setdefault(place, values)
        read = 0 if place in self._left else _first_valid(run.column(self._task.refused))
        if read:
            mine = run.slice(0, read)
            rows = pa.table({column: mine.column(name) for column, name in self._task.names.items()})
            for groups in self._rows.add(place, rows):
                yield from self._groups(groups)
        if read < run.num_rows:
            # Before the first row that is left: whoever adds those up goes on from this watermark.
            if place not in self._left:
                self._left.add(place)
                yield self._reached(place)
            yield self._filled(run.num_rows - read, dict(zip(run.schema.names, run.slice(read).columns, strict=True)))

    def _groups(self, groups: pa.Table) -> Iterator[pa.RecordBatch]:
        for batch in groups.to_batches(max_chunksize=OUTPUT_ROWS):
            columns = {local_name(name): batch.column(name) for name in batch.schema.names}
            yield self._filled(batch.num_rows, {**columns, GROUP: pa.repeat(True, batch.num_rows)})

    def _reached(self, place: str) -> pa.RecordBatch:
        watermark = self._rows.watermarks.of(place)
        named = dict(zip(self._task.place, self._places[place], strict=True))
        return self._alone(**named, **{REACHED: watermark})

    def _alone(self, **values: Any) -> pa.RecordBatch:
        """A row with nothing but these values."""
        return self._filled(1, {name: pa.array([value]) for name, value in values.items()})

    def _filled(self, rows: int, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """All columns of the output, with NULL where nothing is known."""
        schema = self._task.output
        arrays = [
            columns[field.name].cast(field.type) if field.name in columns else pa.nulls(rows, field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _first_valid(column: pa.Array) -> int:
    """The place of the first value that is not NULL; behind the end if there is none."""
    if column.null_count == len(column):
        return len(column)
    return int(np.argmax(column.is_valid().to_numpy(zero_copy_only=False)))


@dataclass(frozen=True)
class LeftWindows:
    """Over the rows of a scan with PLACE, GROUP, REACHED, LATE and the columns of groups: all groups. `output` has the
    columns of groups, then END."""

    source: int
    windows: LocalWindows
    prefix: str
    operator: str
    output: pa.Schema
    reports: Accumulator[Reports]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        batch = TaskBatch.current()
        watermarks = PartitionWatermarks(batch.watermarks_of(self.source, self.prefix))
        rows = WindowedRows(self.windows, watermarks)
        late = 0
        for received in batches:
            late += pc.sum(received.column(LATE)).as_py() or 0
            # Before the rows that were left of the same partitions, as they were written.
            _go_on(watermarks, received.filter(pc.is_valid(received.column(REACHED))))
            yield from self._groups(received.filter(pc.is_valid(received.column(GROUP))))
            for groups in self._added(rows, received):
                yield from self._complete(groups)
        for groups in rows.rest():
            yield from self._complete(groups)
        for place, watermark in watermarks.seen().items():
            self.reports.add({(batch.attempt, "watermark", str(self.source), f"{self.prefix}{place}"): watermark})
        # By task and not by state partition: it is not known yet which one would have received a late row.
        if late + rows.late:
            self.reports.add({(batch.attempt, "late", self.operator, f"read {task_number()}"): late + rows.late})

    def _groups(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if rows.num_rows:
            names = [name for name in self.output.names if name != END]
            yield from self._complete(pa.table({name: rows.column(local_name(name)) for name in names}))

    def _added(self, windowed: WindowedRows, received: pa.RecordBatch) -> Iterator[pa.Table]:
        """Rows that were left."""
        beside = pc.or_(pc.is_valid(received.column(GROUP)), pc.is_valid(received.column(REACHED)))
        rows = received.filter(pc.invert(pc.or_(beside, pc.is_valid(received.column(LATE)))))
        if not rows.num_rows:
            return
        places = rows.column(PLACE).dictionary_encode()
        for code, place in enumerate(places.dictionary.to_pylist()):
            mine = rows.filter(pc.equal(places.indices, code))
            yield from windowed.add(str(place), pa.table({name: mine.column(name) for name in self.windows.columns}))

    def _complete(self, groups: pa.Table) -> Iterator[pa.RecordBatch]:
        starts = flat(groups, START).cast(pa.int64()).to_numpy()
        ends = pa.array(self.windows.ends(starts), pa.timestamp("us"))
        whole = groups.append_column(END, ends).select(self.output.names).cast(self.output)
        yield from whole.to_batches(max_chunksize=OUTPUT_ROWS)


def _go_on(watermarks: PartitionWatermarks, rows: pa.RecordBatch) -> None:
    places, reached = rows.column(PLACE).to_pylist(), rows.column(REACHED).to_pylist()
    for place, watermark in zip(places, reached, strict=True):
        watermarks.reached(str(place), watermark)
