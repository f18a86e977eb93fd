"""Top-N, deduplication and joins of windows: rows are kept until their window closes, and then computed at once.

The operator inside sees each window as one batch, on an empty state: what it emits are inserts, and nothing is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import Bools, Ints, flat, widen
from headwater.changelog.identity import take_table
from headwater.changelog.kinds import HASH, KIND, KIND_TYPE
from headwater.changelog.operator import OWN_WATERMARK, LateRows, Operator, State, Time
from headwater.changelog.timers import TimeIndex
from headwater.changelog.window_assigners import TICK, from_local, watermarks_of
from headwater.state.table import StateTable, TableSpec

__all__ = ["AtWindowEnd", "WindowInput"]

ROW_HASH, NUMBER = "__row_hash", "__number"


@dataclass(frozen=True)
class WindowInput:
    """`end` is the column with the end of the window. Input has KIND if it is a `changelog`, and OWN_WATERMARK if it
    has its `own` watermarks."""

    end: str
    changelog: bool = False
    own: bool = False


@dataclass(frozen=True)
class AtWindowEnd:
    """`inner`, and what is to be known of each of its inputs. In a time `zone` windows are those of the local clock."""

    inner: Operator
    windows: tuple[WindowInput, ...]
    zone: str = ""

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        pairs = zip(self.inner.inputs, self.windows, strict=True)
        return tuple(pa.schema([*schema, *_hidden(window)]) for schema, window in pairs)

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        return tuple(index.spec for index in self._waiting)

    @property
    def output(self) -> pa.Schema:
        return self.inner.output

    @property
    def timed(self) -> bool:
        return True

    @property
    def _waiting(self) -> list[TimeIndex]:
        """Rows by the time at which they are due; a number makes a key of each."""
        keys = pa.schema([(ROW_HASH, pa.int64()), (NUMBER, pa.int64())])
        return [
            TimeIndex(f"rows{place}", keys, pa.schema([f for f in schema if f.name not in {HASH, OWN_WATERMARK}]))
            for place, schema in enumerate(self.inputs)
        ]

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        return self.step_with_late(state, inputs, time)[0]

    def step_with_late(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> tuple[pa.Table, LateRows]:
        """1. Drop what is late and keep the rest. 2. Compute the windows that close. 3. Remove their rows."""
        late = tuple(self._kept(state, place, rows, time) for place, rows in enumerate(inputs))  # 1
        due = [index.due(state[index.name], time.watermark) for index in self._waiting]
        if not any(rows.num_rows for rows in due):
            return widen(self.output).empty_table(), late
        fresh = {spec.name: StateTable(spec) for spec in self.inner.tables}
        closing = tuple(_as_input(rows, schema) for rows, schema in zip(due, self.inputs, strict=True))
        changes = self.inner.step(fresh, closing, time)  # 2
        for index, rows in zip(self._waiting, due, strict=True):  # 3
            index.remove(state[index.name], rows)
        return changes, late

    def _kept(self, state: State, place: int, rows: pa.Table, time: Time) -> pa.Table:
        """Store the rows that are on time; answer with the others."""
        window, index = self.windows[place], self._waiting[place]
        ends = flat(rows, window.end).cast(pa.int64()).to_numpy() - TICK
        # The end of a window is a time of the local clock then, and a watermark is an instant.
        due: Ints = from_local(ends, self.zone) if self.zone and len(ends) else ends
        on_time: Bools = due > watermarks_of(rows, OWN_WATERMARK if window.own else "", time)
        kept = take_table(rows, np.flatnonzero(on_time))
        if kept.num_rows:
            hashes = flat(kept, HASH).to_numpy()
            # No two batches have the same processing time, so no number is used twice: equal rows stay two rows.
            numbers = (time.processing // 1000 << 20) + np.arange(len(hashes), dtype=np.int64)
            values = [flat(kept, name) for name in index.values.names]
            index.write(state[index.name], due[on_time], hashes >> 32, [pa.array(hashes), pa.array(numbers)], values)
        return take_table(rows, np.flatnonzero(~on_time))


def _hidden(window: WindowInput) -> list[pa.Field]:
    kind = [pa.field(KIND, KIND_TYPE)] if window.changelog else []
    return [*kind, *([pa.field(OWN_WATERMARK, pa.timestamp("us"))] if window.own else [])]


def _as_input(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    names = [name for name in schema.names if name not in {HASH, OWN_WATERMARK}]
    return rows.select(names).append_column(HASH, rows.column(ROW_HASH)).combine_chunks()
