"""A reader of changes answers only for messages with a known code and the rows that belong to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from headwater.formats.cdc.sound_changes import OperationCodes, SoundReader

ROW = pa.struct([("id", pa.int64())])
THERE, GONE = {"id": 1}, None


@dataclass(frozen=True)
class _Given:
    """A reader that has read these messages."""

    messages: tuple[tuple[Any, Any, str | None], ...]
    types = ("STRUCT<id: BIGINT>", "STRUCT<id: BIGINT>", "STRING")

    def columns(self, names: Any) -> tuple[str, ...]:
        return tuple(names)

    def error(self, names: Any) -> None:
        return None

    def read(self, payloads: pa.Array, types: Any) -> list[pa.Array]:
        before, after, codes = zip(*self.messages, strict=True)
        return [pa.array(before, ROW), pa.array(after, ROW), pa.array(codes, pa.string())]


def is_read(*messages: tuple[Any, Any, str | None]) -> bool:
    codes = OperationCodes("op", ("c", "r"), ("u",), ("d",))
    reader = SoundReader(_Given(messages), ("before", "after", "op"), codes)
    return reader.read(pa.array([b"{}"] * len(messages)), []) is not None


SOUND = [(GONE, THERE, "c"), (GONE, THERE, "r"), (THERE, THERE, "c"), (THERE, THERE, "u"), (THERE, GONE, "d")]
UNSOUND = [
    (GONE, GONE, "c"),
    (THERE, GONE, "r"),
    (GONE, THERE, "u"),
    (THERE, GONE, "u"),
    (GONE, THERE, "d"),
    (THERE, THERE, "x"),
    (THERE, THERE, None),
    (THERE, THERE, ""),
]


def test_sound_changes_are_read() -> None:
    assert is_read(*SOUND)


@pytest.mark.parametrize("message", UNSOUND)
def test_what_makes_no_sense_is_refused(message: tuple[Any, Any, str | None]) -> None:
    assert not is_read(*SOUND, message)
