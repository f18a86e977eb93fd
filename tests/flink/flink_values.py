"""Values of either engine as the same text. Flink's Python runs this file too: standard library only."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

__all__ = ["shown"]


def shown(value: Any) -> str:
    """As in tests/unit/sql/test_functions_rows.txt. A ROW is a tuple here, a MAP or MULTISET a dict, and an instant has
    a time zone."""
    match value:
        case None | bool():
            return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
        case str():
            return _text(value)
        case Decimal():
            return format(value, "f")
        case bytes() | bytearray():
            return f"X'{bytes(value).hex().upper()}'"
        case dt.datetime():
            return _timestamp(value)
        case dt.time():
            return _without_zeros(value.isoformat(timespec="microseconds"))
        case list():
            return "[" + ", ".join(map(shown, value)) + "]"
        case tuple():
            return "(" + ", ".join(map(shown, value)) + ")"
        case dict():
            return "{" + ", ".join(sorted(f"{shown(k)}={shown(v)}" for k, v in value.items())) + "}"
    return str(value)


def _text(value: str) -> str:
    escaped = value.encode("unicode_escape").decode().replace("'", "''")
    return f"'{escaped}'" if value.isascii() else repr(value)


def _timestamp(value: dt.datetime) -> str:
    zone = "" if value.tzinfo is None else "Z"
    if value.tzinfo is not None:
        value = value.astimezone(dt.timezone.utc).replace(tzinfo=None)
    return _without_zeros(value.isoformat(sep=" ", timespec="microseconds")) + zone


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".")
