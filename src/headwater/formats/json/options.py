"""Options that `json` and all formats made of JSON share."""

from __future__ import annotations

from headwater.options.base import Option
from headwater.options.types import BOOL, STRING, enum

__all__ = ["READING", "WRITING"]

_STANDARDS = ("SQL", "ISO-8601")
_NULL_KEYS = ("FAIL", "DROP", "LITERAL")

READING = (
    Option(
        "ignore-parse-errors",
        BOOL,
        "Whether a field that cannot be parsed is NULL, and a message that is not valid JSON is skipped.",
        False,
    ),
    Option(
        "timestamp-format.standard",
        enum(_STANDARDS),
        "How timestamps are written: '2020-01-01 12:34:56.789' (SQL) or '2020-01-01T12:34:56.789' (ISO-8601). "
        "Both are read.",
        "SQL",
        choices=_STANDARDS,
    ),
)
WRITING = (
    Option(
        "map-null-key.mode",
        enum(_NULL_KEYS),
        "How a NULL key of a MAP is written. Spark's maps have none.",
        "FAIL",
        choices=_NULL_KEYS,
    ),
    Option("map-null-key.literal", STRING, "What LITERAL writes for a NULL key of a MAP.", "null"),
    Option(
        "encode.decimal-as-plain-number",
        BOOL,
        "Whether 100 is written as 100.00 (with the scale of its type) instead of 1E+2.",
        False,
    ),
    Option("encode.ignore-null-fields", BOOL, "Whether fields that are NULL are omitted when writing.", False),
)
