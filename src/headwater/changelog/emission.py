"""From weighted rows to changes: what an operator emits is the net difference that a batch makes to its result.

A row whose weights add up to nothing is not emitted. Retractions come first, so that a reader that applies the changes
in order never retracts a row that is not there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import Bools, Ints, concat, flat, widen
from headwater.changelog.identity import row_ids, take_table
from headwater.changelog.kinds import DELETE, INSERT, KIND, KIND_TYPE, UPDATE_AFTER, UPDATE_BEFORE

__all__ = ["Emission", "Emitting", "Weighted", "consolidated"]


@dataclass(frozen=True)
class Weighted:
    """Rows of a result, and how many of each are added (or, below 0, retracted)."""

    rows: pa.Table
    weights: Ints

    def where(self, wanted: Bools) -> Weighted:
        if wanted.all():
            return self
        return Weighted(take_table(self.rows, np.flatnonzero(wanted)), self.weights[wanted])


@dataclass(frozen=True)
class Emission:
    """The result's columns. With `key`, of which at most one row is there at a time, a row that takes the place of
    another with the same key is an update: -U, +U, or without `before` +U alone."""

    columns: pa.Schema
    key: tuple[str, ...] = ()
    before: bool = True

    @property
    def output(self) -> pa.Schema:
        return pa.schema([*self.columns, pa.field(KIND, KIND_TYPE)])

    def changes(self, parts: Sequence[Weighted]) -> pa.Table:
        """All parts together, consolidated."""
        schema = widen(self.columns)
        parts = [part for part in parts if part.rows.num_rows]
        if not parts:
            return widen(self.output).empty_table()
        weighted = Weighted(
            concat([part.rows.select(schema.names).cast(schema) for part in parts]),
            np.concatenate([part.weights for part in parts]),
        )
        weighted = consolidated(weighted)
        removed, added = weighted.where(weighted.weights < 0), weighted.where(weighted.weights > 0)
        gone, new = DELETE, INSERT
        # Retractions come first in the output: whoever applies the changes in order never has two rows of one key.
        updated = self._updated(removed.rows, added.rows)
        if updated is None:
            return concat([_part(removed, gone), _part(added, new)])
        before, after = updated
        pieces = [
            _part(removed.where(~before), DELETE),
            _part(removed.where(before), UPDATE_BEFORE) if self.before else widen(self.output).empty_table(),
            _part(added.where(~after), INSERT),
            _part(added.where(after), UPDATE_AFTER),
        ]
        return concat(pieces)

    def _updated(self, removed: pa.Table, added: pa.Table) -> tuple[Bools, Bools] | None:
        """Which removed rows give way to an added one of the same key, and which added ones take their places."""
        if not self.key or not removed.num_rows or not added.num_rows:
            return None
        both = concat([removed.select(self.key), added.select(self.key)])
        # Numbered together, so that a key has one number on both sides.
        ids = row_ids([flat(both, name) for name in self.key], both.num_rows)
        old, new = ids[: removed.num_rows], ids[removed.num_rows :]
        return np.isin(old, new), np.isin(new, old)


class Emitting(ABC):
    """What operators without timers share that emit the net difference of their result."""

    @property
    @abstractmethod
    def _emission(self) -> Emission: ...

    @property
    def output(self) -> pa.Schema:
        return self._emission.output

    @property
    def timed(self) -> bool:
        return False


def consolidated(weighted: Weighted) -> Weighted:
    """Different rows with the sums of their weights, none of them 0. Rows that are only added, or only retracted, are
    left as they are."""
    rows, weights = weighted.rows, weighted.weights
    # Consolidating would find nothing to cancel, and numbering all rows is the expensive part.
    if (weights > 0).all() or (weights < 0).all():
        return weighted
    ids = row_ids([flat(rows, name) for name in rows.column_names], rows.num_rows)
    _, first, of_row = np.unique(ids, return_index=True, return_inverse=True)
    net = np.zeros(len(first), dtype=np.int64)
    np.add.at(net, of_row, weights)
    left = np.flatnonzero(net)
    # np.unique sorts by number; sinks that keep the order should see that of the input.
    left = left[np.argsort(first[left])]  # rows stay in the order they had
    return Weighted(take_table(rows, first[left]), net[left])


def _part(weighted: Weighted, kind: int) -> pa.Table:
    index = np.arange(weighted.rows.num_rows, dtype=np.int64)
    counts = np.abs(weighted.weights)
    rows = weighted.rows if (counts == 1).all() else take_table(weighted.rows, np.repeat(index, counts))
    return rows.append_column(pa.field(KIND, KIND_TYPE), pa.repeat(pa.scalar(kind, KIND_TYPE), rows.num_rows))
