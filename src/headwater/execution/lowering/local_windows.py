"""GROUP BY windows that begins before the shuffle, in Python: see `execution.window_worker`.

It can if watermark, windows, groups and what is aggregated are columns of one table, or what workers compute of them.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import DataType, StructType, TimestampNTZType

from headwater.changelog.conditions import ColumnRef
from headwater.changelog.local_windows import END, START, LocalWindows
from headwater.changelog.operator import OWN_WATERMARK
from headwater.connectors.spark_types import partial_type
from headwater.connectors.workers import map_in_arrow
from headwater.execution.lowering.aggregate import pre_aggregation
from headwater.execution.lowering.base import Lowering
from headwater.execution.lowering.computed import ComputedBelow, computed_below
from headwater.execution.lowering.packed import packed_scan
from headwater.execution.window_worker import WindowTask
from headwater.plan import nodes as n
from headwater.plan.fingerprint import operator_name

__all__ = ["local_windows"]

_TIME, _WATERMARK, _WHERE = "__time", "__of_watermark", "__where"
"""Columns beside those that are aggregated: the time of windows, what the watermark is made of, which rows count."""


def local_windows(lowering: Lowering, node: n.WindowAggregate) -> DataFrame | None:
    """Groups and partial aggregates by window, without late rows: columns of the groups, both bounds of windows, with
    panes OWN_WATERMARK, and partial aggregates. None if there is more to it than columns of a table."""
    found = _windows_of_table(node)
    plan = lowering.inputs.scan(found[0].scan) if found is not None else None
    packed = packed_scan(lowering, found[0].scan, plan) if found is not None and plan is not None else None
    if found is None or plan is None or packed is None:
        return None
    (below, windows), (frame, rows) = found, packed
    rows, scan = rows.computing({name: below.values[name] for name in windows.columns}), below.scan
    lowering.pre_aggregated.append(scan.table.name)
    unpacked = from_arrow_schema(rows.unpacked_schema, prefer_timestamp_ntz=True)
    output = _groups(windows, unpacked).add(END, TimestampNTZType())
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


def _windows_of_table(node: n.WindowAggregate) -> tuple[ComputedBelow, LocalWindows] | None:
    """Windows over columns that workers compute. None if there is anything else between the table and the
    aggregation."""
    below = computed_below(node.input, (n.WindowTable, n.Watermark))
    tables = [table for table in n.walk(node.input) if isinstance(table, n.WindowTable)]
    watermarks = [mark for mark in n.walk(node.input) if isinstance(mark, n.Watermark)]
    if below is None or len(tables) != 1 or len(watermarks) != 1 or below.scan.mode is not n.Mode.APPEND:
        return None
    (table,), (watermark,) = tables, watermarks
    timed, marked = computed_below(table.input, (n.Watermark,)), computed_below(watermark.input)
    moved = watermark.expression.as_moved
    # A row that is filtered out below the watermark would not move it.
    if timed is None or marked is None or marked.where is not None or moved is None:
        return None
    groups = pre_aggregation(node, {name: name for name in below.values}, node.by)
    paned, spec = node.over.panes is not None, table.spec
    if groups is None or table.time not in timed.values or moved.column not in marked.values:
        return None
    # Between windows of HOP that do not overlap may be rows that are in none.
    if not paned and spec.function != "TUMBLE":
        return None
    own = ((OWN_WATERMARK, OWN_WATERMARK),) if paned else ()
    values = {**below.values, _TIME: timed.values[table.time], _WATERMARK: marked.values[moved.column]}
    if below.where is not None:
        values[_WHERE] = below.where
    return replace(below, values=values), LocalWindows(
        _TIME,
        (_WATERMARK, moved.micros),
        slide=(spec.slide if paned else spec.size) * 1000,
        span=(spec.slide if paned and spec.function == "HOP" else spec.size) * 1000,
        size=spec.size * 1000,
        offset=spec.offset * 1000,
        paned=paned,
        lateness=node.lateness * 1000,
        groups=replace(groups, groups=(*groups.groups, (START, START), *own)),
        where=ColumnRef(_WHERE) if below.where is not None else None,
    )
