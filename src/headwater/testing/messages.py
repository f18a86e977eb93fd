"""A message as a line of text, and back: `[@partition=0] [@timestamp=…] [@header.name=text] key => value`.

A key or value is taken as it stands, with these exceptions:

    null             no key, or a tombstone
    hex:0A 0B        these bytes
    text:"a\\nb"      a JSON string: for line ends, spaces at the edges, the word null, the empty text
    avro{"a": 1}     JSON here, Avro in Kafka, by the columns of the table that owns the topic
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from headwater.testing.case import Avro, Message, Payload

__all__ = ["BadLine", "identity", "parse_message", "parse_payload", "render_message", "render_payload"]

ARROW = " => "
_ATTRIBUTE = re.compile(r"@(?P<name>[a-z]+)(?:\.(?P<header>[^=\s]+))?=(?P<value>\S*)\s+")
_PREFIXES = ("hex:", "text:", "avro{")


@dataclass
class BadLine(Exception):
    """What is wrong with a line, and where in it."""

    fact: str
    column: int
    length: int = 1
    hint: str = ""


def parse_message(text: str, line: int = 0) -> Message:
    partition, timestamp, headers, start = None, None, [], 0
    while (match := _ATTRIBUTE.match(text, start)) is not None:
        name, value = match["name"], match["value"]
        if name == "header" and match["header"]:
            headers.append((match["header"], _bytes(value, match.start("value"))))
        elif name in {"partition", "timestamp"} and not match["header"] and value.isdigit():
            partition, timestamp = (int(value), timestamp) if name == "partition" else (partition, int(value))
        else:
            hint = "Write @partition=0, @timestamp=1700000000000 (milliseconds) or @header.name=text."
            raise BadLine(f"'{match[0].strip()}' says nothing about a message.", start, len(match[0].rstrip()), hint)
        start = match.end()
    # With a blank behind it, so that 'key =>' has an arrow too and its missing value is reported as such.
    key, arrow, value = f"{text[start:]} ".partition(ARROW)
    if not arrow:
        raise BadLine("A message is 'key => value'.", start, len(text) - start, "A blank line ends the messages.")
    at = start + len(key) + len(ARROW)
    return Message(parse_payload(key, start), parse_payload(value, at), partition, timestamp, tuple(headers), line)


def parse_payload(text: str, column: int = 0) -> Payload:
    column += len(text) - len(text.lstrip()) if text.strip() else 0
    text = text.strip()
    if text == "null":
        return None
    if text.startswith("avro{"):
        return Avro(_json(text.removeprefix("avro"), column + len("avro")))
    return _bytes(text, column)


def _bytes(text: str, column: int) -> bytes:
    if text.startswith("hex:"):
        try:
            return bytes.fromhex(text.removeprefix("hex:"))
        except ValueError:
            raise BadLine("These are not pairs of hexadecimal digits.", column + 4, len(text) - 4) from None
    if text.startswith("text:"):
        value = _json(text.removeprefix("text:"), column + len("text:"))
        if not isinstance(value, str):
            raise BadLine("'text:' takes a JSON string.", column, len(text), 'Write text:"…".')
        return value.encode()
    if not text:
        raise BadLine("There is nothing here.", column, 1, 'Write null for none, or text:"" for an empty text.')
    return text.encode()


def _json(text: str, column: int) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadLine(f"This is not JSON: {error}.", column, len(text)) from None


def render_message(message: Message) -> str:
    """A line that `parse_message` reads as the same message."""
    parts = []
    if message.partition is not None:
        parts.append(f"@partition={message.partition}")
    if message.timestamp is not None:
        parts.append(f"@timestamp={message.timestamp}")
    parts += [f"@header.{name}={_header(value)}" for name, value in message.headers]
    return " ".join([*parts, f"{render_payload(message.key)} => {render_payload(message.value)}"])


def _header(value: bytes) -> str:
    shown = render_payload(value)
    return shown if " " not in shown else f"hex:{value.hex()}"


def identity(payload: Payload) -> str | bytes | None:
    """Equal for equal payloads: the order in which an Avro record's fields are written does not matter."""
    if isinstance(payload, Avro):
        return json.dumps(payload.value, sort_keys=True)
    return payload


def render_payload(payload: Payload) -> str:
    if payload is None:
        return "null"
    if isinstance(payload, Avro):
        return "avro" + _as_json(payload.value)
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return f"hex:{payload.hex()}"
    if _is_plain(text):
        return text
    return "text:" + _as_json(text)


def _as_json(value: object) -> str:
    """On one line, and without an arrow that would end a key."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # Control characters and line separators would break the line: escaped, they do not.
    if not text.isprintable():
        text = json.dumps(value, separators=(",", ":"))
    return text.replace("=>", "=\\u003e")


def _is_plain(text: str) -> bool:
    """Whether the text may stand for itself in a line."""
    taken = not text or text == "null" or text.startswith((*_PREFIXES, "@", "#"))
    return not taken and text.isprintable() and text == text.strip() and "=>" not in text
