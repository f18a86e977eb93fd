"""The first or the last row of each key of an append-only input: ROW_NUMBER() … = 1, cheaper than a general rank.

By the order of sort keys (event time, as a rule) the state is the best row of every key, and a better one updates it.
Ties go by all columns, as in `RankOperator`. By arrival (processing time) the first row of a key is final, and nothing
but the key is kept; the last one is kept whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import Bools, Ints, concat, equal_rows, flat, widen
from headwater.changelog.emission import Emission, Emitting, Weighted
from headwater.changelog.grouping import group_rows
from headwater.changelog.identity import take_table
from headwater.changelog.kinds import HASH
from headwater.changelog.operator import State, Time
from headwater.changelog.ordering import SortKey, order_rows
from headwater.state.table import TableSpec

__all__ = ["Deduplicate", "DeduplicateByArrival"]


@dataclass(frozen=True)
class Deduplicate(Emitting):
    """Of each key the row that comes first by `order`. `HASH` is that of the keys."""

    keys: pa.Schema
    values: pa.Schema
    order: tuple[SortKey, ...]
    before: bool = True

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (pa.schema([(HASH, pa.int64()), *self.keys, *self.values]),)

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        return (TableSpec("rows", self.keys, self.values),)

    @property
    def _emission(self) -> Emission:
        return Emission(pa.schema([*self.keys, *self.values]), tuple(self.keys.names), self.before)

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        """The stored rows are candidates like those of the batch."""
        hashes, rows = flat(inputs[0], HASH).to_numpy(), _columns(inputs[0], self._emission.columns)
        keys = [flat(rows, name) for name in self.keys.names]
        grouped = group_rows(hashes, keys)
        first = pa.array(grouped.first)
        groups = [key.take(first) for key in keys]
        found = state["rows"].lookup(hashes[grouped.first], groups)
        known = np.flatnonzero(found.hit)
        stored = pa.table([*groups, *found.values.columns], names=rows.column_names)
        together = concat([rows, take_table(stored, known)])
        numbers = np.concatenate([grouped.of_row, known])
        # Ties are broken by all columns: the answer must not depend on the order in which a shuffle hands rows over.
        ordered = order_rows(together, numbers, self.order)
        best = take_table(together, ordered.order[ordered.group_starts])
        new = ~(found.hit & _same(stored, best, self.values.names))
        return self._replace(state, hashes[grouped.first], stored, best, found.hit, new)

    def _replace(
        self, state: State, hashes: Ints, stored: pa.Table, best: pa.Table, known: Bools, new: Bools
    ) -> pa.Table:
        at = np.flatnonzero(new)
        added, removed = take_table(best, at), take_table(stored, np.flatnonzero(new & known))
        columns = [flat(added, name) for name in added.column_names]
        keys, values = columns[: len(self.keys)], columns[len(self.keys) :]
        state["rows"].write(hashes[at], keys, values, np.zeros(len(at), dtype=np.bool_))
        parts = [Weighted(removed, -_ones(removed)), Weighted(added, _ones(added))]
        return self._emission.changes(parts)


@dataclass(frozen=True)
class DeduplicateByArrival(Emitting):
    """Of each key the first or the last row that came. Within a batch, `arrival` are columns that say which came first,
    if there are any; else it is the order of the rows."""

    keys: pa.Schema
    values: pa.Schema
    keep: Literal["first", "last"]
    arrival: pa.Schema = pa.schema([])  # noqa: RUF009 - a schema is immutable
    before: bool = True

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (pa.schema([(HASH, pa.int64()), *self.keys, *self.values, *self.arrival]),)

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        return (TableSpec("rows", self.keys, self.values if self.keep == "last" else pa.schema([])),)

    @property
    def _emission(self) -> Emission:
        return Emission(pa.schema([*self.keys, *self.values]), tuple(self.keys.names), self.before)

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        rows = _columns(inputs[0], self._emission.columns)
        keys = [flat(rows, name) for name in self.keys.names]
        hashes = flat(inputs[0], HASH).to_numpy()
        grouped = group_rows(hashes, keys)
        at = self._chosen(inputs[0], grouped.of_row)
        rows, hashes = take_table(rows, at), hashes[at]
        keys = [flat(rows, name) for name in self.keys.names]
        found = state["rows"].lookup(hashes, keys)
        # The first row of a key is final: nothing but the key has to be kept, and nothing is ever retracted.
        changed: Bools = ~found.hit
        removed = take_table(rows, np.zeros(0, dtype=np.int64))
        if self.keep == "last":
            changed = ~(found.hit & _same(found.values, rows, self.values.names))
            stored = pa.table([*keys, *found.values.columns], names=rows.column_names)
            removed = take_table(stored, np.flatnonzero(changed & found.hit))
        added = take_table(rows, np.flatnonzero(changed))
        columns = [flat(added, name) for name in (*self.keys.names, *self.tables[0].values.names)]
        gone = np.zeros(added.num_rows, dtype=np.bool_)
        state["rows"].write(hashes[changed], columns[: len(keys)], columns[len(keys) :], gone)
        return self._emission.changes([Weighted(removed, -_ones(removed)), Weighted(added, _ones(added))])

    def _chosen(self, batch: pa.Table, groups: Ints) -> Ints:
        """The row of each group that came first, or last."""
        numbers: Ints = np.arange(batch.num_rows, dtype=np.int64)
        columns = [np.asarray(flat(batch, name).to_numpy(zero_copy_only=False)) for name in self.arrival.names]
        order = np.lexsort([numbers, *reversed(columns), groups])
        last = np.append(np.flatnonzero(np.diff(groups[order])), len(order) - 1).astype(np.int64)
        first = np.concatenate([[0], last[:-1] + 1]).astype(np.int64)
        chosen: Ints = order[first if self.keep == "first" else last][: len(order)]
        return chosen


def _columns(batch: pa.Table, columns: pa.Schema) -> pa.Table:
    return batch.select(columns.names).cast(widen(columns)).combine_chunks()


def _same(left: pa.Table, right: pa.Table, names: list[str]) -> Bools:
    return equal_rows([flat(left, n) for n in names], [flat(right, n) for n in names], right.num_rows)


def _ones(rows: pa.Table) -> Ints:
    return np.ones(rows.num_rows, dtype=np.int64)
