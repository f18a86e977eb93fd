"""Upserts in, every change out, in order: where rows have a watermark.

`NormalizeOperator` emits one net change per key and batch. A change that was there only for a while, within a batch,
would then count in a window or not, depending on how batches are cut. Here each change is emitted, with the watermark
that it came with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.changelog.arrival import in_order_of_arrival
from headwater.changelog.columns import Bools, Ints, concat, constant, equal_rows, flat, widen
from headwater.changelog.grouping import group_rows
from headwater.changelog.identity import take_table
from headwater.changelog.kinds import DELETE, HASH, INSERT, KIND, KIND_TYPE, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.normalize import NormalizeOperator
from headwater.changelog.operator import OWN_WATERMARK, State, Time
from headwater.state.table import TableSpec

__all__ = ["NormalizeEach"]


@dataclass(frozen=True)
class NormalizeEach:
    """The same state as that of `normalize`. Input and output have OWN_WATERMARK; updates are -U, +U."""

    normalize: NormalizeOperator

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        return self.normalize.tables

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        (columns,) = self.normalize.inputs
        return (pa.schema([*columns, (OWN_WATERMARK, pa.timestamp("us"))]),)

    @property
    def output(self) -> pa.Schema:
        return pa.schema([*self.normalize.output, (OWN_WATERMARK, pa.timestamp("us"))])

    @property
    def timed(self) -> bool:
        return False

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        """1. Changes of a key in their order. 2. What each of them finds: the one before it, or the state. 3. Emit what
        is different. 4. The last one of each key is the state."""
        rows, of_key = self._in_order(inputs[0])  # 1
        count = rows.num_rows
        first: Bools = np.ones(count, dtype=np.bool_)
        first[1:] = of_key[1:] != of_key[:-1]
        hashes = flat(rows, HASH).to_numpy()
        kinds = flat(rows, KIND).to_numpy()
        gone: Bools = (kinds == DELETE) | (kinds == UPDATE_BEFORE)
        found = state["rows"].lookup(hashes[first], [flat(rows, n).filter(pa.array(first)) for n in self._keys])
        there: Bools = np.zeros(count, dtype=np.bool_)  # 2
        there[first] = found.hit
        there[1:] |= ~first[1:] & ~gone[:-1]
        old = self._old(rows, first, found.values)
        values = [flat(rows, name) for name in self._values]
        same = equal_rows([flat(old, name) for name in self._values], values, count)
        last: Bools = np.append(first[1:], True) if count else first  # 4
        at = pa.array(np.flatnonzero(last))
        kept, new = ([flat(rows, n).take(at) for n in names] for names in (self._keys, self._values))
        state["rows"].write(hashes[last], kept, new, gone[last])
        emitted = [  # 3
            (rows, old, there & ~gone & ~same, UPDATE_BEFORE),
            (rows, old, there & gone, DELETE),
            (rows, rows, ~there & ~gone, INSERT),
            (rows, rows, there & ~gone & ~same, UPDATE_AFTER),
        ]
        # In the order of the changes: where no shuffle follows, the last one of a key is what is left of it.
        places = np.concatenate([np.flatnonzero(where) for _, _, where, _ in emitted])
        return take_table(concat([self._part(*part) for part in emitted]), np.argsort(places, kind="stable"))

    @property
    def _keys(self) -> list[str]:
        return list(self.normalize.keys.names)

    @property
    def _values(self) -> list[str]:
        return list(self.normalize.values.names)

    def _in_order(self, rows: pa.Table) -> tuple[pa.Table, Ints]:
        of_key = group_rows(flat(rows, HASH).to_numpy(), [flat(rows, n) for n in self._keys]).of_row
        order = in_order_of_arrival(rows, of_key)
        return take_table(rows, order), of_key[order]

    def _old(self, rows: pa.Table, first: Bools, found: pa.Table) -> pa.Table:
        """The row before each change: of the first one of a key what was found, of others the one before."""
        places = np.arange(len(first), dtype=np.int64) - 1 + found.num_rows
        places[first] = np.arange(found.num_rows)
        both = concat([found.select(self._values), rows.select(self._values)])
        return take_table(both, places)

    def _part(self, rows: pa.Table, values: pa.Table, where: Bools, kind: int) -> pa.Table:
        index = pa.array(np.flatnonzero(where))
        columns = [flat(rows, name).take(index) for name in self._keys]
        columns += [flat(values, name).take(index) for name in self._values]
        columns += [constant(kind, len(index), KIND_TYPE), flat(rows, OWN_WATERMARK).take(index)]
        return pa.table(columns, schema=widen(self.output))
