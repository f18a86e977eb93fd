"""`blackhole` at work: every row is computed and dropped."""

from __future__ import annotations

from pyspark.sql import DataFrame

from headwater.catalog.tables import Table
from headwater.connectors.io import IoContext, Sink
from headwater.connectors.rows import checked_not_null

__all__ = ["BlackholeSink"]


class BlackholeSink(Sink):
    def __init__(self, table: Table, context: IoContext) -> None:
        self._table = table

    def write(self, rows: DataFrame, batch: int, *, steady: bool) -> int | None:
        checked_not_null(rows, self._table).write.format("noop").mode("append").save()
        return None
