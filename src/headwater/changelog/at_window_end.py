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
from headwater.changelog.waiting_rows import WaitingRows
from headwater.changelog.window_assigners import TICK, from_local, watermarks_of
from headwater.state.table import StateTable, TableSpec

__all__ = ["AtWindowEnd", "WindowInput"]


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
        return tuple(waiting.spec for waiting in self._waiting)

    @property
    def output(self) -> pa.Schema:
        return self.inner.output

    @property
    def timed(self) -> bool:
        return True

    @property
    def _waiting(self) -> list[WaitingRows]:
        return [
            WaitingRows(f"rows{place}", pa.schema([f for f in schema if f.name not in {HASH, OWN_WATERMARK}]))
            for place, schema in enumerate(self.inputs)
        ]

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        return self.step_with_late(state, inputs, time)[0]

    def step_with_late(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> tuple[pa.Table, LateRows]:
        """1. Drop what is late, and take the rows of windows that close. 2. Compute those."""
        taken = [self._closing(state, place, rows, time) for place, rows in enumerate(inputs)]  # 1
        closing, late = tuple(rows for rows, _ in taken), tuple(rows for _, rows in taken)
        if not any(rows.num_rows for rows in closing):
            return widen(self.output).empty_table(), late
        fresh = {spec.name: StateTable(spec) for spec in self.inner.tables}
        return self.inner.step(fresh, closing, time), late  # 2

    def _closing(self, state: State, place: int, rows: pa.Table, time: Time) -> tuple[pa.Table, pa.Table]:
        """The rows of windows that close, and those that are late."""
        window, waiting = self.windows[place], self._waiting[place]
        ends = flat(rows, window.end).cast(pa.int64()).to_numpy() - TICK
        # The end of a window is a time of the local clock then, and a watermark is an instant.
        due: Ints = from_local(ends, self.zone) if self.zone and len(ends) else ends
        on_time: Bools = due > watermarks_of(rows, OWN_WATERMARK if window.own else "", time)
        kept = take_table(rows, np.flatnonzero(on_time))
        closing = waiting.due(state[waiting.name], kept, due[on_time], time)
        return closing, take_table(rows, np.flatnonzero(~on_time))


def _hidden(window: WindowInput) -> list[pa.Field]:
    kind = [pa.field(KIND, KIND_TYPE)] if window.changelog else []
    return [*kind, *([pa.field(OWN_WATERMARK, pa.timestamp("us"))] if window.own else [])]
