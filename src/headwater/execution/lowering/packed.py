"""Scans whose rows go from the reader to the next step in Python without becoming rows of the JVM."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StructType

from headwater.connectors.runtime import ScanPlan
from headwater.connectors.workers import map_in_arrow
from headwater.execution.lowering.base import Lowering
from headwater.execution.packed_rows import PACKED, PackedRead, PackedRows
from headwater.execution.worker import ReadTask
from headwater.plan import nodes as n

__all__ = ["packed_scan"]


def packed_scan(lowering: Lowering, scan: n.Scan, plan: ScanPlan) -> tuple[DataFrame, PackedRows] | None:
    """Rows of the scan with PLACE, and packed ones; and how they are unpacked. None where column readers do not read
    all columns as they are."""
    if plan.reader is None or plan.read is None:
        return None
    place = lowering.inputs.place_of(scan)
    schema = StructType([*plan.schema]).add(PACKED, BinaryType())
    rows = PackedRows.of(plan.read, to_arrow_schema(plan.schema))
    read = PackedRead(ReadTask(place, plan.reader), rows, plan.read.refused, to_arrow_schema(schema))
    frame = plan.read.decode(map_in_arrow(lowering.task_numbers(place), read, schema), [PACKED])
    lowering.noted(scan, plan)
    return frame, rows
