"""A table's content as of now, as a DataFrame for whatever a Spark user wants to do with it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.catalog.tables import Table
from headwater.catalog.validation import check_source
from headwater.changelog.kinds import ADDED, KIND
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION, POSITION
from headwater.connectors.runtime import RuntimeContext, Source, Split
from headwater.execution.inputs import open_source
from headwater.execution.spark import job_session
from headwater.execution.worker import bound_reader
from headwater.plan.build import scan
from headwater.plan.nodes import Project, Scan
from headwater.sql.spark_text import quote_name

__all__ = ["snapshot"]


def snapshot(table: Table, spark: SparkSession, chunk_rows: int) -> DataFrame:
    """Everything from the table's start position to the end of the log; of a changelog, the rows that are alive."""
    check_source(table)
    node = scan(table)
    read = node.input if isinstance(node, Project) else node
    assert isinstance(read, Scan)
    tasks = spark.sparkContext.defaultParallelism
    # A session of its own: settings that jobs need must not change those of the user's Spark.
    session = job_session(spark, tasks, "")
    source = open_source(read, RuntimeContext(session, f"table-{table.name}", tasks, [], chunk_rows=chunk_rows))
    try:
        begin = source.start()
        splits = source.splits(*source.available(begin, source.bound(begin), 1 << 62))
        # Now, because whoever computes the frame later cannot ask a registry in between.
        source.learn(splits)
        frame = _read(session, source, splits, read.names)
    finally:
        source.close()
    if KIND in frame.columns:
        frame = _alive(frame, table.primary_key) if table.primary_key else _left(frame, read.names)
    if isinstance(node, Project):
        items = zip(node.columns, node.expressions, strict=True)
        return frame.selectExpr(*(f"{e.sql} AS {quote_name(c.name)}" for c, e in items))
    return frame.select(*map(quote_name, node.names))


def _read(spark: SparkSession, source: Source, splits: list[list[Split]], columns: Sequence[str]) -> DataFrame:
    plan = source.scan(columns)
    assert plan is not None
    if plan.reader is None:
        assert plan.messages is not None
        return plan.decode(plan.messages(splits))
    numbers = spark.range(0, len(splits), 1, len(splits))
    return plan.decode(numbers.mapInArrow(bound_reader(plan.reader, splits), plan.schema))


def _alive(frame: DataFrame, key: tuple[str, ...]) -> DataFrame:
    columns = [c for c in frame.columns if c not in key]
    ordered_by = [c for c in (ORDER, PARTITION, OFFSET, POSITION) if c in frame.columns]
    # By what orders messages of one key: offsets alone are comparable only within a partition.
    newest = F.max_by(F.struct(*map(quote_name, columns)), F.struct(*ordered_by)).alias("__hw_newest")
    rows = frame.groupBy(*map(quote_name, key)).agg(newest).where(f"__hw_newest.{ADDED}")
    return rows.select(*map(quote_name, key), "__hw_newest.*")


def _left(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Rows that were inserted more often than they were retracted, as often as that."""
    columns = [quote_name(name) for name in names]
    weighted = frame.selectExpr(*columns, f"IF({ADDED}, 1, -1) AS __hw_weight")
    summed = weighted.groupBy(*columns).agg(F.sum("__hw_weight").alias("__hw_left")).where("__hw_left > 0")
    repeated = summed.selectExpr(*columns, "explode(array_repeat(0, CAST(__hw_left AS INT))) AS __hw_each")
    return repeated.drop("__hw_each")
