"""Keys and values of messages as text, and back: as they are, or as the format of a table says."""

from __future__ import annotations

import json
import struct
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from headwater.errors import ValidationError

if TYPE_CHECKING:
    from headwater.cli.kafka import Target
    from headwater.connectors.kafka.table.layout import PayloadLayout

__all__ = ["TOMBSTONE", "NamedFormats", "Payloads", "payloads_of"]

TOMBSTONE = "<tombstone>"
_CONTROL = {9: "\\t", 10: "\\n", 13: "\\r"}
_RAW = {"TINYINT": "b", "SMALLINT": "h", "INT": "i", "BIGINT": "q", "FLOAT": "f", "DOUBLE": "d"}


@dataclass(frozen=True)
class Payloads:
    """How both sides of a topic's messages are shown and read."""

    key: PayloadLayout | None = None
    value: PayloadLayout | None = None

    def key_text(self, data: bytes | None) -> str:
        return "NULL" if data is None else _text(data, self.key)

    def value_text(self, data: bytes | None) -> str:
        return TOMBSTONE if data is None else _text(data, self.value)

    def key_bytes(self, text: str | None) -> bytes | None:
        return None if text is None else _bytes(text, self.key)

    def value_bytes(self, text: str) -> bytes:
        return _bytes(text, self.value)


@dataclass(frozen=True)
class NamedFormats:
    """What stands for a table where there is none: the formats of key and value, and the address of their registry."""

    key: str = ""
    value: str = ""
    registry: str = ""


def payloads_of(target: Target, named: NamedFormats | None = None) -> Payloads:
    from headwater.connectors.kafka.table.layout import message_layout

    named = named if named is not None else NamedFormats()
    if target.table is None:
        value = named.value or ("avro-confluent" if named.registry and not named.key else "")
        return Payloads(_named(target.topic, "key", named.key, named), _named(target.topic, "value", value, named))
    if named != NamedFormats():
        raise ValidationError("The table defines its formats: leave out --format, --key-format and --registry.")
    layout = message_layout(target.table)
    return Payloads(layout.key, layout.value)


def _named(topic: str, side: Literal["key", "value"], identifier: str, named: NamedFormats) -> PayloadLayout | None:
    from headwater.connectors.kafka.table.layout import PayloadLayout
    from headwater.formats.base import RegisteredFormat, SchemaLocation, all_formats
    from headwater.options.closest import did_you_mean
    from headwater.options.parsing import parse_options

    if not identifier:
        return None
    found = all_formats().get(identifier)
    if found is None:
        raise ValidationError(f"There is no format '{identifier}'.", hint=did_you_mean(identifier, all_formats()))
    if identifier == "avro":
        raise ValidationError("Messages of 'avro' have no schema with them.", hint="Give a table's: --ddl SCRIPT.")
    if not isinstance(found, RegisteredFormat):
        return None  # text, which is shown as it is
    if not named.registry:
        raise ValidationError(f"Messages of '{identifier}' are shown with --registry URL.")
    options = found.located(
        parse_options(found.options, {"url": named.registry}, identifier).values, {}, SchemaLocation((topic,), side)
    )
    problems = found.validate((), options)
    if problems:
        raise ValidationError("--registry is not valid.", detail=" ".join(problems))
    return PayloadLayout(found, options, (), ())


def _text(data: bytes, side: PayloadLayout | None) -> str:
    """What is not what the table says is shown as it is."""
    decode = _DECODERS.get(side.format.identifier) if side is not None else None
    if decode is not None and side is not None:
        try:
            return decode(data, side)
        except (ValueError, struct.error):
            pass
    try:
        text = data.decode().translate(_CONTROL)
    except UnicodeDecodeError:
        return f"x'{data.hex()}'"
    # Control characters could move the cursor or change colours of the terminal.
    return text if not any(unicodedata.category(c) == "Cc" for c in text) else f"x'{data.hex()}'"


def _bytes(text: str, side: PayloadLayout | None) -> bytes:
    encode = _ENCODERS.get(side.format.identifier) if side is not None else None
    if encode is None or side is None:
        return text.encode()
    try:
        return encode(text, side)
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise ValidationError(f"'{text}' is not a message of the table.", detail=str(error)) from None


def _avro(data: bytes, side: PayloadLayout) -> str:
    from headwater.testing.avro import decode_record

    return json.dumps(decode_record(side.fields, data), ensure_ascii=False, default=str)


def _to_avro(text: str, side: PayloadLayout) -> bytes:
    from headwater.testing.avro import encode_record

    return encode_record(side.fields, json.loads(text))


def _registered(data: bytes, side: PayloadLayout) -> str:
    from headwater.formats.confluent.format import RegisteredAvro

    assert isinstance(side.format, RegisteredAvro)
    return json.dumps(side.format.decoded(data, side.options), ensure_ascii=False)


def _to_registered(text: str, side: PayloadLayout) -> bytes:
    from headwater.formats.confluent.format import RegisteredAvro

    assert isinstance(side.format, RegisteredAvro)
    return side.format.encoded(side.fields, side.options, json.loads(text))


def _raw(data: bytes, side: PayloadLayout) -> str:
    """A number is in the byte order that the table says."""
    code = _RAW.get(side.fields[0].type.name)
    if code is None:
        raise ValueError("text")
    return str(struct.unpack(f"{_order(side)}{code}", data)[0])


def _to_raw(text: str, side: PayloadLayout) -> bytes:
    kind = side.fields[0].type.name
    code = _RAW.get(kind)
    if code is None:
        return text.encode()
    return struct.pack(f"{_order(side)}{code}", float(text) if kind in ("FLOAT", "DOUBLE") else int(text))


def _order(side: PayloadLayout) -> str:
    little = "little" in str(side.options.get("endianness", "big-endian"))
    return "<" if little else ">"


_DECODERS: Mapping[str, Callable[[bytes, Any], str]] = {
    "avro": _avro,
    "raw": _raw,
    "avro-confluent": _registered,
    "debezium-avro-confluent": _registered,
}
_ENCODERS: Mapping[str, Callable[[str, Any], bytes]] = {
    "avro": _to_avro,
    "raw": _to_raw,
    "avro-confluent": _to_registered,
    "debezium-avro-confluent": _to_registered,
}
