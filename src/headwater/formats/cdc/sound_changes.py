"""A column reader of changelog formats that gives the changes themselves, and refuses those that make no sense.

What is refused is decoded by Spark's expressions, which say what is wrong with it. What is read needs no expression at
all: a change is made here of the columns of its message, thousands at a time, and not of each row in the JVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools
from headwater.changelog.kinds import DELETE, INSERT, KIND_TYPE, UPDATE_AFTER, UPDATE_BEFORE
from headwater.formats.base import ColumnReader

__all__ = ["OperationCodes", "SoundReader"]

_ROWS = ("before", "after")


@dataclass(frozen=True)
class OperationCodes:
    """The field that says what happened, and its values."""

    field: str
    inserts: tuple[str, ...]
    updates: tuple[str, ...]
    deletes: tuple[str, ...]


@dataclass(frozen=True)
class SoundReader:
    """Of `fields`, which `reader` reads and whose names include 'before', 'after' and that of the code: the changes,
    as `Decoder.changes` has them, and then all other fields. Every message has a known code and the rows that belong
    to it. `row` is the Spark type of a row."""

    reader: ColumnReader
    fields: tuple[str, ...]
    codes: OperationCodes
    row: str

    @property
    def types(self) -> tuple[str, ...]:
        read = dict(zip(self.fields, self.reader.types, strict=True))
        return (f"ARRAY<STRUCT<kind: TINYINT, row: {self.row}>>", *(read[name] for name in self.others))

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(name for name in self.fields if name not in (*_ROWS, self.codes.field))

    def columns(self, names: Sequence[str]) -> tuple[str, ...]:
        """Of the other fields alone: the first of these names are the changes."""
        given = dict(zip(self.others, names[1:], strict=True))
        # The names of the rows and of the code do not matter: what is made of them is left out.
        sql = self.reader.columns([given.get(name, name) for name in self.fields])
        return tuple(one for name, one in zip(self.fields, sql, strict=True) if name in given)

    def error(self, names: Sequence[str]) -> str | None:
        del names
        return None

    def read(self, payloads: pa.Array, types: Sequence[pa.DataType]) -> list[pa.Array] | None:
        row, others = types[0].value_type.field("row").type, dict(zip(self.others, types[1:], strict=True))
        read_as = {**dict.fromkeys(_ROWS, row), self.codes.field: pa.string(), **others}
        columns = self.reader.read(payloads, [read_as[name] for name in self.fields])
        if columns is None:
            return None
        read = dict(zip(self.fields, columns, strict=True))
        code, before, after = read[self.codes.field], read["before"], read["after"]
        inserts, updates, deletes = (_is_one_of(code, codes) for codes in self._kinds)
        if not _are_sound(inserts, updates, deletes, before, after):
            return None
        changes = _changes(inserts, updates, before, after, types[0])
        return [changes, *(read[name] for name in self.others)]

    @property
    def _kinds(self) -> tuple[tuple[str, ...], ...]:
        return self.codes.inserts, self.codes.updates, self.codes.deletes


def _is_one_of(code: pa.Array, codes: Sequence[str]) -> Bools:
    return np.asarray(pc.is_in(code, pa.array(codes, code.type)).to_numpy(zero_copy_only=False))


def _are_sound(inserts: Bools, updates: Bools, deletes: Bools, before: pa.Array, after: pa.Array) -> bool:
    known = inserts | updates | deletes
    missing = ~_there(after) & (inserts | updates) | ~_there(before) & (updates | deletes)
    return bool(known.all() and not missing.any())


def _there(rows: pa.Array) -> Bools:
    return np.asarray(rows.is_valid().to_numpy(zero_copy_only=False))


def _changes(inserts: Bools, updates: Bools, before: pa.Array, after: pa.Array, kind: pa.DataType) -> pa.Array:
    """A list for each message: an insert or a delete, or both sides of an update, the old row first."""
    size = len(inserts)
    offsets = np.zeros(size + 1, np.int32)
    np.cumsum(1 + updates, out=offsets[1:])
    if inserts.all():  # as in a snapshot: the rows are there already, in order
        rows, kinds = after, np.full(size, INSERT, np.int8)
    else:
        first, second, places = offsets[:-1], offsets[1:][updates] - 1, np.arange(size)
        chosen, kinds = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int8)
        # All rows before a change come first, then all rows after one. Of an update both are taken, elsewhere one.
        chosen[first] = np.where(inserts, size + places, places)
        kinds[first] = np.where(inserts, INSERT, np.where(updates, UPDATE_BEFORE, DELETE))
        chosen[second], kinds[second] = size + places[updates], UPDATE_AFTER
        rows = pa.concat_arrays([before, after]).take(pa.array(chosen))
    structs = pa.StructArray.from_arrays([pa.array(kinds, KIND_TYPE), rows], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(pa.array(offsets), structs, type=kind)
