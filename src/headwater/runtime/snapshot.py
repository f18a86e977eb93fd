"""A table's content as of now, as a DataFrame for whatever a Spark user wants to do with it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.catalog.tables import Table
from headwater.catalog.usage import check_source
from headwater.changelog.kinds import KIND
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION, POSITION
from headwater.connectors.io import IoContext
from headwater.connectors.open import open_source
from headwater.plan.build import scan
from headwater.plan.nodes import Project, Scan
from headwater.runtime.lower import quoted
from headwater.runtime.spark import job_session

__all__ = ["snapshot"]


def snapshot(table: Table, spark: SparkSession) -> DataFrame:
    """Everything from the table's start position to the end of the log; of a changelog, the rows that are alive."""
    check_source(table)
    node = scan(table)
    read = node.input if isinstance(node, Project) else node
    assert isinstance(read, Scan)
    session = job_session(spark, spark.sparkContext.defaultParallelism, "")
    source = open_source(read, IoContext(session, f"table-{table.name}", []))
    try:
        begin = source.start()
        start, end = source.available(begin, source.bound(begin), 1 << 62)
        source.learn(start, end)  # whoever computes the frame cannot do it in between
        frame = source.read(start, end, read.names)
    finally:
        source.close()
    if KIND in frame.columns:
        frame = _alive(frame, table.primary_key) if table.primary_key else _left(frame, read.names)
    if isinstance(node, Project):
        items = zip(node.columns, node.expressions, strict=True)
        return frame.selectExpr(*(f"{e.sql} AS {quoted(c.name)}" for c, e in items))
    return frame.select(*map(quoted, node.names))


def _alive(frame: DataFrame, key: tuple[str, ...]) -> DataFrame:
    columns = [c for c in frame.columns if c not in key]
    stood = [c for c in (ORDER, PARTITION, OFFSET, POSITION) if c in frame.columns]
    newest = F.max_by(F.struct(*map(quoted, columns)), F.struct(*stood)).alias("__newest")
    rows = frame.groupBy(*map(quoted, key)).agg(newest).where(f"__newest.{KIND} IN (0, 2)")
    return rows.select(*map(quoted, key), "__newest.*")


def _left(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Rows that came more often than they went, as often as that."""
    columns = [quoted(name) for name in names]
    weighted = frame.selectExpr(*columns, f"IF({KIND} IN (0, 2), 1, -1) AS __weight")
    summed = weighted.groupBy(*columns).agg(F.sum("__weight").alias("__left")).where("__left > 0")
    return summed.selectExpr(*columns, "explode(array_repeat(0, CAST(__left AS INT))) AS __each").drop("__each")
