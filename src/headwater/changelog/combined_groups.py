"""Stored groups of an `AggregateOperator` combined into larger ones: the results of a session from those of its
instants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.accumulate import Accumulator, Kept
from headwater.changelog.aggregate import ROWS, AggregateOperator
from headwater.changelog.columns import Ints, flat
from headwater.changelog.counted_rows import COUNT
from headwater.changelog.exact_sums import ExactSums
from headwater.changelog.identity import row_ids, take_table
from headwater.changelog.multiset import GROUP, Multiset
from headwater.changelog.ordered_values import ARRIVAL, OrderedMultiset
from headwater.changelog.reduce import checked_cast, reduce_numbered
from headwater.changelog.user_aggregate import UserAccumulator

__all__ = ["Numbered", "combined_results"]

Numbered = tuple[pa.Table, Ints]
"""Rows of a state table, and the number of the larger group that each belongs to."""


def combined_results(
    aggregate: AggregateOperator, groups: Numbered, values: Mapping[str, Numbered], count: int, time: str
) -> list[pa.Array]:
    """The results of `count` groups from the stored rows of the groups and multisets they are made of. Values that are
    kept in order are in that of the column `time`, then of arrival. DISTINCT values of a function of the user's are not
    among its accumulators: two groups may have the same ones."""
    rows, numbers = groups
    kept: dict[str, Kept] = {}
    for a in (Accumulator(ROWS, pa.int64(), "sum"), *aggregate.accumulators):
        if isinstance(a, UserAccumulator):
            kept[a.name] = a.merged(flat(rows, a.name), numbers, flat(rows, time).to_numpy(), count)
        elif a.function in {"first", "last"}:
            ordered = rows.select([a.name, time]).rename_columns([a.name, ARRIVAL])
            kept[a.name] = a.per_group(ordered.append_column(GROUP, pa.array(numbers)), count)
        elif not a.multiset:
            kept[a.name] = _combined(a, flat(rows, a.name), numbers, count)
    for c in aggregate.collected:
        ordered_multiset = next(m for m in aggregate.multisets if m.name == c.multiset)
        assert isinstance(ordered_multiset, OrderedMultiset)
        stored, of_row = values[c.multiset]
        times = flat(stored, time).to_numpy()
        kept[c.accumulator], _ = ordered_multiset.collect_rows(stored, of_row, count, c, times)
    plain = [m for m in aggregate.multisets if not isinstance(m, OrderedMultiset)]
    transitions = {m.name: _present(m, *values[m.name]) for m in plain}
    for a in (a for a in aggregate.accumulators if a.multiset in transitions):
        multiset = next(m for m in aggregate.multisets if m.name == a.multiset)
        if a.function == "sum":
            kept[a.name] = a.from_transitions(transitions[a.multiset], multiset, count)
        else:  # the least or greatest of the values
            best = Accumulator(multiset.value.name, multiset.value.type, a.function)
            kept[a.name] = best.per_group(transitions[a.multiset], count)
    return [result.compute(kept, count) for result in aggregate.results]


def _combined(accumulator: Accumulator, stored: pa.Array, numbers: Ints, count: int) -> Kept:
    if not accumulator.exact:
        return checked_cast(reduce_numbered(stored, numbers, count, accumulator.function), accumulator.type)
    sums = accumulator.load(stored)
    limbs: Ints = np.zeros((sums.limbs.shape[0], count), dtype=np.int64)
    for k in range(len(limbs)):
        # Not `limbs[k][numbers] += …`: numpy would add only one of several rows of a group.
        np.add.at(limbs[k], numbers, sums.limbs[k])
    beside: dict[int, Any] = {}
    for place, one in sums.beside.items():
        group = int(numbers[place])
        beside[group] = beside[group].plus_other(one) if group in beside else one
    return ExactSums(limbs, beside) + ExactSums(np.zeros_like(limbs))  # adding propagates carries


def _present(multiset: Multiset, rows: pa.Table, numbers: Ints) -> pa.Table:
    """The different values of each group, each as one that appeared."""
    ids = row_ids([pa.array(numbers), flat(rows, multiset.value.name)], len(numbers))
    _, first, of_row = np.unique(ids, return_index=True, return_inverse=True)
    counts: Ints = np.zeros(len(first), dtype=np.int64)
    np.add.at(counts, of_row, flat(rows, COUNT).to_numpy())
    # One instant may have a value that another one retracts: only the sum of both says whether it is there.
    at = first[counts > 0]
    values = take_table(rows.select([multiset.value.name]), at)
    values = values.append_column(GROUP, pa.array(numbers[at]))
    return values.append_column(multiset.weight, pc.cast(pa.repeat(1, len(at)), pa.int64()))
