"""`print`: shows every change, one line each, as Flink does: `+I[…]`, `-U[…]`, `+U[…]` or `-D[…]`."""

from __future__ import annotations

import base64
import datetime as dt
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.catalog.connector import CONNECTOR, Accepts, Connector
from headwater.connectors.runtime import Renderer, RuntimeContext, Sink
from headwater.options.base import Option
from headwater.options.types import BOOL, INT, STRING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from headwater.catalog.tables import Table

__all__ = ["PRINT", "PrintSink", "show_value"]

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
        return _Lines(self._identifier, self._writers > 1)

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

    identifier: str
    numbered: bool

    def __call__(self, task: int, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
        from headwater.changelog.kinds import INSERT, KIND, SHORT_NAMES

        parts = [self.identifier, str(task + 1)] if self.numbered else [self.identifier]
        prefix = ":".join(part for part in parts if part)
        prefix = f"{prefix}> " if prefix else ""
        for batch in batches:
            columns = {f.name: _plain(batch.column(f.name).to_pylist(), f.type) for f in batch.schema}
            kinds = columns.pop(KIND, None) or [INSERT] * batch.num_rows
            rows = zip(*columns.values(), strict=True)
            lines = (
                f"{prefix}{SHORT_NAMES[kind]}[{', '.join(map(show_value, row))}]\n"
                for kind, row in zip(kinds, rows, strict=True)
            )
            yield "".join(lines).encode()


def _plain(values: list[Any], kind: pa.DataType) -> list[Any]:
    """Arrow's Python values as Spark would give them: a ROW is a tuple, a MAP a dict."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        fields = [_plain([None if v is None else v[f.name] for v in values], f.type) for f in kind]
        return [None if v is None else row for v, row in zip(values, zip(*fields, strict=True), strict=True)]
    if pa.types.is_map(kind):
        return [None if v is None else _pairs(v, kind) for v in values]
    if pa.types.is_list(kind):
        return [None if v is None else _plain(v, kind.value_type) for v in values]
    return values


def _pairs(entries: list[tuple[Any, Any]], kind: pa.DataType) -> dict[Any, Any]:
    keys, items = [k for k, _ in entries], [v for _, v in entries]
    return dict(zip(_plain(keys, kind.key_type), _plain(items, kind.item_type), strict=True))


def show_value(value: Any) -> str:
    """As Flink's print shows it: null, true, 2024-01-01T00:00, [1, 2], {a=1}, bytes as base64."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case bytes() | bytearray():
            return base64.b64encode(bytes(value)).decode()
        case dt.datetime():
            if value.tzinfo is None:
                return value.isoformat()
            # It comes in the session's time zone, and is shown as an instant.
            return f"{value.astimezone(dt.timezone.utc).replace(tzinfo=None).isoformat()}Z"
        case dict():
            return "{" + ", ".join(f"{show_value(k)}={show_value(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(show_value, value)) + "]"
        case tuple():
            return "(" + ", ".join(map(show_value, value)) + ")"
    return str(value)
