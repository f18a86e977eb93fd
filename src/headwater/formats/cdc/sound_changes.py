"""Column readers of changelog formats that refuse changes which make no sense, so that nobody has to look again.

What is refused is decoded by Spark's expressions, which say what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headwater.formats.base import ColumnReader

__all__ = ["OperationCodes", "SoundReader"]


@dataclass(frozen=True)
class OperationCodes:
    """The field that says what happened, and its values."""

    field: str
    inserts: tuple[str, ...]
    updates: tuple[str, ...]
    deletes: tuple[str, ...]


@dataclass(frozen=True)
class SoundReader:
    """Of `fields`, whose names include 'before', 'after' and that of the code, what `reader` reads: every message has a
    known code and the rows that belong to it."""

    reader: ColumnReader
    fields: tuple[str, ...]
    codes: OperationCodes

    @property
    def types(self) -> tuple[str, ...]:
        return self.reader.types

    def columns(self, names: Sequence[str]) -> tuple[str, ...]:
        return self.reader.columns(names)

    def error(self, names: Sequence[str]) -> str | None:
        return self.reader.error(names)

    def read(self, payloads: pa.Array, types: Sequence[pa.DataType]) -> list[pa.Array] | None:
        columns = self.reader.read(payloads, types)
        return columns if columns is not None and self._are_sound(columns) else None

    def _are_sound(self, columns: Sequence[pa.Array]) -> bool:
        code, before, after = (columns[self.fields.index(name)] for name in (self.codes.field, "before", "after"))
        codes = self.codes
        with_after = pc.is_in(code, pa.array([*codes.inserts, *codes.updates], code.type))
        with_before = pc.is_in(code, pa.array([*codes.updates, *codes.deletes], code.type))
        missing = pc.or_(pc.and_(with_after, after.is_null()), pc.and_(with_before, before.is_null()))
        sound = pc.and_not(pc.or_(with_after, with_before), missing)
        return int(sound.true_count) == len(sound)
