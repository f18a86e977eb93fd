"""`print`: shows every change, one line each, as Flink does: `+I[…]`, `-U[…]`, `+U[…]` or `-D[…]`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.catalog.connector import CONNECTOR, Accepts, Connector
from headwater.connectors.printed_values import printer
from headwater.connectors.runtime import Renderer, RuntimeContext, Sink
from headwater.dates import numbered_values
from headwater.options.base import Option
from headwater.options.problems import Problem
from headwater.options.types import BOOL, INT, STRING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from headwater.catalog.tables import Table
    from headwater.sql.types import SqlType

__all__ = ["PRINT", "PrintSink"]

_one_at_a_time = threading.Lock()


class PrintConnector(Connector):
    identifier = "print"
    summary = "Prints every change to standard output."
    options = (
        CONNECTOR,
        Option("print-identifier", STRING, "Text in front of every line: '<text>> +I[…]'."),
        Option("standard-error", BOOL, "Whether lines go to standard error instead of standard output.", False),
        Option("sink.parallelism", INT, "Number of tasks that write. Lines then start with the number of their task."),
    )
    accepts = Accepts.ALL

    def validate(self, table: Table) -> list[Problem]:
        given, key = table.options.integer("sink.parallelism"), "sink.parallelism"
        return [Problem(f"'{key}' must be greater than zero.", key=key)] if given is not None and given < 1 else []

    def sink(self, table: Table, context: RuntimeContext) -> Sink:
        return PrintSink(table, context)


PRINT = PrintConnector()


class PrintSink(Sink):
    """Lines are made in the workers; the driver prints those of one task after the other."""

    shows = True

    def __init__(self, table: Table, context: RuntimeContext) -> None:
        self._table = table
        self._identifier = table.options.string("print-identifier")
        self._error = table.options.flag("standard-error")
        self._writers = table.options.integer("sink.parallelism") or 0

    def encode(self, rows: DataFrame) -> DataFrame:
        from headwater.connectors.sink_rows import checked_not_null
        from headwater.sql.spark_text import quote_name

        rows = checked_not_null(rows, self._table)
        if not self._writers:
            return rows
        key = [quote_name(name) for name in self._table.primary_key]
        return rows.repartition(self._writers, *key) if key else rows.repartition(self._writers)

    def renderer(self) -> Renderer:
        types = {column.name: column.type for column in self._table.written_columns}
        return _Lines(types, self._identifier, self._writers > 1)

    def show(self, chunk: bytes) -> int:
        # Jobs print from threads of their own: without it, lines of two of them would be mixed.
        with _one_at_a_time:
            stream = sys.stderr if self._error else sys.stdout
            stream.write(chunk.decode())
            stream.flush()
        return chunk.count(b"\n")


@dataclass(frozen=True)
class _Lines:
    """In a worker: rows as lines. Several tasks put their number in front, counted from 1, as Flink's do."""

    types: Mapping[str, SqlType]
    identifier: str
    numbered: bool

    def __call__(self, task: int, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
        from headwater.changelog.kinds import INSERT, KIND, SHORT_NAMES

        parts = [self.identifier, str(task + 1)] if self.numbered else [self.identifier]
        prefix = ":".join(part for part in parts if part)
        prefix = f"{prefix}> " if prefix else ""
        printers = {name: printer(kind) for name, kind in self.types.items()}
        for batch in batches:
            columns = {name: numbered_values(batch.column(name)) for name in batch.schema.names}
            kinds = columns.pop(KIND, None) or [INSERT] * batch.num_rows
            columns_shown = [map(printers[name], values) for name, values in columns.items()]
            lines = (
                f"{prefix}{SHORT_NAMES[kind]}[{', '.join(row)}]\n"
                for kind, row in zip(kinds, zip(*columns_shown, strict=True), strict=True)
            )
            yield "".join(lines).encode()
