"""Aggregates OVER windows of rows."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import DataType

from headwater.changelog.frames import Frame
from headwater.changelog.kinds import KIND
from headwater.changelog.operator import ORIGIN, OWN_WATERMARK
from headwater.changelog.ordered_values import ARRIVAL
from headwater.changelog.ordering import SortKey
from headwater.changelog.over import FrameCall, OverTableOperator
from headwater.changelog.over_time import OverTimeOperator
from headwater.execution.lowering.base import Lowering, comparable, lowers, pick
from headwater.execution.lowering.join import prepared_side
from headwater.plan import nodes as n
from headwater.sql.spark_text import quote_name

__all__: list[str] = []


@lowers(n.OverTime)
def _over_time(lowering: Lowering, node: n.OverTime) -> DataFrame:
    waits = node.clock is n.TimeKind.EVENT
    frame, columns = _prepared(lowering, node)
    if not waits:
        # Before the shuffle, which does not keep the order of rows.
        frame = frame.selectExpr("*", f"monotonically_increasing_id() AS {ARRIVAL}")
    own = OWN_WATERMARK if waits and OWN_WATERMARK in frame.columns else ""
    operator = OverTimeOperator(columns, node.partition, _calls(node), node.time, waits, own)
    return lowering.keyed(node, _partitioned(lowering, node, frame), operator).drop(KIND)


@lowers(n.Over)
def _over(lowering: Lowering, node: n.Over) -> DataFrame:
    frame, columns = _prepared(lowering, node)
    order = tuple(SortKey(sort.name, sort.descending, sort.nulls_first) for sort in node.order)
    updates = node.updates or node.key or ()
    operator = OverTableOperator(columns, node.partition, _calls(node), order, updates, node.before)
    return lowering.keyed(node, _partitioned(lowering, node, frame), operator)


def _prepared(lowering: Lowering, node: n.OverTime | n.Over) -> tuple[DataFrame, pa.Schema]:
    frame = prepared_side(lowering, node.input, node.partition, (OWN_WATERMARK, ORIGIN))
    frame = comparable(frame, node.input.columns, node.partition)
    return frame, pick(to_arrow_schema(frame.schema), node.input.names)


def _partitioned(lowering: Lowering, node: n.OverTime | n.Over, frame: DataFrame) -> DataFrame:
    keys = [quote_name(name) for name in node.partition]
    return frame.repartition(lowering.partitions, *keys) if keys else frame.repartition(1)


def _calls(node: n.OverTime | n.Over) -> tuple[FrameCall, ...]:
    return tuple(
        FrameCall(
            column.name,
            to_arrow_type(DataType.fromDDL(call.type.spark())),
            call.function,
            call.argument,
            Frame(call.frame.kind, call.frame.preceding, call.frame.following),
            call.offset,
            call.default,
        )
        for column, call in node.called
    )
