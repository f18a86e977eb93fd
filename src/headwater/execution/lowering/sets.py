"""INTERSECT and EXCEPT."""

from __future__ import annotations

from typing import cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from headwater.changelog.kinds import HASH, KIND
from headwater.changelog.set_operation import SIDE, SetFunction, SetOperationOperator
from headwater.execution.lowering.base import ORDERED_BY, Lowering, comparable, lowers, pick
from headwater.plan import nodes as n
from headwater.sql.spark_text import quote_name
from headwater.state.partitions import hash_sql

__all__: list[str] = []


@lowers(n.SetOperation)
def _set_operation(lowering: Lowering, node: n.SetOperation) -> DataFrame:
    left, right = (_side(lowering.lower(child), number) for number, child in enumerate(node.inputs))
    columns = [quote_name(name) for name in node.names]
    both = comparable(left.unionByName(right), node.columns, node.names)
    frame = both.selectExpr(*columns, SIDE, KIND, f"{hash_sql(columns)} AS {HASH}")
    frame = frame.repartition(lowering.partitions, *columns)
    schema = pick(to_arrow_schema(frame.schema), node.names)
    changes = lowering.keyed(node, frame, SetOperationOperator(schema, cast(SetFunction, node.function)))
    return changes.drop(KIND) if node.mode is n.Mode.APPEND else changes


def _side(frame: DataFrame, number: int) -> DataFrame:
    frame = frame.drop(*ORDERED_BY)
    if KIND not in frame.columns:
        frame = frame.withColumn(KIND, F.lit(0).cast("tinyint"))
    return frame.withColumn(SIDE, F.lit(number).cast("tinyint"))
