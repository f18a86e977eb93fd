"""GROUP BY windows that begins where rows are read: see `execution.window_worker`.

The readers of a table do it if watermark, windows, groups and what is aggregated are made of its columns alone.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, LongType, StructType, TimestampNTZType

from headwater.changelog.local_windows import END, START, LocalWindows
from headwater.changelog.operator import OWN_WATERMARK
from headwater.connectors.runtime import ScanPlan
from headwater.connectors.spark_types import partial_type
from headwater.connectors.workers import map_in_arrow
from headwater.execution.lowering.aggregate import pre_aggregation, table_below
from headwater.execution.lowering.base import Lowering
from headwater.execution.window_worker import GROUP, LATE, REACHED, LeftWindows, ReadWindows, local_name
from headwater.execution.worker import ReadTask
from headwater.plan import nodes as n
from headwater.plan.fingerprint import operator_name

__all__ = ["local_windows"]


def local_windows(lowering: Lowering, node: n.WindowAggregate) -> DataFrame | None:
    """Groups and partial aggregates by window, without late rows: columns of the groups, both bounds of windows, with
    panes OWN_WATERMARK, and partial aggregates. None if the readers of the table cannot make them."""
    found = _windows_of_table(node)
    plan = lowering.inputs.scan(found[0]) if found is not None else None
    if found is None or plan is None or plan.reader is None or plan.read is None:
        return None
    scan, windows = found
    if not set(windows.columns) <= plan.read.names.keys():
        return None
    lowering.pre_aggregated.append(scan.table.name)
    place, prefix = lowering.noted(scan, plan), plan.place_prefix
    groups = _groups(windows, plan)
    beside = StructType().add(GROUP, BooleanType()).add(REACHED, LongType()).add(LATE, LongType())
    local = [local_name(field.name) for field in groups]
    rows = StructType([*plan.schema, *beside])
    for field, name in zip(groups, local, strict=True):
        rows = rows.add(name, field.dataType)
    read = ReadWindows.of(ReadTask(place, plan.reader), plan.read, windows, prefix, to_arrow_schema(rows))
    frame = map_in_arrow(lowering.task_numbers(place), read, rows)
    frame = plan.read.decode(frame, [*beside.names, *local])
    output = StructType([*groups]).add(END, TimestampNTZType())
    name = operator_name(lowering.root, node)
    left = LeftWindows(place, windows, prefix, name, to_arrow_schema(output), lowering.reports)
    frame = map_in_arrow(frame, left, output)
    return frame.withColumnRenamed(START, node.over.start).withColumnRenamed(END, node.over.end)


def _groups(windows: LocalWindows, plan: ScanPlan) -> StructType:
    """The columns of groups."""
    assert plan.read is not None
    types = {
        column: plan.schema[name].dataType for column, name in plan.read.names.items() if name in plan.schema.names
    }
    types |= {START: TimestampNTZType(), OWN_WATERMARK: TimestampNTZType()}
    groups = StructType()
    for column, name in windows.groups.groups:
        groups = groups.add(name, types[column])
    for partial in windows.groups.partials:
        groups = groups.add(partial.name, partial_type(partial, types))
    return groups


def _windows_of_table(node: n.WindowAggregate) -> tuple[n.Scan, LocalWindows] | None:
    """None if there is anything between the table and the aggregation that readers do not know."""
    below = table_below(node.input, (n.WindowTable, n.Watermark))
    tables = [table for table in n.walk(node.input) if isinstance(table, n.WindowTable)]
    watermarks = [mark for mark in n.walk(node.input) if isinstance(mark, n.Watermark)]
    if below is None or len(tables) != 1 or len(watermarks) != 1:
        return None
    (table,), (watermark,) = tables, watermarks
    timed, moved = table_below(table.input, (n.Watermark,)), watermark.expression.as_moved
    groups = pre_aggregation(node, below, node.by)
    paned, spec = node.over.panes is not None, table.spec
    if groups is None or timed is None or table.time not in timed.names or moved is None:
        return None
    # Between windows of HOP that do not overlap may be rows that are in none.
    if not paned and spec.function != "TUMBLE":
        return None
    own = ((OWN_WATERMARK, OWN_WATERMARK),) if paned else ()
    return below.scan, LocalWindows(
        timed.names[table.time],
        (moved.column, moved.micros),
        slide=(spec.slide if paned else spec.size) * 1000,
        span=(spec.slide if paned and spec.function == "HOP" else spec.size) * 1000,
        size=spec.size * 1000,
        offset=spec.offset * 1000,
        paned=paned,
        lateness=node.lateness * 1000,
        groups=replace(groups, groups=(*groups.groups, (START, START), *own)),
        where=below.where,
    )
