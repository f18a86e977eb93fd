"""SQL text as Flink reads it: for SHOW CREATE TABLE, EXPLAIN, and scripts that are rewritten."""

from __future__ import annotations

__all__ = ["flink_name", "flink_string"]


def flink_name(identifier: str) -> str:
    return "`" + identifier.replace("`", "``") + "`"


def flink_string(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
