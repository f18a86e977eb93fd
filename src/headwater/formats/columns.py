"""What readers of whole columns share: messages as lines of one text, and values that Arrow and Spark read alike."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["as_text", "joined", "read_as", "typed"]

# Arrow's parser takes more shapes than Spark's CAST, and Spark's others than Arrow's: only what both read alike is left
# to Arrow. Lengths of 2024-01-31, and of 2024-01-31 23:59:59 with up to six digits of a fraction:
_DATE = (10, 10)
_TIMESTAMP = (19, 26)


def as_text(payloads: pa.Array) -> pa.Array | None:
    """The messages as text, or None if one is not UTF-8."""
    try:
        return payloads.cast(pa.large_string())
    except pa.ArrowInvalid:
        return None


def joined(strings: pa.Array) -> pa.Buffer:
    """All messages in one text, with line breaks between them."""
    # A single list of all messages: joining its elements is one call, and no message becomes a Python object.
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
        # Arrow's readers do not notice one digit too many.
        column.validate(full=True)
    if pa.types.is_date(kind):
        return _of_length(column, _DATE).cast(kind)
    if not pa.types.is_timestamp(kind):
        return column
    if kind.tz is None:
        return _of_length(column, _TIMESTAMP).cast(kind)
    if pc.all(pc.ends_with(column, "Z")).as_py() is False:
        raise pa.ArrowInvalid("An instant without its zone.")
    local = _of_length(pc.utf8_slice_codeunits(column, 0, -1), _TIMESTAMP)
    return local.cast(pa.timestamp("us")).cast(kind)


def _of_length(column: pa.Array, allowed: tuple[int, int]) -> pa.Array:
    """What Arrow casts to a date or to a timestamp without a zone has one of a few shapes, which differ in length: days
    alone, without minutes or seconds, or with more than six digits of a fraction are for the expressions. That takes
    a hundredth of the time of a regular expression."""
    found = pc.min_max(pc.binary_length(column)).as_py()
    if found["min"] is not None and not allowed[0] <= found["min"] <= found["max"] <= allowed[1]:
        raise pa.ArrowInvalid("A date or a timestamp of another shape.")
    return column
