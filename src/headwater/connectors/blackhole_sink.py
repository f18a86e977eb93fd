"""`blackhole` at work: every row is computed, counted and dropped."""

from __future__ import annotations

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from headwater.catalog.tables import Table
from headwater.connectors.io import IoContext
from headwater.connectors.rows import checked_not_null

__all__ = ["BlackholeSink"]


class BlackholeSink:
    def __init__(self, table: Table, context: IoContext) -> None:
        self._table = table

    def write(self, rows: DataFrame, batch: int) -> int | None:
        counted = Observation()
        rows = checked_not_null(rows, self._table).observe(counted, F.count(F.lit(1)).alias("rows"))
        rows.write.format("noop").mode("append").save()
        return int(counted.get["rows"])

    def close(self) -> None:
        pass
