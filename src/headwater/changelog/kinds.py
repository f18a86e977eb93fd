"""The four kinds of change, with the numbers and short names Flink gives them.

A stream of changes carries its kind in the column `KIND`. A stream of inserts has no such column.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.state.columns import HASH

__all__ = [
    "ADDED",
    "DELETE",
    "HASH",
    "INSERT",
    "KIND",
    "KIND_TYPE",
    "RETRACTED",
    "SHORT_NAMES",
    "UPDATE_AFTER",
    "UPDATE_BEFORE",
]

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3
SHORT_NAMES = ("+I", "-U", "+U", "-D")

KIND = "__hw_kind"
ADDED = f"{KIND} IN ({INSERT}, {UPDATE_AFTER})"
RETRACTED = f"{KIND} IN ({UPDATE_BEFORE}, {DELETE})"
"""SQL: whether a change adds a row (+I, +U), or retracts one (-U, -D)."""

KIND_TYPE = pa.int8()
