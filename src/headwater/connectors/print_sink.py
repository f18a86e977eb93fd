"""`print` at work: every change on one line, as Flink shows it: `+I[ann, 3]`."""

from __future__ import annotations

import base64
import datetime as dt
import sys
import threading
from typing import Any

from pyspark.sql import DataFrame

from headwater.catalog.tables import Table
from headwater.changelog.kinds import INSERT, KIND, SHORT_NAMES
from headwater.connectors.io import IoContext, Sink
from headwater.connectors.rows import checked_not_null

__all__ = ["PrintSink", "show_value"]

_one_at_a_time = threading.Lock()


class PrintSink(Sink):
    def __init__(self, table: Table, context: IoContext) -> None:
        self._table = table
        name = table.options.string("print-identifier")
        self._prefix = f"{name}> " if name else ""
        self._error = table.options.flag("standard-error")

    def write(self, rows: DataFrame, batch: int, *, steady: bool) -> int | None:
        rows = checked_not_null(rows, self._table)
        columns = [c for c in rows.columns if c != KIND]
        count = 0
        for row in rows.collect():
            values = row.asDict()
            kind = values.get(KIND, INSERT)
            text = ", ".join(show_value(values[c]) for c in columns)
            self._print(f"{self._prefix}{SHORT_NAMES[kind]}[{text}]")
            count += 1
        return count

    def _print(self, line: str) -> None:
        with _one_at_a_time:
            print(line, file=sys.stderr if self._error else sys.stdout, flush=True)


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
            instant = value.replace(tzinfo=None).isoformat()
            return f"{instant}Z" if value.tzinfo is not None else instant
        case dict():
            return "{" + ", ".join(f"{show_value(k)}={show_value(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(show_value, value)) + "]"
        case tuple():
            return "(" + ", ".join(map(show_value, value)) + ")"
    return str(value)
