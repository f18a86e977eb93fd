"""What the tests of operators share: tables from plain rows, states, and replaying a changelog as its reader would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.changelog.kinds import DELETE, INSERT, KIND, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.operator import Operator
from headwater.state.table import StateTable

Row = Mapping[str, Any]


def table(schema: pa.Schema, rows: Iterable[Sequence[Any]]) -> pa.Table:
    """A table from tuples in the order of the schema."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def empty_state(operator: Operator) -> dict[str, StateTable]:
    return {spec.name: StateTable(spec) for spec in operator.tables}


def small_hash(value: Any, spread: int) -> int:
    """The same for equal values, with as many collisions as wanted, also negative."""
    return (sum(repr(value).encode()) % spread) - spread // 2


class Reader:
    """Applies changes to a table keyed by `key` and insists that they are consistent with it."""

    def __init__(self, *key: str) -> None:
        self.key = key
        self.rows: dict[tuple[Any, ...], dict[str, Any]] = {}

    def read(self, changes: pa.Table) -> list[tuple[int, dict[str, Any]]]:
        """Every -U and -D must carry the full row that is there; every +I must be new. Answers with what was read."""
        seen = []
        for row in changes.to_pylist():
            kind = row.pop(KIND)
            seen.append((kind, row))
            key = tuple(row[name] for name in self.key)
            if kind in (UPDATE_BEFORE, DELETE):
                assert self.rows.pop(key, None) == row, f"{row} was not there"
            elif kind == INSERT:
                assert key not in self.rows, f"{row} is not new"
                self.rows[key] = row
        for kind, row in seen:
            if kind == UPDATE_AFTER:
                self.rows[tuple(row[name] for name in self.key)] = row
        return seen

    def values(self) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """What is there now: by key, the other columns."""
        return {k: tuple(v for name, v in row.items() if name not in self.key) for k, row in self.rows.items()}
