"""A JSON message that holds several rows: the elements of its top-level array, each as the very text it has there.

A message is cut where Python's JSON scanner ends an element, and nothing is written again, so numbers keep all their
digits and objects their repeated members. What is no array, or not a valid one, stays as it is: whoever decodes it
finds it to be no object.
"""

from __future__ import annotations

import codecs
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.formats.base import Places

__all__ = ["json_rows"]

_BLANK = b" \t\r\n"
_BLANKS = re.compile(r"[ \t\r\n]*")
_SEPARATOR = re.compile(r"[ \t\r\n]*([,\]])[ \t\r\n]*")


def json_rows(payloads: pa.Array) -> tuple[pa.Array, Places] | None:
    """As `RowSplitter`. Blank messages and null elements give no row."""
    other = pc.invert(pc.starts_with(payloads, "{"))
    if not pc.any(other).as_py():
        return None
    parts: dict[int, list[bytes]] = {}
    for place in np.flatnonzero(pc.fill_null(other, False).to_numpy(zero_copy_only=False)):
        found = _elements(payloads[int(place)].as_py())
        if found is not None:
            parts[int(place)] = found
    return _replaced(payloads, parts) if parts else None


def _replaced(payloads: pa.Array, parts: dict[int, list[bytes]]) -> tuple[pa.Array, Places]:
    """The payloads with those in `parts` replaced by any number of others."""
    counts = np.ones(len(payloads), np.int64)
    counts[list(parts)] = [len(found) for found in parts.values()]
    places = np.repeat(np.arange(len(payloads)), counts)
    source = places.copy()
    source[np.isin(places, list(parts))] = len(payloads) + np.arange(sum(map(len, parts.values())))
    single = pa.array([part for found in parts.values() for part in found], payloads.type)
    return pa.concat_arrays([payloads, single]).take(pa.array(source)), places


def _elements(message: bytes) -> list[bytes] | None:
    """The text of each element; None if this is one row, or none that can be read."""
    start = message.removeprefix(codecs.BOM_UTF8).lstrip(_BLANK)
    if not start:
        return []
    if start[:1] != b"[":
        return None
    text = message.decode("utf-8", "surrogateescape")  # bytes that are not UTF-8 come back as they were
    try:
        found = _scanned(text, text.index("[") + 1)
    except (ValueError, RecursionError):
        return None
    return [part.encode("utf-8", "surrogateescape") for part in found if part != "null"]


def _scanned(text: str, at: int) -> list[str]:
    """The elements of the array that was opened before `at`. As in Flink, nobody looks at what follows it. Raises if
    the array does not end."""
    found: list[str] = []
    at = _behind_blanks(text, at)
    closed = text[at : at + 1] == "]"
    while not closed:
        _, end = _DECODER.raw_decode(text, at)
        found.append(text[at:end])
        separator = _SEPARATOR.match(text, end)
        if separator is None:
            raise ValueError(text)
        at, closed = separator.end(), separator[1] == "]"
    return found


def _behind_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _no_number(constant: str) -> float:
    raise ValueError(constant)


# Numbers stay as they are: they may have more digits than Python likes to convert. Not strict: an object of its own may
# have control characters in its strings, too.
_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=str, parse_int=str, strict=False)
