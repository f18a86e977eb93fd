"""`blackhole`: accepts every change and discards it, to measure a query without its sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.catalog.connector import CONNECTOR, Accepts, Connector
from headwater.connectors.runtime import RuntimeContext, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headwater.catalog.tables import Table

__all__ = ["BLACKHOLE", "BlackholeSink"]


class BlackholeConnector(Connector):
    identifier = "blackhole"
    summary = "Accepts every row and discards it."
    options = (CONNECTOR,)
    accepts = Accepts.ALL

    def sink(self, table: Table, context: RuntimeContext) -> Sink:
        return BlackholeSink(table, context)


BLACKHOLE = BlackholeConnector()


class BlackholeSink(Sink):
    """Every row is computed, checked and dropped."""

    def __init__(self, table: Table, context: RuntimeContext) -> None:
        self._table = table

    def encode(self, rows: DataFrame) -> DataFrame:
        from headwater.connectors.sink_rows import checked_not_null

        return checked_not_null(rows, self._table)
