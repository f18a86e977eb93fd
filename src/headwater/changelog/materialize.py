"""The table that a changelog describes, by a key of which it may have several rows at a time.

All rows of a key are kept in the order they came. One of them is shown: the last one, or the first; or it is an error
that there is more than one. When that row is retracted, the next one is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.accumulate import Accumulator
from headwater.changelog.aggregate import ROWS, AggregateOperator
from headwater.changelog.columns import flat, widen
from headwater.changelog.kinds import KIND, KIND_TYPE
from headwater.changelog.operator import State, Time
from headwater.changelog.ordered_values import Collected, OrderedMultiset, order_of
from headwater.changelog.results import AggregateResult
from headwater.dates import dated_values
from headwater.errors import JobError
from headwater.state.table import TableSpec

__all__ = ["ROW", "ROW_HASH", "ROW_WEIGHT", "Conflict", "MaterializeOperator"]

Conflict = Literal["last", "first", "error"]

ROW, ROW_WEIGHT, ROW_HASH = "__hw_row", "__hw_row_weight", "__hw_row_hash"
"""The columns that are not part of the key, as a struct; +1 or -1; a hash of key and row (`Multiset`)."""
_SHOWN, _COUNT = "__hw_shown", "__hw_rows"


@dataclass(frozen=True)
class MaterializeOperator:
    """The output has the key, the other columns and KIND, with at most one row of a key. `table` is its name, for
    errors."""

    keys: pa.Schema
    values: pa.Schema
    conflict: Conflict = "last"
    before: bool = False
    table: str = ""

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return self._by_key.inputs

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        return self._by_key.tables

    @property
    def output(self) -> pa.Schema:
        return pa.schema([*self.keys, *self.values, pa.field(KIND, KIND_TYPE)])

    @property
    def timed(self) -> bool:
        return False

    @property
    def _by_key(self) -> AggregateOperator:
        """FIRST_VALUE or LAST_VALUE of whole rows."""
        row = pa.field(ROW, pa.struct(list(self.values)))
        rows = OrderedMultiset("rows", self.keys, row, ROW_WEIGHT, ROW_HASH)
        picked = Accumulator(_SHOWN, row.type, "collected", "rows")
        order = Accumulator(order_of(_SHOWN), pa.int64(), "collected", "rows")
        results = [AggregateResult(_SHOWN, row.type, "LAST_VALUE", _SHOWN)]
        if self.conflict == "error":
            results.append(AggregateResult(_COUNT, pa.int64(), "COUNT", ROWS))
        collected = Collected(_SHOWN, "rows", "first" if self.conflict == "first" else "last")
        return AggregateOperator(
            self.keys, (picked, order), tuple(results), self.before, (rows,), collected=(collected,)
        )

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        changes = self._by_key.step(state, inputs, time)
        if self.conflict == "error":
            self._refuse_conflicts(changes)
        shown = flat(changes, _SHOWN)
        columns = [*(flat(changes, name) for name in self.keys.names), *shown.flatten(), flat(changes, KIND)]
        schema = widen(self.output)
        return pa.table([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)

    def _refuse_conflicts(self, changes: pa.Table) -> None:
        several = np.flatnonzero(pc.greater(flat(changes, _COUNT), 1).to_numpy(zero_copy_only=False))
        if len(several):
            key = {name: dated_values(flat(changes, name).take(pa.array(several[:1])))[0] for name in self.keys.names}
            raise JobError(
                f"Table '{self.table}' has several rows with one primary key.",
                detail=", ".join(f"{name} = {value!r}" for name, value in key.items()),
                hint="ON CONFLICT DO DEDUPLICATE keeps the last of them, DO NOTHING the first.",
            )
