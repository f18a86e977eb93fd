"""One Avro value of a registered schema as JSON, and back: for messages that a person looks at or types.

Jobs read and write with Spark and with column readers; this is slow and needs neither. Values are as in
`testing/avro.py`: numbers for dates and timestamps as Avro stores them, text for decimals, base64 for bytes. The
branch of a union is not named: it is the first one that the value fits.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation, localcontext
from io import BytesIO
from typing import Any

from headwater.formats.avro.binary import (
    read_bytes,
    read_exactly,
    read_items,
    read_long,
    write_bytes,
    write_items,
    write_long,
)
from headwater.formats.confluent.types import AvroType

__all__ = ["decode_value", "encode_value"]

_FLOATS = {"float": "<f", "double": "<d"}
_BITS = {"int": 32, "long": 64}
_DECIMAL_DIGITS = 80


def decode_value(kind: AvroType, data: bytes) -> Any:
    """Raises ValueError if these bytes are not exactly one such value."""
    source = BytesIO(data)
    try:
        value = _read(source, kind)
    except (struct.error, IndexError, RecursionError) as error:
        raise ValueError(f"not a value of {kind}: {error}") from None
    if source.read(1):
        raise ValueError(f"bytes are left behind the value of {kind}")
    return value


def encode_value(kind: AvroType, value: Any) -> bytes:
    """Raises ValueError if the value is not one of this type."""
    out = BytesIO()
    _write(out, kind, value)
    return out.getvalue()


def _read(source: BytesIO, kind: AvroType) -> Any:
    match kind.kind:
        case "null":
            return None
        case "union":
            return _read(source, kind.inner[_index(source, len(kind.inner))])
        case "record":
            return {field.name: _read(source, field.type) for field in kind.fields}
        case "array":
            return read_items(source, lambda: _read(source, kind.inner[0]))
        case "map":
            return dict(read_items(source, lambda: (read_bytes(source).decode(), _read(source, kind.inner[0]))))
        case "enum":
            return kind.symbols[_index(source, len(kind.symbols))]
        case "int" | "long":
            return read_long(source)
        case "float" | "double":
            code = _FLOATS[kind.kind]
            return struct.unpack(code, read_exactly(source, struct.calcsize(code)))[0]
        case "boolean":
            return read_exactly(source, 1) == b"\1"
        case "string":
            return read_bytes(source).decode()
    return _from_bytes(kind, read_exactly(source, kind.size) if kind.kind == "fixed" else read_bytes(source))


def _from_bytes(kind: AvroType, data: bytes) -> str:
    if kind.meaning != "decimal":
        return base64.b64encode(data).decode()
    with localcontext() as context:
        context.prec = _DECIMAL_DIGITS
        return f"{Decimal(int.from_bytes(data, 'big', signed=True)).scaleb(-kind.scale):f}"


def _index(source: BytesIO, number: int) -> int:
    found = read_long(source)
    if not 0 <= found < number:
        raise ValueError(f"there is no branch or symbol {found}")
    return found


def _write(out: BytesIO, kind: AvroType, value: Any) -> None:
    match kind.kind:
        case "null":
            _check(kind, value, fits=value is None)
        case "union":
            _write_union(out, kind, value)
        case "record":
            _write_record(out, kind, value)
        case "array":
            _check(kind, value, fits=isinstance(value, list))
            write_items(out, value, lambda item: _write(out, kind.inner[0], item))
        case "map":
            _check(kind, value, fits=isinstance(value, Mapping))
            write_items(out, list(value.items()), lambda item: _write_entry(out, kind, item))
        case "enum":
            _check(kind, value, fits=value in kind.symbols)
            write_long(out, kind.symbols.index(value))
        case "int" | "long":
            low = -(1 << (_BITS[kind.kind] - 1))
            # Not isinstance: a Python bool is an int, and true would be written as 1.
            _check(kind, value, fits=type(value) is int and low <= value < -low)
            write_long(out, value)
        case "float" | "double":
            _check(kind, value, fits=isinstance(value, int | float) and not isinstance(value, bool))
            out.write(struct.pack(_FLOATS[kind.kind], value))
        case "boolean":
            _check(kind, value, fits=isinstance(value, bool))
            out.write(b"\1" if value else b"\0")
        case _:
            _write_bytes(out, kind, value)


def _write_record(out: BytesIO, kind: AvroType, value: Any) -> None:
    """A field that is not in the value is null."""
    _check(kind, value, fits=isinstance(value, Mapping))
    unknown = set(value) - {field.name for field in kind.fields}
    if unknown:
        fields = ", ".join(f.name for f in kind.fields)
        raise ValueError(f"The message has no field '{min(unknown)}', only {fields}.")
    for field in kind.fields:
        _write(out, field.type, value.get(field.name))


def _write_union(out: BytesIO, kind: AvroType, value: Any) -> None:
    problems = []
    for number, branch in enumerate(kind.inner):
        try:
            data = encode_value(branch, value)
        except ValueError as problem:
            problems.append(str(problem))
            continue
        write_long(out, number)
        out.write(data)
        return
    raise ValueError(problems[-1] if problems else f"There is not a value of {kind}.")


def _write_entry(out: BytesIO, kind: AvroType, entry: tuple[str, Any]) -> None:
    write_bytes(out, entry[0].encode())
    _write(out, kind.inner[0], entry[1])


def _write_bytes(out: BytesIO, kind: AvroType, value: Any) -> None:
    """Of strings, bytes and fixed values."""
    if kind.kind == "string":
        _check(kind, value, fits=isinstance(value, str))
        return write_bytes(out, value.encode())
    data = _decimal_bytes(kind, value) if kind.meaning == "decimal" else _base64(kind, value)
    if kind.kind == "bytes":
        return write_bytes(out, data)
    _check(kind, value, fits=len(data) == kind.size)
    out.write(data)
    return None


def _decimal_bytes(kind: AvroType, value: Any) -> bytes:
    with localcontext() as context:
        context.prec = _DECIMAL_DIGITS
        try:
            scaled = Decimal(str(value)).scaleb(kind.scale)
        except InvalidOperation:
            scaled = Decimal("NaN")
        _check(kind, value, fits=scaled.is_finite() and scaled == scaled.to_integral_value())
        unscaled = int(scaled)
    _check(kind, value, fits=len(str(abs(unscaled))) <= kind.precision)
    # One more bit than the number has, for its sign.
    length = kind.size if kind.kind == "fixed" else unscaled.bit_length() // 8 + 1
    return unscaled.to_bytes(length, "big", signed=True)


def _base64(kind: AvroType, value: Any) -> bytes:
    _check(kind, value, fits=isinstance(value, str))
    return base64.b64decode(value, validate=True)


def _check(kind: AvroType, value: Any, *, fits: bool) -> None:
    if not fits:
        raise ValueError(f"{value!r} is not a value of {kind}.")
