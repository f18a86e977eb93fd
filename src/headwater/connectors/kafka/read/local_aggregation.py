"""Pre-aggregation of rows where they are read. A message that was refused stays a row of its own, for the JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.conditions import Condition
from headwater.changelog.preaggregate import GroupBuffer, PreAggregation

__all__ = ["LocalGroups"]

GROUPS_AT_ONCE = 4096


@dataclass(frozen=True)
class LocalGroups:
    """`rows` are the columns before, `output` those behind it; in both the last one is the message, NULL if the row was
    read. `names` are the columns of `rows` behind the columns that are grouped, aggregated and tested: rows count for
    which the condition `where` is TRUE."""

    groups: PreAggregation
    names: dict[str, str]
    rows: pa.Schema
    output: pa.Schema
    where: Condition | None = None

    def reduced(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        buffer = GroupBuffer(self.groups)
        for received in batches:
            batch = received
            messages = batch.column(batch.num_columns - 1)
            if messages.null_count < batch.num_rows:
                yield self._left_alone(messages.drop_null())
                batch = batch.filter(pc.is_null(messages))
            for groups in buffer.add(self._counted(batch)):
                yield from self._batches(groups)
        for groups in buffer.rest():
            yield from self._batches(groups)

    def _counted(self, batch: pa.RecordBatch) -> pa.Table:
        """The rows that count, with the columns that are needed. The message stays for a query that uses none at all: a
        table without columns has no rows."""
        columns = {column: batch.column(name) for column, name in self.names.items()}
        kept = [*self.groups.columns, batch.schema.names[-1]]
        rows = pa.table([*columns.values(), batch.column(batch.num_columns - 1)], names=[*columns, kept[-1]])
        if self.where is not None:
            rows = rows.filter(self.where.evaluate(columns, batch.num_rows))  # as WHERE: neither FALSE nor NULL
        return rows.select(kept)

    def _left_alone(self, messages: pa.Array) -> pa.RecordBatch:
        columns = [pa.nulls(len(messages), field.type) for field in self.output][:-1]
        return pa.RecordBatch.from_arrays([*columns, messages], schema=self.output)

    def _batches(self, reduced: pa.Table) -> Iterator[pa.RecordBatch]:
        message = self.output.field(self.output.names[-1])
        whole = reduced.append_column(message, pa.nulls(reduced.num_rows, message.type))
        yield from whole.rename_columns(self.output.names).cast(self.output).to_batches(max_chunksize=GROUPS_AT_ONCE)
