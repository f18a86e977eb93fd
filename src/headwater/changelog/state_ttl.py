"""State that is removed when it has not been used for a time: `table.exec.state.ttl`.

All state of a key lies under one prefix of hashes in every table of an operator, so a key is forgotten as a whole, and
never in part: what an operator relies on between its tables holds. A key is used when a row with it comes, on whatever
input. Keys that share a prefix are forgotten together, when none of them has been used.

Nothing is emitted for what is forgotten. State is removed in batches that have rows for its state partition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import Ints, flat
from headwater.changelog.counted_rows import distinct, remove_rows
from headwater.changelog.kinds import HASH
from headwater.changelog.operator import Operator, State, Time
from headwater.changelog.timers import TimeIndex
from headwater.state.table import TableSpec

__all__ = ["Expiring"]

_KEY, _USED = "__key", "__used"


@dataclass(frozen=True)
class Expiring:
    """`operator`, which is not timed, with state that is kept for `ttl` microseconds of processing time."""

    operator: Operator
    ttl: int

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return self.operator.inputs

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        return (*self.operator.tables, self._used, self._expiry.spec)

    @property
    def output(self) -> pa.Schema:
        return self.operator.output

    @property
    def timed(self) -> bool:
        return False

    @property
    def _used(self) -> TableSpec:
        """When a key was used last."""
        return TableSpec("__used", pa.schema([(_KEY, pa.int64())]), pa.schema([(_USED, pa.int64())]))

    @property
    def _expiry(self) -> TimeIndex:
        return TimeIndex("__expiry", pa.schema([(_KEY, pa.int64())]))

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        """1. Forget keys that were not used for too long. 2. Run the operator. 3. Note which keys were used."""
        self._forget(state, time.processing)  # 1
        changes = self.operator.step(state, inputs, time)  # 2
        prefixes = distinct(np.concatenate([flat(rows, HASH).to_numpy() >> 32 for rows in inputs]))
        self._note(state, prefixes, time.processing)  # 3
        return changes

    def _note(self, state: State, prefixes: Ints, now: int) -> None:
        """A key that is used again has one entry all the same: a new one is made when that is due."""
        keys, none = pa.array(prefixes), np.zeros(len(prefixes), dtype=np.bool_)
        known = state["__used"].lookup(prefixes << 32, [keys]).hit
        state["__used"].write(prefixes << 32, [keys], [pa.array(np.full(len(prefixes), now, dtype=np.int64))], none)
        self._expect(state, prefixes[~known], np.full(int((~known).sum()), now + self.ttl, dtype=np.int64))

    def _expect(self, state: State, prefixes: Ints, due: Ints) -> None:
        self._expiry.write(state["__expiry"], due, prefixes, [pa.array(prefixes)])

    def _forget(self, state: State, now: int) -> None:
        entries = self._expiry.due(state["__expiry"], now)
        if not entries.num_rows:
            return
        self._expiry.remove(state["__expiry"], entries)
        prefixes = np.sort(flat(entries, _KEY).to_numpy())
        used = flat(state["__used"].lookup(prefixes << 32, [pa.array(prefixes)]).values, _USED).fill_null(0).to_numpy()
        over = used + self.ttl <= now
        self._expect(state, prefixes[~over], used[~over] + self.ttl)
        gone = distinct(prefixes[over])
        for spec in (*self.operator.tables, self._used):
            table = state[spec.name]
            found = pa.Table.from_batches(table.scan_prefix(gone), spec.run_schema).combine_chunks()
            remove_rows(table, found)
