"""GROUP BY windows, on its way to the operator.

Where it is known before the shuffle which rows are late, the others are reduced to one row per group and window: where
they are read, if that can be (`local_windows`), or by Spark's own hash aggregation. It is known without a time zone:
the end of a window and a watermark can be compared as they are. Where late rows are not only counted but kept, the
operator must say which they are.
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
from headwater.changelog.window_assigners import Cumulate, Hop
from headwater.execution.lowering.accumulators import Given
from headwater.execution.lowering.aggregate import Beside, prepared
from headwater.execution.lowering.base import Lowering, lowers
from headwater.execution.lowering.local_windows import local_windows
from headwater.execution.lowering.time import instant_sql, millis_sql
from headwater.plan import nodes as n
from headwater.plan.fingerprint import operator_name
from headwater.sql.spark_text import quote_name

__all__ = ["has_plain_ends"]

PANE = "__hw_pane"
_ASSIGNERS: dict[str, type[Hop] | type[Cumulate]] = {"HOP": Hop, "CUMULATE": Cumulate}
_WITHOUT_DAYLIGHT_SAVING = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "Etc/Universal", "Zulu"})


@lowers(n.WindowAggregate)
def _window_aggregate(lowering: Lowering, node: n.WindowAggregate) -> DataFrame:
    if node.over.session is not None:
        frame, operator = _session(lowering, node)
    elif node.over.panes is not None:
        frame, operator = _panes(lowering, node, node.over.panes)
    else:
        frame, operator = _windows(lowering, node)
    return _with_time(node, lowering.keyed(node, frame, operator))


def _windows(lowering: Lowering, node: n.WindowAggregate) -> tuple[DataFrame, Operator]:
    window = node.over
    local = _added_up_by_readers(lowering, node)
    frame = local if local is not None else lowering.lower(node.input)
    kept = _beside(frame)
    if _is_known_before(lowering, node, kept):
        frame, kept = _on_time(lowering, node, frame).drop(OWN_WATERMARK), ()
    given: Given = "rows" if local is None else "partials"
    rows, aggregate = prepared(node, frame, lowering.partitions, node.groups, Beside(kept), given=given)
    bounds = {window.start, window.end}
    operator = WindowAggregateOperator(
        _grouped_by(aggregate, [g for g in node.groups if g not in bounds]),
        assigner=None,
        time="",
        start=window.start,
        end=window.end,
        zone=_zone(lowering, node),
        early=node.early,
        lateness=node.lateness * 1000,
        own_watermark=OWN_WATERMARK if OWN_WATERMARK in kept else "",
    )
    return rows, operator


def _panes(lowering: Lowering, node: n.WindowAggregate, spec: n.WindowSpec) -> tuple[DataFrame, Operator]:
    """Rows have the start of their pane, and the end of the last of its windows, as bounds."""
    window = node.over
    local = _added_up_by_readers(lowering, node)
    frame = local if local is not None else lowering.lower(node.input)
    kept = _beside(frame)
    beside = Beside(kept=(PANE, *kept)) if local is None else Beside(apart=(PANE, OWN_WATERMARK))
    if local is None and _is_known_before(lowering, node, kept):
        # A row that is late for the first windows of its pane, but not for the last, keeps the watermark that says so.
        # It is not added up with those that are on time for all of them.
        first_end = f"{quote_name(window.start)} + {millis_sql(spec.slide)}"
        own = f"IF({_is_late(node, first_end)}, {OWN_WATERMARK}, NULL)"
        frame = _on_time(lowering, node, frame).withColumn(OWN_WATERMARK, F.expr(own))
        beside = Beside(apart=(PANE, OWN_WATERMARK))
    frame = frame.withColumnRenamed(window.start, PANE).drop(window.end)
    given: Given = "rows" if local is None else "partials"
    rows, aggregate = prepared(node, frame, lowering.partitions, node.by, beside, given=given)
    operator = WindowAggregateOperator(
        aggregate,
        assigner=_ASSIGNERS[spec.function](spec.slide * 1000, spec.size * 1000, spec.offset * 1000),
        time=PANE,
        start=window.start,
        end=window.end,
        zone=_zone(lowering, node),
        local=True,
        early=node.early,
        lateness=node.lateness * 1000,
        own_watermark=OWN_WATERMARK if OWN_WATERMARK in kept else "",
    )
    return rows, operator


def _added_up_by_readers(lowering: Lowering, node: n.WindowAggregate) -> DataFrame | None:
    """Groups by window, where the tasks that read the table can say which rows are late and add up the others."""
    return local_windows(lowering, node) if has_plain_ends(node, lowering.time_zone) else None


def _zone(lowering: Lowering, node: n.WindowAggregate) -> str:
    return lowering.time_zone if node.over.local else ""


def _is_known_before(lowering: Lowering, node: n.WindowAggregate, beside: tuple[str, ...]) -> bool:
    """Whether it is known before the shuffle which rows are late: where the end of a window is an instant by itself.
    Across a change of the clock only the operator knows which instant it is. Where late rows are kept elsewhere, it
    must say which they are."""
    return beside == (OWN_WATERMARK,) and has_plain_ends(node, lowering.time_zone)


def has_plain_ends(node: n.WindowAggregate, time_zone: str) -> bool:
    """Whether the end of a window is an instant by itself, whatever clocks are set to."""
    return not node.over.local or time_zone in _WITHOUT_DAYLIGHT_SAVING


def _beside(frame: DataFrame) -> tuple[str, ...]:
    """What says of a row whether it is late, and where it came from."""
    return tuple(name for name in (OWN_WATERMARK, ORIGIN) if name in frame.columns)


def _on_time(lowering: Lowering, node: n.WindowAggregate, frame: DataFrame) -> DataFrame:
    """Without the rows that are late in their own partition, which are counted."""
    late = _is_late(node, quote_name(node.over.end))
    metric = f"headwater-late-{operator_name(lowering.root, node)}"
    lowering.late_metrics.append(metric)
    counted = frame.observe(metric, F.expr(f"count_if({late})").alias("late"))
    return counted.where(f"{OWN_WATERMARK} IS NULL OR NOT {late}")


def _is_late(node: n.WindowAggregate, end: str) -> str:
    """Whether a row has come too late for a window with this end."""
    allowed = f" + {millis_sql(node.lateness)}" if node.lateness else ""
    return f"({end} - {millis_sql(1)}{allowed} <= {OWN_WATERMARK})"


def _session(lowering: Lowering, node: n.WindowAggregate) -> tuple[DataFrame, Operator]:
    frame, window = lowering.lower(node.input), node.over
    assert window.session is not None
    own = OWN_WATERMARK if OWN_WATERMARK in frame.columns else ""
    # Not reduced before the shuffle: the session of a row is not known before all rows of its key are together.
    rows, aggregate = prepared(node, frame, lowering.partitions, node.by, Beside((window.time, *_beside(frame))))
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
