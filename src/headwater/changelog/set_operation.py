"""INTERSECT and EXCEPT, with and without ALL: of each row, how often it is on the left and on the right.

Rows of both sides come as one input, with the column `SIDE`. NULL equals NULL here. A row that was retracted more often
than it came counts as none: what is missing may come later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import Ints, flat, widen
from headwater.changelog.counted_rows import weights_of
from headwater.changelog.emission import Emission, Emitting, Weighted
from headwater.changelog.grouping import group_rows
from headwater.changelog.identity import take_table
from headwater.changelog.kinds import HASH
from headwater.changelog.operator import State, Time
from headwater.state.table import TableSpec

__all__ = ["SIDE", "SetFunction", "SetOperationOperator"]

SetFunction = Literal["INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]

SIDE = "__hw_side"
"""0 for a row of the left, 1 for one of the right."""
_COUNTS = ("__hw_left", "__hw_right")


@dataclass(frozen=True)
class SetOperationOperator(Emitting):
    """`HASH` is that of all columns."""

    columns: pa.Schema
    function: SetFunction

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (pa.schema([(HASH, pa.int64()), *self.columns, (SIDE, pa.int8())]),)

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        return (TableSpec("rows", self.columns, pa.schema([(name, pa.int64()) for name in _COUNTS])),)

    @property
    def _emission(self) -> Emission:
        return Emission(self.columns)

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        (batch,) = inputs
        hashes, weights, side = flat(batch, HASH).to_numpy(), weights_of(batch), flat(batch, SIDE).to_numpy()
        rows = batch.select(self.columns.names).cast(widen(self.columns)).combine_chunks()
        grouped = group_rows(hashes, [flat(rows, name) for name in self.columns.names])
        rows, hashes = take_table(rows, grouped.first), hashes[grouped.first]
        keys = [flat(rows, name) for name in self.columns.names]
        found = state["rows"].lookup(hashes, keys)
        before = [flat(found.values, name).fill_null(0).to_numpy() for name in _COUNTS]
        after = [count.copy() for count in before]
        for number, count in enumerate(after):
            np.add.at(count, grouped.of_row[side == number], weights[side == number])
        gone = (after[0] == 0) & (after[1] == 0)
        state["rows"].write(hashes, keys, [pa.array(count) for count in after], gone)
        change = self._shown(*after) - self._shown(*before)
        at = np.flatnonzero(change)
        return self._emission.changes([Weighted(take_table(rows, at), change[at])])

    def _shown(self, left: Ints, right: Ints) -> Ints:
        """How often a row is in the result."""
        left, right = left.clip(0), right.clip(0)
        match self.function:
            case "INTERSECT ALL":
                shown: Ints = np.minimum(left, right)
            case "INTERSECT":
                shown = np.minimum(left, right).clip(max=1)
            case "EXCEPT ALL":
                shown = (left - right).clip(0)
            case "EXCEPT":
                shown = ((left > 0) & (right == 0)).astype(np.int64)
        return shown
