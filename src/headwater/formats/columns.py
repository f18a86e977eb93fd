"""What readers of whole columns share: messages as lines of one text, and values that Arrow and Spark read alike."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["as_text", "joined", "read_as", "typed"]

_DATE = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIMESTAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"
_INSTANT = _TIMESTAMP.replace("$", "Z$")


def as_text(payloads: pa.Array) -> pa.Array | None:
    """The messages as text, or None if one is not UTF-8."""
    try:
        return payloads.cast(pa.large_string())
    except pa.ArrowInvalid:
        return None


def joined(strings: pa.Array) -> pa.Buffer:
    """All messages in one text, with line breaks between them."""
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(strings)], pa.int64()), strings)
    return pc.binary_join(whole, pa.scalar("\n", strings.type))[0].as_buffer()


def read_as(kind: pa.DataType) -> pa.DataType:
    """What Arrow's readers are asked for, for `typed` to finish."""
    return pa.string() if pa.types.is_timestamp(kind) or pa.types.is_date(kind) else kind


def typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Where Arrow reads more than Spark does, what is beyond is refused."""
    if pa.types.is_floating(kind) and pc.any(pc.invert(pc.is_finite(column))).as_py():
        raise pa.ArrowInvalid("A number that is none, or too large.")
    if pa.types.is_decimal(kind):
        column.validate(full=True)  # Arrow's readers take a digit too many for a small one
    if pa.types.is_date(kind):
        return _matching(column, _DATE).cast(kind)
    if not pa.types.is_timestamp(kind):
        return column
    if kind.tz is None:
        return _matching(column, _TIMESTAMP).cast(kind)
    local = pc.utf8_slice_codeunits(_matching(column, _INSTANT), 0, -1)
    return local.cast(pa.timestamp("us")).cast(kind)


def _matching(column: pa.Array, pattern: str) -> pa.Array:
    if pc.any(pc.invert(pc.match_substring_regex(column, pattern))).as_py():
        raise pa.ArrowInvalid("A date or a time stamp of another shape.")
    return column
