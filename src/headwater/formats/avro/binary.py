"""The pieces of Avro's binary encoding, one value at a time: zigzag varints, bytes with their length, blocks of items.

For messages that a person looks at or types, and for case files. Jobs read whole columns (`buffer`) or ask Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

__all__ = ["read_bytes", "read_exactly", "read_items", "read_long", "write_bytes", "write_items", "write_long"]


def read_long(source: BytesIO) -> int:
    """A zigzag varint."""
    value, shift = 0, 0
    while True:
        byte = read_exactly(source, 1)[0]
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)


def read_bytes(source: BytesIO) -> bytes:
    return read_exactly(source, read_long(source))


def read_exactly(source: BytesIO, length: int) -> bytes:
    data = source.read(max(0, length))
    if len(data) != length:
        raise ValueError("it ends too early")
    return data


def read_items(source: BytesIO, read: Callable[[], Any]) -> list[Any]:
    """Of an array or a map: blocks, each with the number of its items, up to an empty one."""
    items: list[Any] = []
    while (count := read_long(source)) != 0:
        if count < 0:  # a block may announce its size in bytes
            read_long(source)
        items += [read() for _ in range(abs(count))]
    return items


def write_long(out: BytesIO, value: int) -> None:
    # Zigzag: small negative numbers become small positive ones, and so few bytes.
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:
        out.write(bytes([rest & 0x7F | 0x80]))
        rest >>= 7
    out.write(bytes([rest]))


def write_bytes(out: BytesIO, data: bytes) -> None:
    write_long(out, len(data))
    out.write(data)


def write_items(out: BytesIO, items: Sequence[Any], write: Callable[[Any], None]) -> None:
    if items:
        write_long(out, len(items))
        for item in items:
            write(item)
    write_long(out, 0)
