"""Rows on their way from a reader to the next step of the same task in Python, many in one value.

A row that leaves a Python worker becomes a row of the JVM, and an entry of Arrow columns again for the next worker,
which costs more than reading it. Where nothing is left to do in the JVM, rows travel packed: thousands of them are one
binary value, in Arrow's own form. Messages that column readers refuse travel between them, each in its place, and are
decoded by Spark's expressions. So whoever unpacks them has all rows in the order in which they were read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.conditions import ColumnRef, Condition
from headwater.connectors.runtime import PLACE, ReadColumns
from headwater.connectors.workers import Batches
from headwater.execution.spark_settings import ARROW_ROWS
from headwater.execution.worker import ReadTask

__all__ = ["PACKED", "PackedRead", "PackedRows"]

PACKED = "__hw_packed"
"""A column of rows that are not packed, in which they have NULL; beside it, packed ones have NULL in all others."""

# Half a region of the heap of Spark's JVM: larger objects are a burden to its garbage collection.
_VALUE_BYTES = 400 << 10
# Spark collects ARROW_ROWS rows before it passes them on, whatever their size.
_BYTES_AT_ONCE = 64 << 20


@dataclass(frozen=True)
class PackedRows:
    """`names` are the columns, as they are called behind Spark's expressions and where they are read; `place` are those
    that are joined to PLACE. `computed` is what becomes of the columns when they are unpacked, if they do not stay as
    they are."""

    names: tuple[tuple[str, str], ...]
    place: tuple[str, ...]
    schema: pa.Schema
    computed: tuple[tuple[str, Condition], ...] | None = None

    @staticmethod
    def of(columns: ReadColumns, rows: pa.Schema) -> PackedRows:
        """`rows` are those of the reader."""
        names = tuple((name, read) for name, read in columns.names.items() if read in rows.names)
        fields = [rows.field(read).with_name(name) for name, read in names]
        places = [rows.field(name).with_name(_place(name)) for name in columns.place]
        return PackedRows(names, columns.place, pa.schema([*fields, *places]))

    def packed(self, rows: pa.RecordBatch) -> pa.Buffer:
        columns = [*(rows.column(read) for _, read in self.names), *(rows.column(name) for name in self.place)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema).serialize()

    def computing(self, values: Mapping[str, Condition]) -> PackedRows:
        return replace(self, computed=tuple(values.items()))

    @property
    def unpacked_schema(self) -> pa.Schema:
        """Of the columns that rows have when they are unpacked, beside PLACE."""
        names = [name for name, _ in self.names]
        nothing = {name: pa.array([], self.schema.field(name).type) for name in names}
        values = self.computed if self.computed is not None else [(name, ColumnRef(name)) for name in names]
        return pa.schema([(name, value.evaluate(nothing, 0).type) for name, value in values])

    def unpacked(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """All rows, in order, with the columns `computed`, or those of `names`, and PLACE."""
        return map(self._computed, self._in_order(batches))

    def _in_order(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            packed = batch.column(PACKED)
            alone = packed.is_null().to_numpy(zero_copy_only=False)
            for run in _runs(alone):
                if alone[run.start]:
                    yield self._alone(batch.slice(run.start, len(run)))
                else:
                    yield from (self._rows(packed[place].as_buffer()) for place in run)

    def _computed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self.computed is None:
            return rows
        columns = {name: rows.column(name) for name in rows.schema.names}
        values = [value.evaluate(columns, rows.num_rows) for _, value in self.computed]
        return pa.RecordBatch.from_arrays(
            [*values, columns[PLACE]], names=[*(name for name, _ in self.computed), PLACE]
        )

    def _alone(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        # Spark gives instants in the session's time zone, and says which fields are never NULL. Both kinds of rows are
        # computed and added up together, so that they must have the same types.
        names = [name for name, _ in self.names]
        columns = [rows.column(name).cast(self.schema.field(name).type) for name in names]
        return pa.RecordBatch.from_arrays([*columns, rows.column(PLACE)], names=[*names, PLACE])

    def _rows(self, value: pa.Buffer) -> pa.RecordBatch:
        rows = pa.ipc.read_record_batch(value, self.schema)
        places = [rows.column(_place(name)) for name in self.place]
        if len(places) > 1:
            places = [pc.binary_join_element_wise(*(p.cast(pa.string()) for p in places), ":")]
        names = [name for name, _ in self.names]
        return pa.RecordBatch.from_arrays([*(rows.column(name) for name in names), *places], names=[*names, PLACE])


@dataclass(frozen=True)
class PackedRead:
    """A reader whose rows leave packed. `refused` is a column that is NULL for rows that were read; `output` has the
    columns of rows, then PACKED."""

    read: ReadTask
    rows: PackedRows
    refused: str
    output: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        alone, size = 0, 0  # rows that were passed on one by one, and bytes of packed ones, since Spark has passed on
        for batch in self.read(batches):
            refused = batch.column(self.refused).is_valid().to_numpy(zero_copy_only=False)
            for run in _runs(refused):
                rows = batch.slice(run.start, len(run))
                if refused[run.start] or size > _BYTES_AT_ONCE:
                    yield self._one_by_one(rows)
                    alone += rows.num_rows
                else:
                    values = list(self._values(rows))
                    size += sum(value.size for value in values)
                    yield self._packed(values)
                if alone >= ARROW_ROWS:
                    alone, size = 0, 0

    def _values(self, rows: pa.RecordBatch) -> Iterator[pa.Buffer]:
        pieces = max(1, -(-rows.nbytes // _VALUE_BYTES))
        step = max(1, -(-rows.num_rows // pieces))
        return (self.rows.packed(rows.slice(start, step)) for start in range(0, rows.num_rows, step))

    def _packed(self, values: list[pa.Buffer]) -> pa.RecordBatch:
        column = pa.array([value.to_pybytes() for value in values], pa.binary())
        others = [pa.nulls(len(values), field.type) for field in self.output][:-1]
        return pa.RecordBatch.from_arrays([*others, column], schema=self.output)

    def _one_by_one(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([*rows.columns, pa.nulls(rows.num_rows, pa.binary())], schema=self.output)


def _place(name: str) -> str:
    return f"__hw_place_{name}"


def _runs(values: np.ndarray) -> Iterator[range]:
    """Places of neighbours that are equal."""
    ends = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return (range(start, end) for start, end in pairwise(ends) if end > start)
