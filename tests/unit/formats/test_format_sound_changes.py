"""A reader of changes answers only for messages with a known code and the rows that belong to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from headwater.changelog.kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from headwater.formats.cdc.sound_changes import OperationCodes, SoundReader

ROW = pa.struct([("id", pa.int64())])
THERE, GONE = {"id": 1}, None
KIND_NAMES = {INSERT: "+I", UPDATE_BEFORE: "-U", UPDATE_AFTER: "+U", DELETE: "-D"}


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


CHANGES = pa.list_(pa.struct([("kind", pa.int8()), ("row", ROW)]))


def changes_of(*messages: tuple[Any, Any, str | None]) -> list[list[tuple[str, int]]] | None:
    """(kind, id) of the changes of each message; None if they are refused."""
    codes = OperationCodes("op", ("c", "r"), ("u",), ("d",))
    reader = SoundReader(_Given(messages), ("before", "after", "op"), codes, "STRUCT<id: BIGINT>")
    read = reader.read(pa.array([b"{}"] * len(messages)), [CHANGES])
    if read is None:
        return None
    assert [column.type for column in read] == [CHANGES]
    read[0].validate(full=True)
    return [[(KIND_NAMES[one["kind"]], one["row"]["id"]) for one in message] for message in read[0].to_pylist()]


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
    old, new = {"id": 1}, {"id": 2}
    assert changes_of(
        (GONE, new, "c"), (old, new, "u"), (old, GONE, "d"), (old, new, "r"), (old, new, "u"), (old, new, "d")
    ) == [
        [("+I", 2)],
        [("-U", 1), ("+U", 2)],
        [("-D", 1)],
        [("+I", 2)],
        [("-U", 1), ("+U", 2)],
        [("-D", 1)],
    ]


def test_a_snapshot_is_inserts_alone() -> None:
    assert changes_of((GONE, {"id": 5}, "r"), (GONE, {"id": 6}, "c")) == [[("+I", 5)], [("+I", 6)]]


@pytest.mark.parametrize("message", SOUND)
def test_one_message_alone(message: tuple[Any, Any, str | None]) -> None:
    assert changes_of(message) is not None


@pytest.mark.parametrize("message", UNSOUND)
def test_what_makes_no_sense_is_refused(message: tuple[Any, Any, str | None]) -> None:
    assert changes_of(*SOUND, message) is None
