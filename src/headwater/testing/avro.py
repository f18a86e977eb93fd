"""Avro's binary encoding of one record, for the lines of case files.

Written apart from `formats.avro`, which asks Spark to do it, so that each checks the other. Values are JSON: numbers
for dates and timestamps as Avro stores them, text for decimals, base64 for bytes.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from io import BytesIO
from typing import Any

from headwater.formats.base import FormatField
from headwater.sql.types import SqlType

__all__ = ["decode_record", "encode_record"]

_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"})


def encode_record(fields: Sequence[FormatField], value: dict[str, Any]) -> bytes:
    """The record; a field that is not in `value` is null, one that the table does not have is an error."""
    unknown = set(value) - {field.name for field in fields}
    if unknown:
        raise ValueError(f"The message has no field '{min(unknown)}', only {', '.join(f.name for f in fields)}.")
    out = BytesIO()
    for field in fields:
        _write(out, field.type, value.get(field.name))
    return out.getvalue()


def decode_record(fields: Sequence[FormatField], data: bytes) -> dict[str, Any]:
    """Raises ValueError if these bytes are not exactly one such record."""
    source = BytesIO(data)
    try:
        value = {field.name: _read(source, field.type) for field in fields}
    except (EOFError, struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"not an Avro record of ({', '.join(f.name for f in fields)}): {error}") from None
    if source.read(1):
        raise ValueError("bytes are left behind the Avro record")
    return value


def _write(out: BytesIO, kind: SqlType, value: Any) -> None:
    if kind.nullable:
        _write_long(out, 0 if value is None else 1)
        if value is None:
            return
    elif value is None:
        raise ValueError(f"A value of type {kind} is null.")
    _write_value(out, kind, value)


def _write_value(out: BytesIO, kind: SqlType, value: Any) -> None:
    if kind.is_string:
        _write_bytes(out, value.encode())
    elif kind.is_binary:
        _write_bytes(out, base64.b64decode(value))
    elif kind.name in _INTEGERS:
        _write_long(out, value)
    elif kind.name == "BOOLEAN":
        out.write(b"\1" if value else b"\0")
    elif kind.name in {"FLOAT", "DOUBLE"}:
        out.write(struct.pack("<f" if kind.name == "FLOAT" else "<d", value))
    elif kind.name == "DECIMAL":
        _write_decimal(out, kind, Decimal(str(value)))
    elif kind.name == "ROW":
        for field in kind.fields:
            _write(out, field.type, value.get(field.name))
    elif kind.name == "ARRAY":
        _write_items(out, value, lambda item: _write(out, _inner(kind), item))
    elif kind.name in {"MAP", "MULTISET"}:
        _write_items(out, list(value.items()), lambda item: _write_entry(out, kind, item))
    else:
        raise ValueError(f"There is no Avro for {kind}.")


def _write_items(out: BytesIO, items: Sequence[Any], write: Callable[[Any], None]) -> None:
    if items:
        _write_long(out, len(items))
        for item in items:
            write(item)
    _write_long(out, 0)


def _write_entry(out: BytesIO, kind: SqlType, entry: tuple[str, Any]) -> None:
    _write_bytes(out, entry[0].encode())
    _write(out, _inner(kind), entry[1])


def _write_long(out: BytesIO, value: int) -> None:
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:
        out.write(bytes([rest & 0x7F | 0x80]))
        rest >>= 7
    out.write(bytes([rest]))


def _write_bytes(out: BytesIO, data: bytes) -> None:
    _write_long(out, len(data))
    out.write(data)


def _write_decimal(out: BytesIO, kind: SqlType, value: Decimal) -> None:
    with localcontext() as context:
        context.prec = 80
        unscaled = int(value.scaleb(kind.scale or 0))
    _write_bytes(out, unscaled.to_bytes((unscaled.bit_length() // 8) + 1, "big", signed=True))


def _read(source: BytesIO, kind: SqlType) -> Any:
    if kind.nullable:
        branch = _read_long(source)
        if branch not in {0, 1}:
            raise EOFError(f"a union has no branch {branch}")
        if branch == 0:
            return None
    return _read_value(source, kind)


def _read_value(source: BytesIO, kind: SqlType) -> Any:
    if kind.is_string:
        return _read_bytes(source).decode()
    if kind.is_binary:
        return base64.b64encode(_read_bytes(source)).decode()
    if kind.name in _INTEGERS:
        return _read_long(source)
    if kind.name == "BOOLEAN":
        return source.read(1) == b"\1"
    if kind.name == "FLOAT":
        return struct.unpack("<f", source.read(4))[0]
    if kind.name == "DOUBLE":
        return struct.unpack("<d", source.read(8))[0]
    if kind.name == "DECIMAL":
        unscaled = int.from_bytes(_read_bytes(source), "big", signed=True)
        return f"{Decimal(unscaled).scaleb(-(kind.scale or 0)):f}"
    if kind.name == "ROW":
        return {field.name: _read(source, field.type) for field in kind.fields}
    if kind.name == "ARRAY":
        return _read_items(source, lambda: _read(source, _inner(kind)))
    if kind.name in {"MAP", "MULTISET"}:
        return dict(_read_items(source, lambda: (_read_bytes(source).decode(), _read(source, _inner(kind)))))
    raise ValueError(f"There is no Avro for {kind}.")


def _read_items(source: BytesIO, read: Callable[[], Any]) -> list[Any]:
    items: list[Any] = []
    while (count := _read_long(source)) != 0:
        if count < 0:  # a block may announce its size in bytes
            _read_long(source)
        items += [read() for _ in range(abs(count))]
    return items


def _read_long(source: BytesIO) -> int:
    value, shift = 0, 0
    while True:
        byte = source.read(1)
        if not byte:
            raise EOFError("it ends too early")
        value |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            return (value >> 1) ^ -(value & 1)


def _read_bytes(source: BytesIO) -> bytes:
    length = _read_long(source)
    data = source.read(max(0, length))
    if len(data) != length:
        raise EOFError("it ends too early")
    return data


def _inner(kind: SqlType) -> SqlType:
    if kind.name == "MULTISET":
        return SqlType("INT", nullable=False)
    assert kind.element is not None, kind
    return kind.element
