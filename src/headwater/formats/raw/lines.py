"""A raw message of several lines → one payload per line."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.formats.base import Places

__all__ = ["RawLines"]

# Without a byte order mark Java takes the bytes for big-endian; Python would take them as this machine has numbers.
_MARKS = {"UTF-16": (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE), "UTF-32": (codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE)}
_BY_BYTES = frozenset({"UTF-8", "US-ASCII", "ISO-8859-1"})


@dataclass(frozen=True)
class RawLines:
    """As `RowSplitter`. A delimiter at the end is that of the last line; a null payload has no line."""

    charset: str
    delimiter: str

    def __call__(self, payloads: pa.Array) -> tuple[pa.Array, Places]:
        lines = [self._lines(payload) if payload is not None else [] for payload in payloads.to_pylist()]
        places: Places = np.repeat(np.arange(len(lines)), [len(found) for found in lines])
        return pa.array([line for found in lines for line in found], payloads.type), places

    def _lines(self, payload: bytes) -> list[bytes]:
        # In these, no byte of a character can be mistaken for another character, so bytes can be split.
        if self.charset in _BY_BYTES:
            delimiter = self.delimiter.encode(self.charset, "replace")
            lines = payload.split(delimiter)
        else:
            text = payload.decode(self._codec(payload), "replace")
            lines = [line.encode(self._codec(b"")) for line in text.split(self.delimiter)]
        return lines[:-1] if lines[-1] == b"" else lines

    def _codec(self, payload: bytes) -> str:
        marks = _MARKS.get(self.charset)
        return self.charset if marks is None or payload.startswith(marks) else f"{self.charset}-BE"
