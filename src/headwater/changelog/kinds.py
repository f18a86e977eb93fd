"""The four kinds of change, with the numbers and short names Flink gives them.

A stream of changes carries its kind in the column `KIND`. A stream of inserts has no such column.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["DELETE", "HASH", "INSERT", "KIND", "KIND_TYPE", "SHORT_NAMES", "UPDATE_AFTER", "UPDATE_BEFORE"]

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3
SHORT_NAMES = ("+I", "-U", "+U", "-D")

KIND = "__kind"
KIND_TYPE = pa.int8()
HASH = "__h"
"""A 64-bit hash of a row's key, made once by the JVM. It finds candidates; equality of keys decides."""
