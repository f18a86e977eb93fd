"""Values of a table, as the expected rows of a case file write them."""

from __future__ import annotations

import base64
import datetime as dt
from typing import Any

__all__ = ["show_value"]


def show_value(value: Any) -> str:
    """null, true, 2024-01-01T00:00:00, [1, 2], {a=1}, (1, a), bytes as base64."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case bytes() | bytearray():
            return base64.b64encode(bytes(value)).decode()
        case dt.datetime():
            if value.tzinfo is None:
                return value.isoformat()
            # It comes in the session's time zone, and is shown as an instant.
            return f"{value.astimezone(dt.timezone.utc).replace(tzinfo=None).isoformat()}Z"
        case dict():
            return "{" + ", ".join(f"{show_value(k)}={show_value(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(show_value, value)) + "]"
        case tuple():
            return "(" + ", ".join(map(show_value, value)) + ")"
    return str(value)
