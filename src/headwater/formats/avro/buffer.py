"""Avro's plain values, read at many places of one buffer at once, with numpy. Knows nothing of schemas.

Every function takes the places and gives the values and the places behind them. Reading may run over the end of a
message, but never far: whoever asks must look at the places before asking for more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["Buffer", "FallbackError", "Numbers"]

Numbers = np.ndarray[Any, Any]

# More than the branch of a union and the longest number take: reading may run over the end by that much.
_PADDING = 24
_LONGEST = 10  # bytes of a number


class FallbackError(Exception):
    """A message that has to be left to the fallback: invalid, or encoded in a rare way."""


class Buffer:
    """The bytes from `begin` to `end`; places are counted from `begin`."""

    def __init__(self, data: pa.Buffer | None, begin: int, end: int) -> None:
        self._size = end - begin
        self._bytes = np.zeros(self._size + _PADDING, np.uint8)
        if data is not None:
            self._bytes[: self._size] = np.frombuffer(data, np.uint8)[begin:end]
        # Eight bytes from each place on, as one number: the first byte is the lowest.
        # Overlapping windows over one buffer, without a copy: a varint of up to eight bytes is read with one load.
        self._words: Numbers = np.ndarray((len(self._bytes) - 7,), "<u8", self._bytes, strides=(1,))

    def bytes_at(self, at: Numbers) -> Numbers:
        return self._bytes[at]

    def booleans(self, at: Numbers) -> tuple[Numbers, Numbers]:
        values = self._bytes[at]
        if np.any(values > 1):
            raise FallbackError
        return values == 1, at + 1

    def ints(self, at: Numbers) -> tuple[Numbers, Numbers]:
        values, behind = self.longs(at)
        if np.any(behind - at > 5) or np.any(values != values.astype(np.int32)):
            raise FallbackError
        return values.astype(np.int32), behind

    def longs(self, at: Numbers) -> tuple[Numbers, Numbers]:
        """Zigzag varints."""
        words = self._words[at]
        last = ~words & np.uint64(0x8080808080808080)
        last &= ~last + np.uint64(1)  # the lowest bit that is set: that of the last byte
        length = _exponents(last) // 8 + 1
        words &= (last - np.uint64(1)) | last
        values = _without_continuation_bits(words)
        longer = np.flatnonzero(last == 0)
        if len(longer):
            values[longer], length[longer] = self._long_numbers(at[longer])
        return (values >> np.uint64(1)).astype(np.int64) ^ -(values & np.uint64(1)).astype(np.int64), at + length

    def floats(self, at: Numbers) -> tuple[Numbers, Numbers]:
        return self._words[at].astype(np.uint32).view(np.float32), at + 4

    def doubles(self, at: Numbers) -> tuple[Numbers, Numbers]:
        return self._words[at].astype(np.uint64).view(np.float64), at + 8

    def strings(self, at: Numbers) -> tuple[Numbers, Numbers]:
        """Where strings, which follow their lengths, begin and end."""
        lengths, start = self.longs(at)
        if np.any(lengths < 0) or np.any(lengths > self._size - start):
            raise FallbackError
        return start, start + lengths

    def slices(self, start: Numbers, end: Numbers) -> pa.Array:
        """Bytes from each `start` to the `end` with it. They and what is between them are one Arrow array."""
        # Arrow's offsets have no gaps: what lies between two values becomes an element of its own, and is left out
        # below.
        edges = np.column_stack((start, end)).astype(np.int32).ravel()
        all_of_it = pa.BinaryArray.from_buffers(
            pa.binary(), max(0, len(edges) - 1), [None, pa.py_buffer(edges), pa.py_buffer(self._bytes)]
        )
        return all_of_it.take(pa.array(np.arange(0, len(edges), 2)))

    def decimals(self, start: Numbers, end: Numbers, kind: pa.DataType) -> pa.Array:
        """Whole numbers of up to 16 bytes, the highest first, as Arrow has them: 16 bytes, the lowest first."""
        length = (end - start)[:, None]
        if np.any((length < 1) | (length > 16)):
            raise FallbackError
        given = np.arange(16) < length
        places = np.where(given, end[:, None] - 1 - np.arange(16), 0)
        # Shorter numbers are filled up with their sign, as two's complement has it.
        sign = np.where(self._bytes[start] < 0x80, 0, 0xFF).astype(np.uint8)[:, None]
        numbers = np.where(given, self._bytes[places], sign)
        column = pa.Array.from_buffers(kind, len(start), [None, pa.py_buffer(np.ascontiguousarray(numbers))])
        column.validate(full=True)  # not more digits than the type has
        return column

    def _long_numbers(self, at: Numbers) -> tuple[Numbers, Numbers]:
        """Those of nine or ten bytes."""
        values, length = _without_continuation_bits(self._words[at]), np.full(len(at), 8)
        more = np.full(len(at), True)
        for place in range(8, _LONGEST):
            byte = self._bytes[at + place]
            values |= np.where(more, byte & 0x7F, 0).astype(np.uint64) << np.uint64(7 * place)
            length += more
            if place == _LONGEST - 1 and np.any(more & (byte > 1)):  # more than 64 bits
                raise FallbackError
            more &= byte >= 0x80
        return values, length


def _without_continuation_bits(words: Numbers) -> Numbers:
    """The seven payload bits of each of the eight bytes of a varint, next to each other."""
    words = words & np.uint64(0x7F7F7F7F7F7F7F7F)
    words = (words & np.uint64(0x007F007F007F007F)) | ((words & np.uint64(0x7F007F007F007F00)) >> np.uint64(1))
    words = (words & np.uint64(0x00003FFF00003FFF)) | ((words & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
    joined: Numbers = (words & np.uint64(0x000000000FFFFFFF)) | (
        (words & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4)
    )
    return joined


def _exponents(powers: Numbers) -> Numbers:
    """Of powers of two; 0 for none."""
    found: Numbers = np.maximum((powers.astype(np.float64).view(np.int64) >> 52) - 1023, 0)
    return found
