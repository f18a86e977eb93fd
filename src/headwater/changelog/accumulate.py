"""Accumulators: what is kept per group, how a batch is reduced to it, and how two of them are added.

Sums overflow loudly: a wrong total is worse than a stopped job. Sums of DOUBLE are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools, Ints, flat
from headwater.changelog.exact_sums import STORED, ExactSums, weight_name
from headwater.changelog.multiset import GROUP, Multiset
from headwater.changelog.ordered_values import ARRIVAL, picked
from headwater.changelog.reduce import add_sums, better, checked_cast, reduce_numbered

__all__ = ["ROWS", "Accumulator", "Kept", "to_show", "to_store"]

ROWS = "__hw_n"
"""The number of rows in a group: an accumulator every aggregate has."""

_BY_ARRIVAL = ("first", "last")

Kept: TypeAlias = Any
"""The accumulators of a batch's groups: an Arrow array, or `ExactSums`."""


@dataclass(frozen=True)
class Accumulator:
    """`function` is sum, min or max; first or last, by arrival, of values that are not NULL; or arrivals, the number of
    rows that ever came. With `multiset` it is computed from that multiset's transitions: the number of values
    (`of_values` false) or their sum; or read from it (collected). The input column has the accumulator's name; a sum of
    DOUBLE may come in the columns of a partial sum instead (`exact_sums`)."""

    name: str
    type: pa.DataType
    function: str
    multiset: str = ""
    of_values: bool = False

    @property
    def exact(self) -> bool:
        return self.function == "sum" and bool(pa.types.is_floating(self.type))

    @property
    def sent(self) -> bool:
        """Whether there is an input column for it."""
        return not self.multiset and self.function != "arrivals"

    @property
    def columns(self) -> list[tuple[str, pa.DataType]]:
        """The input columns it is computed from."""
        return [(self.name, self.type)] if self.sent else []

    @property
    def is_column(self) -> bool:
        """Whether a row that is alone in its group has it as it is."""
        return self.sent and not self.exact

    @property
    def by_arrival(self) -> bool:
        """Whether it depends on the order of rows."""
        return self.function in _BY_ARRIVAL

    @property
    def stored_type(self) -> pa.DataType:
        return STORED if self.exact else self.type

    def from_transitions(self, transitions: pa.Table, multiset: Multiset, count: int) -> Kept:
        """For each of `count` groups what the transitions add to it; NULL for groups without any."""
        groups, weights = flat(transitions, GROUP), flat(transitions, multiset.weight)
        amounts = weights
        if self.of_values:
            values = flat(transitions, multiset.value.name)
            # Widened before it is negated: the smallest number of a type has no negative in that type.
            values = values.cast(self.type)
            if self.exact:
                rows = pa.table([groups, values, weights], names=[GROUP, self.name, weight_name(self.name)])
                return self.per_group(rows, count)
            amounts = pc.if_else(pc.greater(weights, 0), values, pc.negate(values))
        elif self.function != "sum":
            return pa.nulls(count, self.type)
        return self.per_group(pa.table([groups, amounts], names=[GROUP, self.name]), count)

    def per_group(self, rows: pa.Table, count: int) -> Kept:
        """This accumulator over `rows`, one for each of `count` groups; NULL for groups without rows."""
        groups = flat(rows, GROUP).to_numpy()
        if self.exact:
            return ExactSums.of_rows(rows, self.name, groups, count)
        if self.function == "arrivals":
            return pa.array(np.bincount(groups, minlength=count))
        if self.function in _BY_ARRIVAL:
            return self._picked(rows, groups, count)
        return checked_cast(reduce_numbered(flat(rows, self.name), groups, count, self.function), self.type)

    def _picked(self, rows: pa.Table, groups: Ints, count: int) -> pa.Array:
        values = flat(rows, self.name)
        there = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        came = flat(rows, ARRIVAL).to_numpy() if ARRIVAL in rows.column_names else np.arange(rows.num_rows)
        # numpy sorts by the last key first: by group, and in a group by arrival.
        at = there[np.lexsort([came[there], groups[there]])]
        return picked(values.take(pa.array(at)), groups[at], came[at], count, self.function)[0].cast(self.type)

    def load(self, stored: pa.Array) -> Kept:
        return ExactSums.from_stored(stored) if self.exact else stored

    def add(self, kept: Kept, more: Kept) -> Kept:
        """Two of the same groups; NULL is nothing."""
        if isinstance(kept, ExactSums):
            return kept + more
        if self.function in _BY_ARRIVAL:
            return pc.coalesce(
                *((kept, more.cast(kept.type)) if self.function == "first" else (more.cast(kept.type), kept))
            )
        if self.function == "collected":
            return kept
        if self.function in {"sum", "arrivals"}:
            return add_sums(kept, more.cast(kept.type))
        return better(kept, more, self.function)

    def remains(self, kept: Kept) -> Bools:
        """For which groups there is something left to store."""
        if isinstance(kept, ExactSums):
            return kept.some()
        if self.function == "arrivals":
            return np.zeros(len(kept), dtype=np.bool_)
        if self.function == "sum":
            zero = pa.scalar(0).cast(self.type)
            return np.asarray(pc.not_equal(pc.fill_null(kept, zero), zero).to_numpy(zero_copy_only=False))
        return np.asarray(kept.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def to_store(kept: Kept) -> pa.Array:
    return kept.stored() if isinstance(kept, ExactSums) else kept


def to_show(kept: Kept) -> pa.Array:
    """What a result is computed from."""
    return kept.rounded() if isinstance(kept, ExactSums) else kept
