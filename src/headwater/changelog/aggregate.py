"""GROUP BY over a changelog: retractions are exact.

Every aggregate is made of accumulators, which the JVM has already multiplied by the row's weight (+1 inserted, -1
retracted) and, where it could, summed per group. A step adds them to the stored ones and emits the groups whose
*result* changed: +I for a new group, -U/+U for a changed one, -D for one whose last row was retracted. A group with
more retractions than inserts, or of other rows, is kept, but not shown: what is missing may come later, and the result
may not depend on which batch it comes with.

    COUNT         a sum of weights                SUM, AVG      a weighted sum and the number of non-null values
    MIN, MAX      of inserts: the best so far     DISTINCT, and MIN, MAX with retractions: a `Multiset`
    FIRST_VALUE, LAST_VALUE   of inserts: the value; with retractions, and LISTAGG, …: an `OrderedMultiset`
    VAR, STDDEV   exact sums of the values and of their squares
    functions of the user's   what the function accumulates (`user_aggregate`), or a list of all values
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.accumulate import ROWS, Accumulator, Kept, to_store
from headwater.changelog.columns import Bools, Ints, concat, constant, equal_rows, flat, widen
from headwater.changelog.grouping import Groups, group_rows
from headwater.changelog.kinds import DELETE, HASH, INSERT, KIND, KIND_TYPE, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.multiset import GROUP, Multiset
from headwater.changelog.operator import State, Time
from headwater.changelog.ordered_values import ARRIVAL, Collected, OrderedMultiset, order_of, places_in_groups
from headwater.changelog.reduce import better, checked_cast
from headwater.changelog.results import AggregateResult
from headwater.state.table import TableSpec

__all__ = ["ROWS", "AggregateOperator", "Extreme"]

_ARRIVALS = "__hw_arrivals"
"""How many rows of a group were ever inserted or retracted: the order of the next one."""


@dataclass(frozen=True)
class Extreme:
    """MIN or MAX kept by rescanning `multiset` when the best value was retracted; `accumulator` holds the best."""

    accumulator: str
    multiset: str
    function: str  # min or max


@dataclass(frozen=True)
class AggregateOperator:
    """Input columns: HASH of the groups, the groups, ROWS, the accumulators; and for each multiset its columns.

    A row may hold a list of values of a multiset, and of their hashes, instead of one: then it stands for as many rows.
    `ones` are input columns that are not sent because they are 1 in every row. An accumulator that is computed from a
    multiset's transitions names it in `Accumulator.multiset`.
    """

    groups: pa.Schema
    accumulators: tuple[Accumulator, ...]
    results: tuple[AggregateResult, ...]
    before: bool
    multisets: tuple[Multiset, ...] = ()
    extremes: tuple[Extreme, ...] = ()
    collected: tuple[Collected, ...] = ()
    ones: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        values = pa.schema([(a.name, a.stored_type) for a in self._all])
        return (TableSpec("groups", self.groups, values), *(m.spec for m in self.multisets))

    @property
    def output(self) -> pa.Schema:
        return pa.schema([*self.groups, *((r.name, r.type) for r in self.results), pa.field(KIND, KIND_TYPE)])

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        sent = [column for a in self.accumulators for column in a.columns if column[0] not in self.ones]
        rows = [] if ROWS in self.ones else [(ROWS, pa.int64())]
        remembered = [f for m in self.multisets for f in ((m.value.name, m.value.type), (m.weight, pa.int64()))]
        hashes = [(m.hash_, pa.int64()) for m in self.multisets]
        arrival = [(ARRIVAL, pa.int64())] if self._by_arrival else []
        # Functions of the user's may share the rows of their arguments.
        columns = dict.fromkeys([*rows, *sent, *remembered, *hashes, *arrival])
        return (pa.schema([(HASH, pa.int64()), *self.groups, *columns]),)

    @property
    def _by_arrival(self) -> bool:
        return bool(self.collected) or any(a.by_arrival for a in self.accumulators)

    @property
    def timed(self) -> bool:
        return False

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        """1. Reduce the batch to one row per group. 2. Run the multisets. 3. Add to what is stored. 4. Rescan extremes
        that were lost. 5. Store. 6. Emit what changed."""
        (rows,) = inputs
        for name in self.ones:
            rows = rows.append_column(name, constant(1, rows.num_rows, pa.int64()))
        keys = [flat(rows, n) for n in self.groups.names]
        # One row per group and task arrives; several tasks may have rows of a group.
        grouped = group_rows(flat(rows, HASH).to_numpy(), keys)
        first, count = pa.array(grouped.first), len(grouped)
        groups = [key.take(first) for key in keys]
        hashes: Ints = flat(rows, HASH).to_numpy()[grouped.first]
        batch = self._reduced(rows, grouped)  # 1
        plain = [m for m in self.multisets if not isinstance(m, OrderedMultiset)]
        # Multisets first: an accumulator over DISTINCT values changes only with values that appeared or disappeared,
        # which the multiset alone can tell.
        moved = {m.name: m.apply(state[m.name], *m.unpacked(rows, grouped.of_row)) for m in plain}  # 2
        for a in (a for a in self.accumulators if a.multiset in moved):
            batch[a.name] = a.from_transitions(moved[a.multiset], self._multiset(a.multiset), count)
        found = state["groups"].lookup(hashes, groups)
        old = {a.name: a.load(flat(found.values, a.name)) for a in self._all}
        new = {a.name: a.add(old[a.name], batch.get(a.name)) for a in self._all}  # 3
        new |= self._collect(state, rows, grouped, groups, old)
        for extreme in self.extremes:  # 4
            current = old[extreme.accumulator]
            new[extreme.accumulator] = self._extreme(state, extreme, moved[extreme.multiset], current, groups, hashes)
        # A group may be stored with no rows in it: retractions may overtake the rows they retract, and are
        # remembered.
        known: Bools = found.hit & (pc.fill_null(old[ROWS], 0).to_numpy() > 0)
        alive: Bools = new[ROWS].to_numpy() > 0
        left: Bools = new[ROWS].to_numpy() != 0
        # A group is forgotten only if nothing of it remains, so that an emptied group starts from exact zeros.
        # Even if the number of rows is the same: as many may have been inserted as retracted, and yet others.
        for a in self.accumulators:
            left |= a.remains(new[a.name])
        old_results, new_results = self._results(old, count), self._results(new, count)
        columns = [to_store(kept) for kept in new.values()]
        unchanged = equal_rows([flat(found.values, name) for name in new], columns, count)
        # What did not change is not written again: state grows with changes, not with batches.
        touched: Bools = np.where(left, ~(found.hit & unchanged), found.hit)
        index = pa.array(np.flatnonzero(touched))
        stored = [column.take(index) for column in columns]
        state["groups"].write(hashes[touched], [g.take(index) for g in groups], stored, ~left[touched])  # 5
        # Compared as results, not as accumulators: an average may stay the same while sum and count change.
        same = equal_rows(old_results, new_results, count)
        return self._changes(groups, old_results, new_results, known, alive, same)  # 6

    @property
    def _all(self) -> tuple[Accumulator, ...]:
        arrivals = (Accumulator(_ARRIVALS, pa.int64(), "arrivals"),) if self.collected else ()
        return Accumulator(ROWS, pa.int64(), "sum"), *self.accumulators, *arrivals

    def _reduced(self, rows: pa.Table, grouped: Groups) -> dict[str, Kept]:
        """The plain accumulators of the batch, one value per group."""
        plain = [a for a in self._all if a.sent or a.function == "arrivals"]
        numbered = rows.append_column(GROUP, pa.array(grouped.of_row))
        # Every row a group of its own is the usual case behind a pre-aggregation: nothing to reduce then.
        if len(grouped) < rows.num_rows:
            return {a.name: a.per_group(numbered, len(grouped)) for a in plain}
        first = pa.array(grouped.first)
        return {
            a.name: checked_cast(flat(rows, a.name).take(first), a.type)
            if a.is_column
            else a.per_group(numbered, len(grouped))
            for a in plain
        }

    def _collect(
        self, state: State, rows: pa.Table, grouped: Groups, groups: Sequence[pa.Array], old: dict[str, Kept]
    ) -> dict[str, Kept]:
        """The accumulators of values that are kept in the order they came."""
        found: dict[str, Kept] = {}
        # The rows of a group lie together in the state under the hash of its key, so the first row stands for all of
        # them.
        hashes = flat(rows, HASH).to_numpy()[grouped.first]
        for multiset in (m for m in self.multisets if isinstance(m, OrderedMultiset)):
            table, orders = state[multiset.name], _orders(rows, grouped, old[_ARRIVALS])
            moved = multiset.apply_in_order(table, rows, grouped.of_row, orders, len(grouped))
            for collected in (c for c in self.collected if c.multiset == multiset.name):
                names = collected.accumulator, order_of(collected.accumulator)
                current = old[names[0]], old.get(names[1], pa.nulls(len(grouped), pa.int64()))
                new = multiset.picked_again(table, groups, hashes, collected, moved, current)
                found |= {name: kept for name, kept in zip(names, new, strict=True) if name in old}
        return found

    def _multiset(self, name: str) -> Multiset:
        return next(m for m in self.multisets if m.name == name)

    def _extreme(
        self,
        state: State,
        extreme: Extreme,
        transitions: pa.Table,
        current: pa.Array,
        groups: Sequence[pa.Array],
        hashes: Ints,
    ) -> pa.Array:
        """Best of the stored and the appeared values, unless the stored one disappeared: then look at all values."""
        multiset, count = self._multiset(extreme.multiset), len(hashes)
        # +1 where the first occurrence of a value appeared, -1 where the last one disappeared; a value that is there
        # several times is none of them.
        weights = transitions.column(multiset.weight)
        reduction = Accumulator(multiset.value.name, multiset.value.type, extreme.function)
        best = reduction.per_group(transitions.filter(pc.greater(weights, 0)), count)
        lost = reduction.per_group(transitions.filter(pc.less(weights, 0)), count)
        answer = better(current, best, extreme.function)
        same = equal_rows([current], [lost], count) & pc.is_valid(lost).to_numpy(zero_copy_only=False)
        # Only where the best value itself was retracted is its successor looked for among all values of the group.
        if not same.any():
            return answer
        stale = pa.array(np.flatnonzero(same))
        asked = [group.take(stale) for group in groups]
        rescanned = multiset.extremes(state[multiset.name], asked, hashes[same], extreme.function)
        return pc.replace_with_mask(answer, pa.array(same), rescanned.cast(answer.type))

    def _results(self, accumulators: dict[str, Kept], count: int) -> list[pa.Array]:
        return [r.compute(accumulators, count) for r in self.results]

    def _changes(
        self,
        groups: list[pa.Array],
        old: list[pa.Array],
        new: list[pa.Array],
        hit: Bools,
        alive: Bools,
        same: Bools,
    ) -> pa.Table:
        changed = hit & alive & ~same
        parts = [
            self._part(groups, new, ~hit & alive, INSERT),
            self._part(groups, new, changed, UPDATE_AFTER),
            self._part(groups, old, hit & ~alive, DELETE),
        ]
        # Retractions leave before what replaces them: a consumer that sees only part of the batch has no group twice.
        if self.before:
            parts.insert(0, self._part(groups, old, changed, UPDATE_BEFORE))
        return concat(parts)

    def _part(self, groups: list[pa.Array], results: list[pa.Array], where: Bools, kind: int) -> pa.Table:
        index = pa.array(np.flatnonzero(where))
        columns = [c.take(index) for c in (*groups, *results)]
        schema = widen(self.output)
        columns = [c.cast(f.type) for c, f in zip(columns, schema, strict=False)]
        return pa.table([*columns, constant(kind, len(index), KIND_TYPE)], schema=schema)


def _orders(rows: pa.Table, grouped: Groups, arrivals: pa.Array) -> Ints:
    """The order of each row among all that ever came to its group."""
    numbers = np.arange(rows.num_rows, dtype=np.int64)
    came = flat(rows, ARRIVAL).to_numpy() if ARRIVAL in rows.column_names else numbers
    # The shuffle hands over rows of different tasks in any order; the number they were given before it puts them back
    # into the order in which they were read.
    in_order = np.lexsort([numbers, came, grouped.of_row])
    orders: Ints = np.empty(rows.num_rows, dtype=np.int64)
    orders[in_order] = places_in_groups(grouped.of_row[in_order])
    orders += pc.fill_null(arrivals, 0).to_numpy()[grouped.of_row]
    return orders
