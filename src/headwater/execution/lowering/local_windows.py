"""GROUP BY windows that begins before the shuffle, in Python: see `execution.window_worker`.

It can if watermark, windows, groups and what is aggregated are made of the columns of one table alone.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StructType, TimestampNTZType

from headwater.changelog.local_windows import END, START, LocalWindows
from headwater.changelog.operator import OWN_WATERMARK
from headwater.connectors.spark_types import partial_type
from headwater.connectors.workers import map_in_arrow
from headwater.execution.lowering.aggregate import pre_aggregation, table_below
from headwater.execution.lowering.base import Lowering
from headwater.execution.lowering.packed import packed_scan
from headwater.execution.window_worker import WindowTask
from headwater.plan import nodes as n
from headwater.plan.fingerprint import operator_name

__all__ = ["local_windows"]


def local_windows(lowering: Lowering, node: n.WindowAggregate) -> DataFrame | None:
    """Groups and partial aggregates by window, without late rows: columns of the groups, both bounds of windows, with
    panes OWN_WATERMARK, and partial aggregates. None if there is more to it than columns of a table."""
    found = _windows_of_table(node)
    plan = lowering.inputs.scan(found[0]) if found is not None else None
    packed = packed_scan(lowering, found[0], plan) if found is not None and plan is not None else None
    if found is None or plan is None or packed is None:
        return None
    (scan, windows), (frame, rows) = found, packed
    lowering.pre_aggregated.append(scan.table.name)
    output = _groups(windows, frame.schema).add(END, TimestampNTZType())
    task = WindowTask(
        lowering.inputs.place_of(scan),
        plan.place_prefix,
        rows,
        windows,
        operator_name(lowering.root, node),
        to_arrow_schema(output),
        lowering.reports,
    )
    frame = map_in_arrow(frame, task, output)
    return frame.withColumnRenamed(START, node.over.start).withColumnRenamed(END, node.over.end)


def _groups(windows: LocalWindows, rows: StructType) -> StructType:
    """The columns of groups."""
    types: dict[str, DataType] = {field.name: field.dataType for field in rows}
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
    if below is None or len(tables) != 1 or len(watermarks) != 1 or below.scan.mode is not n.Mode.APPEND:
        return None
    (table,), (watermark,) = tables, watermarks
    timed, marked = table_below(table.input, (n.Watermark,)), table_below(watermark.input)
    moved = watermark.expression.as_moved
    groups = pre_aggregation(node, below, node.by)
    paned, spec = node.over.panes is not None, table.spec
    if groups is None or timed is None or table.time not in timed.names:
        return None
    # A row that is filtered out below the watermark would not move it.
    if marked is None or marked.filters or moved is None or moved.column not in marked.names:
        return None
    # Between windows of HOP that do not overlap may be rows that are in none.
    if not paned and spec.function != "TUMBLE":
        return None
    own = ((OWN_WATERMARK, OWN_WATERMARK),) if paned else ()
    return below.scan, LocalWindows(
        timed.names[table.time],
        (marked.names[moved.column], moved.micros),
        slide=(spec.slide if paned else spec.size) * 1000,
        span=(spec.slide if paned and spec.function == "HOP" else spec.size) * 1000,
        size=spec.size * 1000,
        offset=spec.offset * 1000,
        paned=paned,
        lateness=node.lateness * 1000,
        groups=replace(groups, groups=(*groups.groups, (START, START), *own)),
        where=below.where,
    )
