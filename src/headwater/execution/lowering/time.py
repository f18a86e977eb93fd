"""Time attributes of rows, and their windows."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType, TimestampNTZType

from headwater.changelog.conditions import ColumnRef, Condition
from headwater.changelog.operator import ORIGIN, OWN_WATERMARK
from headwater.connectors.runtime import PLACE
from headwater.connectors.workers import map_in_arrow
from headwater.execution.lowering.base import HIDDEN, Lowering, lowers
from headwater.execution.lowering.computed import computed_below
from headwater.execution.lowering.packed import packed_scan
from headwater.execution.packed_rows import PACKED
from headwater.execution.watermark_worker import ROW_WATERMARK, PackedWatermarks, ProcessingTimeTask, WatermarkTask
from headwater.plan import nodes as n
from headwater.sql.spark_text import quote_name

__all__ = ["instant_sql", "millis_sql", "watermarked"]

_WINDOW = "__hw_window"


@lowers(n.Watermark)
def _watermark(lowering: Lowering, node: n.Watermark) -> DataFrame:
    return watermarked(lowering, node)


def watermarked(lowering: Lowering, node: n.Watermark, where: Condition | None = None) -> DataFrame:
    """The rows below with the watermark of their partition, as far as `where` is TRUE: all of them count for it."""
    # A watermark stands directly above the scan of its table, or what it computes, so that there is exactly one.
    (scan,) = (below for below in n.walk(node) if isinstance(below, n.Scan))
    place = lowering.inputs.place_of(scan)
    packed = _packed(lowering, node)
    if packed is not None:
        frame, unpacking = packed
        schema = from_arrow_schema(unpacking.rows.unpacked_schema, prefer_timestamp_ntz=True)
    else:
        frame, unpacking = lowering.lower(node.input), None
        kept = [c for c in frame.columns if c != PLACE]
        row = f"{node.expression.sql} AS {ROW_WATERMARK}"
        items = [f"concat('{place}:', {ORIGIN}) AS {ORIGIN}" if c == ORIGIN else quote_name(c) for c in kept]
        frame = frame.selectExpr(*items, row, PLACE)
        schema = StructType([frame.schema[name] for name in kept])
    schema = schema.add(OWN_WATERMARK, TimestampNTZType())
    prefix = lowering.place_prefixes[place]
    task = WatermarkTask(place, prefix, lowering.reports, to_arrow_schema(schema), unpacking, where)
    return map_in_arrow(frame, task, schema)


def _packed(lowering: Lowering, node: n.Watermark) -> tuple[DataFrame, PackedWatermarks] | None:
    """Rows that travel packed, and how they are unpacked. None where it takes Spark to compute their columns."""
    moved, below = node.expression.as_moved, computed_below(node.input)
    if moved is None or below is None or below.where is not None or not set(node.input.names) <= below.values.keys():
        return None
    plan = lowering.inputs.scan(below.scan)
    found = packed_scan(lowering, below.scan, plan) if plan is not None else None
    if found is None:
        return None
    frame, rows = found
    hidden = [name for name in frame.columns if name not in {*below.scan.names, PLACE, PACKED}]
    values = {name: below.values[name] for name in node.input.names}
    rows = rows.computing({**values, **{name: ColumnRef(name) for name in hidden}})
    return frame, PackedWatermarks(rows, (moved.column, moved.micros))


@lowers(n.ProcessingTime)
def _processing_time(lowering: Lowering, node: n.ProcessingTime) -> DataFrame:
    frame = lowering.lower(node.input)
    return map_in_arrow(frame, ProcessingTimeTask(node.column), frame.schema)


@lowers(n.WindowTable)
def _window_table(lowering: Lowering, node: n.WindowTable) -> DataFrame:
    """Windows are those of the local clock, in whose time TIMESTAMP values are."""
    frame = lowering.lower(node.input)
    spec, time = node.spec, quote_name(node.time)
    window = node.window
    assert window is not None
    local = f"CAST({time} AS TIMESTAMP_NTZ)" if window.local else time
    hidden = [quote_name(c) for c in HIDDEN if c in frame.columns]
    names = [*map(quote_name, node.input.names), *hidden]
    if spec.function == "SESSION":
        bounds = [local, f"{local} + {millis_sql(spec.size)}"]
        # A row without a time belongs to no window. The window functions of Spark, below, drop such rows themselves.
        frame = frame.where(f"{time} IS NOT NULL")
    elif node.paned:
        frame, bounds = _panes(frame.withColumn("__hw_local", F.expr(local)), spec)
    elif spec.function == "CUMULATE":
        frame = _cumulate(frame.withColumn("__hw_local", F.expr(local)), spec)
        bounds = [f"{_WINDOW}.start", "__hw_end"]
    else:
        frame = _hop(frame.withColumn("__hw_local", F.expr(local)), spec)
        bounds = [f"{_WINDOW}.start", f"{_WINDOW}.start + {millis_sql(spec.size)}"]
    last = f"{bounds[1]} - {millis_sql(1)}"
    moment = time if spec.function == "SESSION" else instant_sql(last) if window.local else last
    added = zip([*bounds, moment], node.added, strict=True)
    kinds = ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ", "TIMESTAMP" if window.local else "TIMESTAMP_NTZ")
    items = [f"CAST({sql} AS {kind}) AS {quote_name(c.name)}" for (sql, c), kind in zip(added, kinds, strict=True)]
    return frame.selectExpr(*names, *items)


def _hop(frame: DataFrame, spec: n.WindowSpec) -> DataFrame:
    """Windows of TUMBLE and HOP. Spark has none with gaps between them: the rows in the gaps are left out here."""
    slide = spec.slide if spec.function == "HOP" else spec.size
    sizes = [f"{millis} milliseconds" for millis in (max(spec.size, slide), slide, spec.offset)]
    frame = frame.withColumn(_WINDOW, F.window("__hw_local", *sizes))
    return frame.where(f"__hw_local < {_WINDOW}.start + {millis_sql(spec.size)}") if slide > spec.size else frame


def _panes(frame: DataFrame, spec: n.WindowSpec) -> tuple[DataFrame, list[str]]:
    """Rows with their pane: its start, and the end of the last window that it is in."""
    offset = f"{spec.offset} milliseconds"
    frame = frame.withColumn(_WINDOW, F.window("__hw_local", f"{spec.slide} milliseconds", None, offset))
    if spec.function == "HOP":
        return frame, [f"{_WINDOW}.start", f"{_WINDOW}.start + {millis_sql(spec.size)}"]
    longest = frame.withColumn("__hw_longest", F.window("__hw_local", f"{spec.size} milliseconds", None, offset))
    return longest, [f"{_WINDOW}.start", f"__hw_longest.start + {millis_sql(spec.size)}"]


def _cumulate(frame: DataFrame, spec: n.WindowSpec) -> DataFrame:
    """Windows that start together and grow by a step, from the first one that a row is in."""
    frame = frame.withColumn(
        _WINDOW, F.window("__hw_local", f"{spec.size} milliseconds", None, f"{spec.offset} milliseconds")
    )
    # All windows of the grid, then only those that end behind the row: Spark has no CUMULATE.
    steps = f"explode(sequence(1, {spec.size // spec.slide})) AS __hw_step"
    end = f"{_WINDOW}.start + {millis_sql(spec.slide)} * __hw_step"
    return frame.selectExpr("*", steps).withColumn("__hw_end", F.expr(end)).where("__hw_end > __hw_local")


def millis_sql(millis: int) -> str:
    """An interval."""
    return f"INTERVAL '{millis // 1000}.{millis % 1000:03}' SECOND"


def instant_sql(local: str) -> str:
    """The instant at which the local clock shows a time: of two, the later one, because a window that is open in one of
    them must not be over by the other. Three hours on, the clock has been set back already."""
    later = f"(CAST({local} + INTERVAL '3' HOUR AS TIMESTAMP) - INTERVAL '3' HOUR)"
    plain = f"CAST({local} AS TIMESTAMP)"
    return f"IF(CAST({later} AS TIMESTAMP_NTZ) = {local}, greatest({later}, {plain}), {plain})"
