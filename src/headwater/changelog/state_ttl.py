"""State that is removed when it has not been used for a time: `table.exec.state.ttl`, and the hint STATE_TTL.

All state of a key lies under one prefix of hashes in every table of an operator, so a key is forgotten as a whole, and
never in part: what an operator relies on between its tables holds. A key is used when a row with it comes, on whatever
input. The sides of a join may have a TTL each, and be forgotten apart. Keys that share a prefix are forgotten together,
when none of them has been used.

Nothing is emitted for what is forgotten. State is removed in batches that have rows for its state partition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import Ints, flat
from headwater.changelog.counted_rows import distinct, remove_rows
from headwater.changelog.join import JoinOperator
from headwater.changelog.kinds import HASH
from headwater.changelog.operator import Operator, State, Time
from headwater.changelog.timers import TimeIndex
from headwater.state.table import TableSpec

__all__ = ["Expiring", "Retention", "all_together", "sides_apart"]

_KEY, _USED = "__hw_key", "__hw_used"


@dataclass(frozen=True)
class Retention:
    """State tables that are forgotten together, `ttl` microseconds of processing time after the last row with a key has
    come on one of `inputs`."""

    name: str
    ttl: int
    tables: tuple[str, ...]
    inputs: tuple[int, ...]

    @property
    def used(self) -> TableSpec:
        """When a key was used last."""
        return TableSpec(f"used{self.name}", pa.schema([(_KEY, pa.int64())]), pa.schema([(_USED, pa.int64())]))

    @property
    def expiry(self) -> TimeIndex:
        return TimeIndex(f"expiry{self.name}", pa.schema([(_KEY, pa.int64())]))


def all_together(operator: Operator, ttl: int) -> tuple[Retention, ...]:
    names = tuple(spec.name for spec in operator.tables)
    return (Retention("", ttl, names, tuple(range(len(operator.inputs)))),)


def sides_apart(join: JoinOperator, ttls: tuple[int, int]) -> tuple[Retention, ...]:
    """The sides of a join with a TTL each, where 0 is forever. What decides whether a row of the other side has a match
    is kept for as long as that row: else the row would be retracted as one that has none, and never was."""
    found = []
    for place, (side, other) in enumerate((("left", "right"), ("right", "left"))):
        # Rows of a preserved side are emitted alone if they have no match here.
        deciding = other in join.preserved
        ttl = ttls[place] if not deciding else max(ttls) if all(ttls) else 0
        tables = tuple(spec.name for spec in join.tables if spec.name in (side, f"{side}_keys"))
        if ttl:
            found.append(Retention(f"_{side}", ttl, tables, (0, 1) if deciding else (place,)))
    return tuple(found)


@dataclass(frozen=True)
class Expiring:
    """`operator`, which is not timed, with state that is not kept forever."""

    operator: Operator
    retentions: tuple[Retention, ...]

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return self.operator.inputs

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        own = (spec for part in self.retentions for spec in (part.used, part.expiry.spec))
        return (*self.operator.tables, *own)

    @property
    def output(self) -> pa.Schema:
        return self.operator.output

    @property
    def timed(self) -> bool:
        return False

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        """1. Forget keys that were not used for too long. 2. Run the operator. 3. Note which keys were used."""
        for part in self.retentions:
            self._forget(state, part, time.processing)  # 1
        changes = self.operator.step(state, inputs, time)  # 2
        for part in self.retentions:
            hashes = [flat(inputs[place], HASH).to_numpy() >> 32 for place in part.inputs]
            self._note(state, part, distinct(np.concatenate(hashes)), time.processing)  # 3
        return changes

    def _note(self, state: State, part: Retention, prefixes: Ints, now: int) -> None:
        """A key that is used again has one entry all the same: a new one is made when that is due."""
        used = state[part.used.name]
        keys, none = pa.array(prefixes), np.zeros(len(prefixes), dtype=np.bool_)
        known = used.lookup(prefixes << 32, [keys]).hit
        used.write(prefixes << 32, [keys], [pa.array(np.full(len(prefixes), now, dtype=np.int64))], none)
        self._expect(state, part, prefixes[~known], np.full(int((~known).sum()), now + part.ttl, dtype=np.int64))

    def _expect(self, state: State, part: Retention, prefixes: Ints, due: Ints) -> None:
        part.expiry.write(state[part.expiry.name], due, prefixes, [pa.array(prefixes)])

    def _forget(self, state: State, part: Retention, now: int) -> None:
        entries = part.expiry.take(state[part.expiry.name], now)
        if not entries.num_rows:
            return
        prefixes = np.sort(flat(entries, _KEY).to_numpy())
        noted = state[part.used.name].lookup(prefixes << 32, [pa.array(prefixes)]).values
        used = flat(noted, _USED).fill_null(0).to_numpy()
        # An entry is not moved when its key is used again; only when it is due does it turn out whether the key is.
        over = used + part.ttl <= now
        self._expect(state, part, prefixes[~over], used[~over] + part.ttl)
        gone = distinct(prefixes[over])
        for spec in (*(spec for spec in self.operator.tables if spec.name in part.tables), part.used):
            table = state[spec.name]
            found = pa.Table.from_batches(table.scan_prefix(gone), spec.run_schema).combine_chunks()
            remove_rows(table, found)
