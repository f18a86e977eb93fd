"""What the tests of operators with several inputs share: histories of changes, restarts, and a reader of the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from changelog_model import empty_state, small_hash, table
from hypothesis import strategies as st

from headwater.changelog.columns import widen
from headwater.changelog.kinds import DELETE, HASH, INSERT, KIND, KIND_TYPE, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.operator import Operator, State, Time
from headwater.state.runs import Run
from headwater.state.table import StateTable

Row = tuple[Any, ...]
Change = tuple[int, Row]
Hasher = Callable[[Row], int]


def key_hash(places: Sequence[int], spread: int = 1 << 20) -> Hasher:
    """As the host makes them: the key's hash in the upper half, one of the whole row in the lower."""

    def hashed(row: Row) -> int:
        upper = small_hash(tuple(row[p] for p in places), spread)
        return (upper << 32) | (small_hash(row, spread) & 0xFFFFFFFF)

    return hashed


def group_hash(places: Sequence[int], spread: int = 1 << 20) -> Hasher:
    """A hash of the key alone."""
    return lambda row: small_hash(tuple(row[p] for p in places), spread) << 32


def changes_table(columns: pa.Schema, changes: Iterable[Change], hashed: Hasher) -> pa.Table:
    """An input of an operator: HASH, the columns, KIND."""
    schema = pa.schema([(HASH, pa.int64()), *columns, (KIND, KIND_TYPE)])
    return table(schema, [(hashed(row), *row, kind) for kind, row in changes])


def reopened(state: State) -> dict[str, StateTable]:
    """The state as a process finds it after a restart: nothing but what is stored."""
    return {name: StateTable(t.spec, [_stored(run) for run in t.runs]) for name, t in state.items()}


def live_rows(state: State) -> int:
    """How many rows the tables hold, tombstones and what they hide not counted."""
    everything = np.array([-(1 << 63)]), np.array([(1 << 63) - 1])
    return sum(batch.num_rows for table in state.values() for batch in table.scan_range(*everything))


def _stored(run: Run) -> Run:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, run.schema) as writer:
        for batch in run.batches:
            writer.write_batch(batch)
    reader = pa.ipc.open_file(sink.getvalue())
    return Run(reader.schema, [reader.get_batch(n) for n in range(reader.num_record_batches)])


class Live:
    """The rows of one input: makes a full changelog of what is done to them."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def change(self, action: str, row: Row, number: int) -> list[Change]:
        if action == "insert" or not self.rows:
            self.rows.append(row)
            return [(INSERT, row)]
        place = number % len(self.rows)
        old = self.rows[place]
        if action == "delete":
            self.rows.pop(place)
            return [(DELETE, old)]
        self.rows[place] = row
        return [(UPDATE_BEFORE, old), (UPDATE_AFTER, row)]


def actions(row: st.SearchStrategy[Row]) -> st.SearchStrategy[tuple[str, Row, int]]:
    """What may be done to a table. Inserts are as frequent as updates and deletes together."""
    return st.tuples(st.sampled_from(["insert", "insert", "update", "delete"]), row, st.integers(0, 7))


class Result:
    """The result as a reader has it who applies all changes in order, and insists that they are consistent."""

    def __init__(self) -> None:
        self.rows: Counter[Row] = Counter()
        self.read: list[Change] = []

    def apply(self, changes: pa.Table) -> list[Change]:
        read = [(row[KIND], tuple(v for name, v in row.items() if name != KIND)) for row in _rows(changes)]
        for kind, row in read:
            if kind in (INSERT, UPDATE_AFTER):
                self.rows[row] += 1
            else:
                assert self.rows[row] > 0, f"{row} was not there"
                self.rows[row] -= 1
        added = {row for kind, row in read if kind in (INSERT, UPDATE_AFTER)}
        both = added & {row for kind, row in read if kind not in (INSERT, UPDATE_AFTER)}
        assert not both, f"{both} is retracted and added at once"
        self.rows = +self.rows
        self.read += read
        return read


def _rows(changes: pa.Table) -> list[dict[str, Any]]:
    return [{name: _hashable(value) for name, value in row.items()} for row in changes.to_pylist()]


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_hashable(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, _hashable(v)) for k, v in value.items())
    return "NaN" if isinstance(value, float) and value != value else value


class Played:
    """An operator with its state and its result."""

    def __init__(self, operator: Operator, hashers: Sequence[Hasher], columns: Sequence[pa.Schema]) -> None:
        self.operator = operator
        self.state = empty_state(operator)
        self.result = Result()
        self.hashers = hashers
        self.columns = columns
        self.batch = 0

    def timed(self, time: Time) -> Time:
        """The time of the next batch."""
        self.batch += 1
        return replace(time, batch=self.batch)

    def feed(self, *changes: Sequence[Change], time: Time | None = None) -> list[Change]:
        inputs = tuple(
            changes_table(schema, given, hashed)
            for schema, given, hashed in zip(self.columns, changes, self.hashers, strict=True)
        )
        emitted = self.operator.step(self.state, inputs, self.timed(time or Time()))
        assert emitted.schema.names == self.operator.output.names
        return self.result.apply(emitted.cast(self.operator.output))

    def feed_time(self, time: Time) -> list[Change]:
        """A step without rows, with all columns that the operator asks for."""
        nothing = tuple(widen(schema).empty_table() for schema in self.operator.inputs)
        return self.result.apply(self.operator.step(self.state, nothing, self.timed(time)).cast(self.operator.output))

    def restart(self) -> None:
        self.state = reopened(self.state)

    @property
    def stored(self) -> int:
        return live_rows(self.state)


def shuffled(changes: list[Change], random: Random) -> list[Change]:
    """Rows of a batch come in any order; a row and its retraction, too."""
    changes = list(changes)
    random.shuffle(changes)
    return changes


_connection = duckdb.connect()
_connection.execute("SET threads = 1")


def oracle(query: str, **tables: tuple[pa.Schema, Sequence[Row]]) -> Counter[Row]:
    """What DuckDB answers over these tables."""
    for name, (schema, rows) in tables.items():
        _connection.register(name, table(schema, rows))
    return Counter(tuple(_hashable(v) for v in row) for row in _connection.execute(query).fetchall())
