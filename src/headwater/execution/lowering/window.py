"""GROUP BY windows, on its way to the operator.

Where it is known before the shuffle which rows are late, Spark's own hash aggregation reduces the others to one row per
group and window. That is so without a time zone: the end of a window and a watermark can be compared as they are. Where
late rows are not only counted but kept, the operator must say which they are.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater.changelog.aggregate import AggregateOperator
from headwater.changelog.kinds import KIND
from headwater.changelog.operator import ORIGIN, OWN_WATERMARK, Operator
from headwater.changelog.session import SessionAggregate
from headwater.changelog.window import WindowAggregateOperator
from headwater.execution.lowering.aggregate import prepared
from headwater.execution.lowering.base import Lowering, lowers
from headwater.execution.lowering.time import instant_sql, millis_sql
from headwater.plan import nodes as n
from headwater.plan.fingerprint import operator_name
from headwater.sql.spark_text import quote_name

__all__: list[str] = []

_WITHOUT_DAYLIGHT_SAVING = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "Etc/Universal", "Zulu"})


@lowers(n.WindowAggregate)
def _window_aggregate(lowering: Lowering, node: n.WindowAggregate) -> DataFrame:
    frame = lowering.lower(node.input)
    if node.over.session is not None:
        frame, operator = _session(lowering, node, frame)
    else:
        frame, operator = _windows(lowering, node, frame)
    return _with_time(node, lowering.keyed(node, frame, operator))


def _windows(lowering: Lowering, node: n.WindowAggregate, frame: DataFrame) -> tuple[DataFrame, Operator]:
    window, zone = node.over, lowering.time_zone if node.over.local else ""
    kept = _beside(frame)
    # Late rows can be dropped before the shuffle where the end of a window is an instant by itself; across a change of
    # the clock only the operator knows which instant it is. Where they are kept elsewhere, it must say which they are.
    if kept == (OWN_WATERMARK,) and (not zone or zone in _WITHOUT_DAYLIGHT_SAVING):
        frame, kept = _on_time(lowering, node, frame), ()
    rows, aggregate = prepared(node, frame, lowering.partitions, node.groups, kept)
    bounds = {window.start, window.end}
    operator = WindowAggregateOperator(
        _grouped_by(aggregate, [g for g in node.groups if g not in bounds]),
        assigner=None,
        time="",
        start=window.start,
        end=window.end,
        zone=zone,
        early=node.early,
        lateness=node.lateness * 1000,
        own_watermark=OWN_WATERMARK if OWN_WATERMARK in kept else "",
    )
    return rows, operator


def _beside(frame: DataFrame) -> tuple[str, ...]:
    """What says of a row whether it is late, and where it came from."""
    return tuple(name for name in (OWN_WATERMARK, ORIGIN) if name in frame.columns)


def _on_time(lowering: Lowering, node: n.WindowAggregate, frame: DataFrame) -> DataFrame:
    """Without the rows that are late in their own partition, which are counted."""
    allowed = f" + {millis_sql(node.lateness)}" if node.lateness else ""
    late = f"({quote_name(node.over.end)} - {millis_sql(1)}{allowed} <= {OWN_WATERMARK})"
    metric = f"headwater-late-{operator_name(lowering.root, node)}"
    lowering.late_metrics.append(metric)
    counted = frame.observe(metric, F.expr(f"count_if({late})").alias("late"))
    return counted.where(f"{OWN_WATERMARK} IS NULL OR NOT {late}").drop(OWN_WATERMARK)


def _session(lowering: Lowering, node: n.WindowAggregate, frame: DataFrame) -> tuple[DataFrame, Operator]:
    window = node.over
    assert window.session is not None
    own = OWN_WATERMARK if OWN_WATERMARK in frame.columns else ""
    # Not reduced before the shuffle: the session of a row is not known before all rows of its key are together.
    rows, aggregate = prepared(node, frame, lowering.partitions, node.by, (window.time, *_beside(frame)))
    zone = lowering.time_zone if window.local else ""
    bounds = {"start": window.start, "end": window.end}
    gap = window.session.gap * 1000
    return rows, SessionAggregate(aggregate, gap, window.time, **bounds, zone=zone, own_watermark=own)


def _grouped_by(aggregate: AggregateOperator, names: list[str]) -> AggregateOperator:
    groups = pa.schema([aggregate.groups.field(name) for name in names])
    return replace(aggregate, groups=groups, multisets=tuple(replace(m, groups=groups) for m in aggregate.multisets))


def _with_time(node: n.WindowAggregate, frame: DataFrame) -> DataFrame:
    """The columns of the node; KIND only where there is more than inserts."""
    last = f"{quote_name(node.over.end)} - {millis_sql(1)}"
    moment = instant_sql(last) if node.over.local else last
    names = [quote_name(c.name) for c in node.columns[:-1]]
    kind = [KIND] if node.mode is not n.Mode.APPEND else []
    return frame.selectExpr(*names, f"{moment} AS {quote_name(node.time.name)}", *kind)
