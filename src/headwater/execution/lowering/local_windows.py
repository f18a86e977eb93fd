"""GROUP BY windows that begins before the shuffle, in Python: see `execution.window_worker`.

It can if watermark, windows, groups and what is aggregated are columns of one table, or what workers compute of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import ByteType, DataType, StructType, TimestampNTZType

from headwater.changelog.conditions import ColumnRef
from headwater.changelog.local_windows import END, START, LocalWindows
from headwater.changelog.operator import OWN_WATERMARK
from headwater.connectors.spark_types import partial_type
from headwater.connectors.workers import map_in_arrow
from headwater.execution.lowering.aggregate import pre_aggregation
from headwater.execution.lowering.base import Lowering
from headwater.execution.lowering.branches import one_scan
from headwater.execution.lowering.computed import ComputedBelow, computed_below
from headwater.execution.lowering.packed import packed_scan
from headwater.execution.window_worker import WindowBranch, WindowTask, branch_column
from headwater.execution.worker import INPUT, input_column
from headwater.plan import nodes as n
from headwater.plan.fingerprint import operator_name

__all__ = ["local_windows", "scans_for_windows"]

_TIME, _WATERMARK, _WHERE = "__hw_time", "__hw_of_watermark", "__hw_where"
"""Columns beside those that are aggregated: the time of windows, what the watermark is made of, which rows count."""


def local_windows(lowering: Lowering, node: n.WindowAggregate) -> DataFrame | None:
    """Groups and partial aggregates by window, without late rows: columns of the groups, both bounds of windows, with
    panes OWN_WATERMARK, and partial aggregates. None if there is more to it than columns of a table. A table that
    several such nodes need is read once for all of them."""
    branches = _branches(lowering.root, node)
    if len(branches) > 1:
        frame = _part_of(lowering, branches, node)
    else:
        frame = _read(lowering, branches) if branches else None
    if frame is None:
        return None
    return frame.withColumnRenamed(START, node.over.start).withColumnRenamed(END, node.over.end)


def scans_for_windows(root: n.Node, node: n.WindowAggregate) -> list[n.Scan]:
    """The scans below this node and those that are read together with it, if readers have all that windows need."""
    branches = _branches(root, node)
    if not branches:
        return []
    scan = _scan_of(branches)
    reads = scan.table.connector.pre_aggregates(scan.table, scan.names, dict(scan.fields), None)
    return [branch.below.scan for branch in branches] if reads else []


@dataclass(frozen=True)
class _Branch:
    node: n.WindowAggregate
    below: ComputedBelow
    windows: LocalWindows


def _branches(root: n.Node, node: n.WindowAggregate) -> list[_Branch]:
    """This node and all others whose windows are over the same table and the same clock; none if this one's are not
    over what workers compute."""
    mine = _windows_of_table(node)
    if mine is None:
        return []
    found = []
    for other in n.walk(root):
        if isinstance(other, n.WindowAggregate) and other.over.local == node.over.local:
            known = _windows_of_table(other)
            if known is not None and known[0].scan.table == mine[0].scan.table:
                found.append(_Branch(other, *known))
    return found


def _part_of(lowering: Lowering, branches: list[_Branch], node: n.WindowAggregate) -> DataFrame | None:
    """The groups of a node out of those of all branches, which are read when the first of them is lowered."""
    first = id(branches[0].node)
    if first not in lowering.read_together:
        read = _read(lowering, branches)
        lowering.read_together[first] = lowering.once_for_all(read) if read is not None else None
    together = lowering.read_together[first]
    (number,) = (number for number, branch in enumerate(branches) if branch.node is node)
    if together is None:
        return None
    return together.where(f"{INPUT} = {number}").selectExpr(f"{input_column(number)}.*")


def _read(lowering: Lowering, branches: list[_Branch]) -> DataFrame | None:
    """The groups of one branch, or of several with the number of each as INPUT."""
    scan = _scan_of(branches)
    plan = lowering.inputs.scan(scan)
    packed = packed_scan(lowering, scan, plan) if plan is not None else None
    if plan is None or packed is None:
        return None
    frame, rows = packed
    lowering.pre_aggregated.append(scan.table.name)
    rows = rows.computing(
        {
            branch_column(number, name): branch.below.values[name]
            for number, branch in enumerate(branches)
            for name in branch.windows.columns
        }
    )
    unpacked = from_arrow_schema(rows.unpacked_schema, prefer_timestamp_ntz=True)
    outputs = [_groups(branch.windows, unpacked, number) for number, branch in enumerate(branches)]
    tasks = tuple(
        WindowBranch(branch.windows, operator_name(lowering.root, branch.node), to_arrow_schema(output))
        for branch, output in zip(branches, outputs, strict=True)
    )
    tagged = StructType().add(INPUT, ByteType())
    for number, output in enumerate(outputs):
        tagged = tagged.add(input_column(number), output)
    task = WindowTask(lowering.inputs.place_of(scan), plan.place_prefix, rows, tasks, lowering.reports)
    return map_in_arrow(frame, task, tagged if len(outputs) > 1 else outputs[0])


def _scan_of(branches: list[_Branch]) -> n.Scan:
    scans = [branch.below.scan for branch in branches]
    return scans[0] if len(scans) == 1 else one_scan(scans)


def _groups(windows: LocalWindows, rows: StructType, number: int) -> StructType:
    """The columns of groups of a branch, and END."""
    types: dict[str, DataType] = {name: rows[branch_column(number, name)].dataType for name in windows.columns}
    types |= {START: TimestampNTZType(), OWN_WATERMARK: TimestampNTZType()}
    groups = StructType()
    for column, name in windows.groups.groups:
        groups = groups.add(name, types[column])
    for partial in windows.groups.partials:
        groups = groups.add(partial.name, partial_type(partial, types))
    return groups.add(END, TimestampNTZType())


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
