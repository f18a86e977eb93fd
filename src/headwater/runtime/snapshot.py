"""A table's content as of now, as a DataFrame for whatever a Spark user wants to do with it."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.catalog.tables import Table
from headwater.catalog.usage import check_source
from headwater.changelog.kinds import DELETE, KIND
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION
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
        frame = source.read(start, end, read.names)
    finally:
        source.close()
    if table.connector.reads_upserts:
        frame = _alive(frame, table.primary_key)
    if isinstance(node, Project):
        items = zip(node.columns, node.expressions, strict=True)
        return frame.selectExpr(*(f"{e.sql} AS {quoted(c.name)}" for c, e in items))
    return frame.select(*map(quoted, node.names))


def _alive(frame: DataFrame, key: tuple[str, ...]) -> DataFrame:
    columns = [c for c in frame.columns if c not in key]
    newest = F.max_by(F.struct(*map(quoted, columns)), F.struct(ORDER, PARTITION, OFFSET)).alias("__newest")
    rows = frame.groupBy(*map(quoted, key)).agg(newest).where(f"__newest.{KIND} <> {DELETE}")
    return rows.select(*map(quoted, key), "__newest.*")
