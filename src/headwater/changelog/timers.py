"""Entries by the time at which they are due: what a watermark has passed is found by a range, not by a scan.

The hash of an entry is the second it is due in its upper half, and the upper half of its key's hash in the lower. The
table is marked as ordered by time, so that its entries follow their keys when state is partitioned differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import Bools, Ints, flat
from headwater.changelog.counted_rows import remove_rows
from headwater.changelog.grouping import group_rows
from headwater.changelog.identity import take_table
from headwater.changelog.kinds import HASH
from headwater.state.table import StateTable, TableSpec

__all__ = ["DUE", "TimeIndex"]

DUE = "__hw_due"
_SECOND = 1_000_000
_LOWEST, _HIGHEST = -(1 << 31), (1 << 31) - 1
_FIRST_SECOND = 1 << 31
"""Slots are seconds from 1970 to 2106. What is due before or after shares the first or the last slot."""


def slots(times: Ints) -> Ints:
    """The upper halves of hashes, in the order of these times."""
    numbers: Ints = np.clip(times // _SECOND - _FIRST_SECOND, _LOWEST, _HIGHEST)
    return numbers


@dataclass(frozen=True)
class TimeIndex:
    """An entry is known by its `keys` and the time it is due. Entries of one key that are due within a second share a
    hash, so there should not be many of them."""

    name: str
    keys: pa.Schema
    values: pa.Schema = pa.schema([])  # noqa: RUF009 - a schema is immutable

    @property
    def spec(self) -> TableSpec:
        return TableSpec(self.name, pa.schema([*self.keys, (DUE, pa.int64())]), self.values, by_time=True)

    def write(
        self,
        table: StateTable,
        due: Ints,
        prefixes: Ints,
        keys: Sequence[pa.Array],
        values: Sequence[pa.Array] = (),
        gone: Bools | None = None,
    ) -> None:
        """Put entries, or remove those that are `gone`. Prefixes are the upper halves of the hashes of their keys."""
        hashes = (slots(due) << 32) | (prefixes & 0xFFFFFFFF)
        none = np.zeros(len(due), dtype=np.bool_)
        table.write(hashes, [*keys, pa.array(due)], list(values), none if gone is None else gone)

    def note(self, table: StateTable, prefixes: Ints, due: Ints) -> None:
        """Put one entry for each prefix and time, where the prefix is all the key there is."""
        first = group_rows(due ^ (prefixes << 32), [pa.array(prefixes), pa.array(due)]).first
        self.write(table, due[first], prefixes[first], [pa.array(prefixes[first])])

    def take(self, table: StateTable, time: int | None) -> pa.Table:
        """All entries that are due at this time or before: HASH, the keys, DUE, the values. They are removed."""
        if time is None or not table.runs:
            return self.spec.run_schema.empty_table().select(self._names)
        entries, others = self._until(table, time)
        if not entries.num_rows:
            return entries
        # What else is due in the same second would be written again, too.
        if table.keep_above(_last_hash(time), entries.num_rows - others.num_rows):
            keys, values = ([flat(others, f.name) for f in columns] for columns in (self.spec.keys, self.values))
            table.write(flat(others, HASH).to_numpy(), keys, values, np.zeros(others.num_rows, dtype=np.bool_))
        else:
            remove_rows(table, entries)
        return entries

    @property
    def _names(self) -> list[str]:
        return [HASH, *self.keys.names, DUE, *self.values.names]

    def _until(self, table: StateTable, time: int) -> tuple[pa.Table, pa.Table]:
        """What is due, and what else is due in the same second."""
        low = np.array([_LOWEST], dtype=np.int64) << 32
        high = np.array([_last_hash(time)], dtype=np.int64)
        found = pa.Table.from_batches(table.scan_range(low, high), self.spec.run_schema).select(self._names)
        due = found.column(DUE).to_numpy() <= time
        if due.all():
            return found.combine_chunks(), found.slice(0, 0).combine_chunks()
        return take_table(found, np.flatnonzero(due)), take_table(found, np.flatnonzero(~due))


def _last_hash(time: int) -> int:
    """Of the second of this time."""
    return int(slots(np.array([time], dtype=np.int64))[0] << 32) | 0xFFFFFFFF
