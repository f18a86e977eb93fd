"""Avro's binary encoding of one record, for the lines of case files.

Written apart from `formats.avro`, which asks Spark to do it, so that each checks the other. Values are JSON: numbers
for dates and timestamps as Avro stores them, text for decimals, base64 for bytes.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from decimal import Decimal, localcontext
from io import BytesIO
from typing import Any

from headwater.formats.avro.binary import read_bytes, read_items, read_long, write_bytes, write_items, write_long
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
    except (ValueError, struct.error) as error:
        raise ValueError(f"not an Avro record of ({', '.join(f.name for f in fields)}): {error}") from None
    if source.read(1):
        raise ValueError("bytes are left behind the Avro record")
    return value


def _write(out: BytesIO, kind: SqlType, value: Any) -> None:
    if kind.nullable:
        write_long(out, 0 if value is None else 1)
        if value is None:
            return
    elif value is None:
        raise ValueError(f"A value of type {kind} is null.")
    _write_value(out, kind, value)


def _write_value(out: BytesIO, kind: SqlType, value: Any) -> None:
    if kind.is_string:
        write_bytes(out, value.encode())
    elif kind.is_binary:
        write_bytes(out, base64.b64decode(value))
    elif kind.name in _INTEGERS:
        write_long(out, value)
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
        write_items(out, value, lambda item: _write(out, _inner(kind), item))
    elif kind.name in {"MAP", "MULTISET"}:
        write_items(out, list(value.items()), lambda item: _write_entry(out, kind, item))
    else:
        raise ValueError(f"There is no Avro for {kind}.")


def _write_entry(out: BytesIO, kind: SqlType, entry: tuple[str, Any]) -> None:
    write_bytes(out, entry[0].encode())
    _write(out, _inner(kind), entry[1])


def _write_decimal(out: BytesIO, kind: SqlType, value: Decimal) -> None:
    with localcontext() as context:
        context.prec = 80
        unscaled = int(value.scaleb(kind.scale or 0))
    write_bytes(out, unscaled.to_bytes((unscaled.bit_length() // 8) + 1, "big", signed=True))


def _read(source: BytesIO, kind: SqlType) -> Any:
    if kind.nullable:
        branch = read_long(source)
        if branch not in {0, 1}:
            raise ValueError(f"a union has no branch {branch}")
        if branch == 0:
            return None
    return _read_value(source, kind)


def _read_value(source: BytesIO, kind: SqlType) -> Any:
    if kind.is_string:
        return read_bytes(source).decode()
    if kind.is_binary:
        return base64.b64encode(read_bytes(source)).decode()
    if kind.name in _INTEGERS:
        return read_long(source)
    if kind.name == "BOOLEAN":
        return source.read(1) == b"\1"
    if kind.name == "FLOAT":
        return struct.unpack("<f", source.read(4))[0]
    if kind.name == "DOUBLE":
        return struct.unpack("<d", source.read(8))[0]
    if kind.name == "DECIMAL":
        unscaled = int.from_bytes(read_bytes(source), "big", signed=True)
        return f"{Decimal(unscaled).scaleb(-(kind.scale or 0)):f}"
    if kind.name == "ROW":
        return {field.name: _read(source, field.type) for field in kind.fields}
    if kind.name == "ARRAY":
        return read_items(source, lambda: _read(source, _inner(kind)))
    if kind.name in {"MAP", "MULTISET"}:
        return dict(read_items(source, lambda: (read_bytes(source).decode(), _read(source, _inner(kind)))))
    raise ValueError(f"There is no Avro for {kind}.")


def _inner(kind: SqlType) -> SqlType:
    if kind.name == "MULTISET":
        return SqlType("INT", nullable=False)
    assert kind.element is not None, kind
    return kind.element
