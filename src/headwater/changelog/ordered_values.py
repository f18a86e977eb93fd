"""The values of a group in the order they came: FIRST_VALUE and LAST_VALUE over retractions, LISTAGG, ARRAY_AGG, ….

Beside how often a value is there stands the order of each of its occurrences, a number that grows with every row of the
group. A retraction takes the oldest occurrence of its value. So what is left depends on the rows and their order alone,
and not on how they are cut into batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools, Ints, flat
from headwater.changelog.grouping import Groups, group_rows
from headwater.changelog.identity import row_ids, take_table
from headwater.changelog.kinds import HASH
from headwater.changelog.multiset import COUNT, Multiset, prefix
from headwater.changelog.pairing import owners
from headwater.state.table import StateTable, TableSpec

__all__ = ["ARRIVAL", "Collected", "Moved", "OrderedMultiset", "Picked", "order_of", "picked", "places_in_groups"]

ARRIVAL = "__hw_arrival"
"""An input column that says which row of a batch came first. Without it, the order of the rows does."""
_ORDERS = "__hw_orders"

Picked = tuple[pa.Array, pa.Array]
"""For each group the first or the last value with its order; or its values as a list, without an order."""


def order_of(accumulator: str) -> str:
    """The accumulator that holds the order of the value that another one holds."""
    return f"{accumulator}_order"


@dataclass(frozen=True)
class Collected:
    """The accumulator with the first or the last value of `multiset`, or with all of them as a list."""

    accumulator: str
    multiset: str
    function: str  # first, last or list
    distinct: bool = False


@dataclass(frozen=True)
class Moved:
    """What a batch did: `touched` groups, occurrences that were added and are still there, and the orders of those that
    were there before and are not any more, with their groups."""

    touched: Bools
    added: pa.Table
    added_groups: Ints
    added_orders: Ints
    lost_groups: Ints
    lost_orders: Ints


@dataclass(frozen=True)
class OrderedMultiset(Multiset):
    """A multiset that knows when each of its values came. NULL is a value, too, if its weight is not 0."""

    @property
    def spec(self) -> TableSpec:
        keys = pa.schema([*self.groups, self.value])
        return TableSpec(self.name, keys, pa.schema([(COUNT, pa.int64()), (_ORDERS, pa.list_(pa.int64()))]))

    def apply_in_order(self, table: StateTable, rows: pa.Table, groups: Ints, orders: Ints, count: int) -> Moved:
        """Count rows in that belong to these of `count` groups and have these orders."""
        names = [*self.groups.names, self.value.name]
        used = np.flatnonzero(flat(rows, self.weight).to_numpy() != 0)
        rows, groups, orders = (
            take_table(rows.select([self.hash_, *names, self.weight]), used),
            groups[used],
            orders[used],
        )
        weights = flat(rows, self.weight).to_numpy()
        values = group_rows(flat(rows, self.hash_).to_numpy(), [flat(rows, name) for name in names])
        first = take_table(rows, values.first)
        hashes, keys = flat(first, self.hash_).to_numpy(), [flat(first, name) for name in names]
        found = table.lookup(hashes, keys)
        before = flat(found.values, COUNT).fill_null(0).to_numpy()
        after = before.copy()
        np.add.at(after, values.of_row, weights)
        stored = _spread(flat(found.values, _ORDERS))
        mine = np.flatnonzero(weights > 0)
        all_of = np.concatenate([stored[0], values.of_row[mine]])
        all_orders = np.concatenate([stored[1], orders[mine]])
        kept = self._kept(values, weights, before, all_of, all_orders)
        lists = _lists(all_of[kept], all_orders[kept], len(values))
        table.write(hashes, keys, [pa.array(after), lists], after == 0)
        old = np.arange(len(all_of)) < len(stored[0])
        added, lost = kept & ~old, ~kept & old
        touched = np.zeros(count, dtype=np.bool_)
        touched[groups] = True
        of_value = groups[values.first]
        shown = take_table(first.select([self.value.name]), all_of[added])
        return Moved(
            touched, shown, of_value[all_of[added]], all_orders[added], of_value[all_of[lost]], all_orders[lost]
        )

    def _kept(self, values: Groups, weights: Ints, before: Ints, of: Ints, orders: Ints) -> Bools:
        """Which occurrences are left when each retraction, of this batch or earlier, has taken the oldest."""
        # A negative count is a retraction that came before its row: it takes the first occurrence that comes.
        taken = before.clip(max=0) * -1
        np.add.at(taken, values.of_row, -weights.clip(max=0))
        # Which of several equal occurrences is retracted cannot be known; the oldest one is, as in Flink, always.
        in_order = np.lexsort([orders, of])
        kept: Bools = np.zeros(len(of), dtype=np.bool_)
        kept[in_order] = places_in_groups(of[in_order]) >= taken[of[in_order]]
        return kept

    def picked_again(
        self,
        table: StateTable,
        groups: Sequence[pa.Array],
        hashes: Ints,
        collected: Collected,
        moved: Moved,
        current: Picked,
    ) -> Picked:
        """What is picked now, after `moved`, where it was `current`. All values of a group are read only where there is
        no other way: where its first or last value was lost, and of course for a list."""
        kept = current
        again = moved.touched
        if collected.function != "list":
            # Only the occurrence that is shown matters: losing another one changes nothing.
            lost = _lost(current[1], moved)
            if collected.function == "last":
                at = picked_order(moved.added_groups, [moved.added_orders])
                values = flat(moved.added, self.value.name).take(pa.array(at))
                newest = picked(values, moved.added_groups[at], moved.added_orders[at], len(hashes), "last")
                kept = tuple(pc.coalesce(new.cast(old.type), old) for new, old in zip(newest, current, strict=True))
                again = lost & ~newest[1].is_valid().to_numpy(zero_copy_only=False)
            else:
                again &= lost | current[1].is_null().to_numpy(zero_copy_only=False)
        if not again.any():
            return kept
        stale = pa.array(np.flatnonzero(again))
        found = self.collect(table, [group.take(stale) for group in groups], hashes[again], collected)
        place = pa.array((np.cumsum(again) - 1).clip(0))
        return tuple(
            pc.if_else(pa.array(again), new.cast(old.type).take(place), old)
            for new, old in zip(found, kept, strict=True)
        )

    def collect(self, table: StateTable, groups: Sequence[pa.Array], hashes: Ints, collected: Collected) -> Picked:
        """Read all values of these groups, whose `hashes` are in order."""
        found = pa.Table.from_batches(table.scan_prefix(prefix(hashes)), table.spec.run_schema).combine_chunks()
        keys = [flat(found, name) for name in self.groups.names]
        wide = [group.cast(key.type) for group, key in zip(groups, keys, strict=True)]
        of_row = owners(prefix(hashes), wide, prefix(flat(found, HASH).to_numpy()), keys)
        at = np.flatnonzero(of_row >= 0)
        return self.collect_rows(take_table(found, at), of_row[at], len(hashes), collected)

    def collect_rows(self, rows: pa.Table, of_row: Ints, count: int, collected: Collected, *before: Ints) -> Picked:
        """From stored rows of these of `count` groups. What is in `before` goes before the order of arrival."""
        value, orders = _spread(flat(rows, _ORDERS))
        if collected.distinct:  # a value is where its oldest occurrence is
            oldest = np.concatenate([[True], value[1:] != value[:-1]])[: len(value)].astype(np.bool_)
            value, orders = value[oldest], orders[oldest]
        more = [numbers[value] for numbers in before]
        at = picked_order(of_row[value], [*more, orders])
        if collected.distinct and more:
            # A value is stored once for each instant of a session that has it.
            kept = flat(rows, self.value.name).take(pa.array(value[at]))
            ids = row_ids([pa.array(of_row[value][at]), kept], len(at))
            at = at[np.sort(np.unique(ids, return_index=True)[1])]
        values = flat(rows, self.value.name).take(pa.array(value[at]))
        return picked(values, of_row[value][at], orders[at], count, collected.function)


def places_in_groups(groups: Ints) -> Ints:
    """The place of each row within its group. Groups are sorted."""
    places: Ints = np.arange(len(groups), dtype=np.int64) - np.searchsorted(groups, groups)
    return places


def picked_order(groups: Ints, orders: Sequence[Ints]) -> Ints:
    order: Ints = np.lexsort([*reversed(orders), groups])
    return order


def picked(values: pa.Array, groups: Ints, orders: Ints, count: int, function: str) -> Picked:
    """Of values that are sorted by group and order: for each of `count` groups the first, the last, or a list of all;
    NULL for groups without any."""
    numbers = np.arange(count, dtype=np.int64)
    start, stop = np.searchsorted(groups, numbers, "left"), np.searchsorted(groups, numbers, "right")
    none = start == stop
    if function == "list":
        ends = pa.array(np.append(start, len(groups)).astype(np.int32), mask=np.append(none, False))
        return pa.ListArray.from_arrays(ends, values), pa.nulls(count, pa.int64())
    at = pa.array(np.where(none, 0, start if function == "first" else stop - 1), mask=none)
    return values.take(at), pa.array(orders).take(at)


def _lost(orders: pa.Array, moved: Moved) -> Bools:
    """For which groups the occurrence with this order is not there any more."""
    lost: Bools = np.zeros(len(orders), dtype=np.bool_)
    here = pc.fill_null(orders, -1).to_numpy()[moved.lost_groups] == moved.lost_orders
    lost[moved.lost_groups[here]] = True
    return lost


def _spread(lists: pa.Array) -> tuple[Ints, Ints]:
    """The elements of all lists, and which list each is from."""
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    elements: Ints = lists.flatten().to_numpy().astype(np.int64)
    return np.repeat(np.arange(len(lists), dtype=np.int64), sizes), elements


def _lists(of: Ints, elements: Ints, count: int) -> pa.Array:
    """The other way round; elements of one list in ascending order."""
    order = np.lexsort([elements, of])
    ends = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=count))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(elements[order]))
