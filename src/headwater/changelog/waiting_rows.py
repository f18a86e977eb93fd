"""Rows that wait for a time, as they came: nothing retracts one, or what takes it later nets it with its retraction.

So they need not be compared with what waits already, and lie in the order of the time they wait for. Equal rows stay
apart by a number: that of the batch in the upper half, and of the row in the batch in the lower.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import Ints, concat, flat, widen
from headwater.changelog.identity import take_table
from headwater.changelog.kinds import HASH
from headwater.changelog.operator import Time
from headwater.changelog.timers import TimeIndex
from headwater.state.table import StateTable, TableSpec

__all__ = ["AT_ONCE", "WaitingRows"]

ROW_HASH, NUMBER = "__hw_row_hash", "__hw_number"
AT_ONCE = np.iinfo(np.int64).min
"""The time of rows that wait for none."""


@dataclass(frozen=True)
class WaitingRows:
    """`columns` are those of the rows, beside HASH."""

    name: str
    columns: pa.Schema

    @property
    def spec(self) -> TableSpec:
        return self._index.spec

    @property
    def _index(self) -> TimeIndex:
        return TimeIndex(self.name, pa.schema([(ROW_HASH, pa.int64()), (NUMBER, pa.int64())]), self.columns)

    def due(self, table: StateTable, rows: pa.Table, times: Ints, time: Time) -> pa.Table:
        """Of these new rows, with HASH and the columns, and of those that wait: whose times the watermark has passed,
        as HASH and the columns. The other ones wait on. Once in a batch."""
        waited = self._index.take(table, time.watermark)  # first: what is left of it then is little
        schema = widen(pa.schema([(HASH, pa.int64()), *self.columns]))
        rows = rows.select(schema.names).cast(schema)
        due = times <= (AT_ONCE if time.watermark is None else time.watermark)
        later = np.flatnonzero(~due)
        if len(later):
            self._keep(table, rows if len(later) == len(times) else take_table(rows, later), times[later], time)
        names = [ROW_HASH, *self.columns.names]
        return concat([take_table(rows, np.flatnonzero(due)), waited.select(names).rename_columns(schema.names)])

    def _keep(self, table: StateTable, rows: pa.Table, times: Ints, time: Time) -> None:
        hashes = flat(rows, HASH).to_numpy()
        numbers = (time.batch << 32) + np.arange(len(hashes), dtype=np.int64)
        values = [flat(rows, name) for name in self.columns.names]
        self._index.write(table, times, hashes >> 32, [pa.array(hashes), pa.array(numbers)], values)
