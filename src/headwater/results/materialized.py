"""The rows of a result as of now, kept up to date by changes. Bounded: more rows than allowed are an error."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.changelog.kinds import DELETE, KIND, UPDATE_BEFORE
from headwater.dates import numbered_values
from headwater.errors import ResultTooLargeError

if TYPE_CHECKING:
    from headwater.plan.query import Ordering, PlannedQuery

__all__ = ["HeldRows", "final", "kinds_of"]

MAX_BYTES = 1 << 30
_Raw = tuple[Any, ...]


class HeldRows:
    """Rows of a query that only inserts stay Arrow batches; others are found by their key, or else as a whole. `schema`
    is that of the rows, without the kind of changes. With `newest`, only so many of the last inserts are kept, for a
    screen."""

    def __init__(self, query: PlannedQuery, schema: pa.Schema, limit: int, newest: int | None = None) -> None:
        self._schema = schema
        self._limit = limit
        self._newest = newest
        self._updating = query.updating
        self._batches: deque[pa.RecordBatch] = deque()
        self._rows: dict[Any, list[_Raw] | None] = {}
        self._keyed = query.key is not None
        self._key_of = _key_function(
            [schema.names.index(n) for n in (schema.names if query.key is None else query.key)]
        )
        self.count = 0
        self._seen = self._seen_bytes = 0

    def apply(self, batch: pa.RecordBatch) -> None:
        if self._updating:
            self._change(batch)
        else:
            self._append(batch)
        self._seen += batch.num_rows
        self._seen_bytes += batch.nbytes
        if self.count > self._limit:
            raise _too_large(f"{self._limit:,} rows")
        if self.count * self._seen_bytes > MAX_BYTES * max(self._seen, 1):  # rows of the size that they had so far
            raise _too_large(f"{MAX_BYTES >> 20:,} MB")

    def _append(self, batch: pa.RecordBatch) -> None:
        columns = [batch.column(name) for name in self._schema.names]
        self._batches.append(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        self.count += batch.num_rows
        # Whole batches only: cutting one would copy it for a few rows that nobody sees.
        while self._newest is not None and self.count - self._batches[0].num_rows >= self._newest:
            self.count -= self._batches.popleft().num_rows

    def _change(self, batch: pa.RecordBatch) -> None:
        """A row that is replaced within a batch keeps its place, so that a screen does not jump."""
        emptied = []
        columns = [numbered_values(batch.column(name)) for name in self._schema.names]
        for kind, *row in zip(kinds_of(batch), *columns, strict=True):
            raw = tuple(row)
            key = self._key_of(raw)
            same = self._rows.get(key) or []
            # Every row is counted, also under a key: one that moves from one state partition to another comes and goes
            # in two tasks, and what comes may arrive before what goes.
            now = _without(same, raw) if kind in (UPDATE_BEFORE, DELETE) else [*same, raw]
            self._rows[key] = now or None
            self.count += self._shown(now) - self._shown(same)
            if not now:
                # Removed after the batch: the update behind a retraction would otherwise move its row to the end of the
                # table.
                emptied.append(key)
        for key in emptied:
            if self._rows.get(key, ()) is None:
                del self._rows[key]

    def _shown(self, same: Sequence[_Raw]) -> int:
        return min(len(same), 1) if self._keyed else len(same)

    def table(self, first: int | None = None) -> pa.Table:
        """All rows, or the first so many of them."""
        if not self._updating:
            return pa.Table.from_batches(list(self._batches), self._schema)
        held = (same[-1:] if self._keyed else same for same in self._rows.values() if same)
        rows = list(islice((row for same in held for row in same), first))
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self._schema)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self._schema)


def _without(rows: Sequence[_Raw], gone: _Raw) -> list[_Raw]:
    """Less the row that is retracted; the oldest, if there is none like it."""
    wanted = _hashable(gone)
    place = next((place for place, row in enumerate(rows) if _hashable(row) == wanted), 0)
    return [*rows[:place], *rows[place + 1 :]]


def kinds_of(batch: pa.RecordBatch) -> list[int]:
    return batch.column(KIND).to_pylist() if KIND in batch.schema.names else [0] * batch.num_rows


def final(table: pa.Table, query: PlannedQuery) -> pa.Table:
    """As ORDER BY, OFFSET and LIMIT of the query want it, with the columns that it shows."""
    names = [column.name for column in query.columns]
    if query.any_rows:  # they were cut as they came
        return table.select(names)
    if query.order:
        table = table.take(_sorted(table, query.order))
    length = table.num_rows if query.limit is None else query.limit
    return table.slice(query.offset, length).select(names)


def _sorted(table: pa.Table, order: Sequence[Ordering]) -> list[int]:
    """By one column after the other, the last first: sorting keeps the order of what is equal."""
    places = list(range(table.num_rows))
    for part in reversed(order):
        values = numbered_values(table.column(part.column))
        ranked = [_rank(value, part) for value in values]
        # Column by column from the last, because reverse=True keeps the sort stable and a tuple could not have one
        # direction per column.
        places.sort(key=ranked.__getitem__, reverse=part.descending)
    return places


def _rank(value: Any, part: Ordering) -> tuple[bool, bool, Any]:
    """NULLs where they are wanted, whichever way is sorted; NaN is larger than all numbers."""
    nulls_are_largest = part.nulls_first is part.descending
    if value is None:
        return nulls_are_largest, False, 0
    if value != value:
        return not nulls_are_largest, True, 0
    return not nulls_are_largest, False, value


def _key_function(places: Sequence[int]) -> Callable[[_Raw], Any]:
    return lambda row: tuple(_hashable(row[place]) for place in places)


def _hashable(value: Any) -> Any:
    """Equal values of a column, and no others, give equal results; NaN equals itself."""
    match value:
        case list() | tuple():
            return tuple(map(_hashable, value))
        case dict():
            return tuple(map(_hashable, value.values()))
        case float() if value != value:
            return "NaN"
    return value


def _too_large(what: str) -> ResultTooLargeError:
    return ResultTooLargeError(
        f"The result has more than {what}, which is as much as is held in memory.",
        hint="Add a LIMIT or a WHERE, read changes one by one, show it as csv or jsonl, or write it to a table with "
        "INSERT INTO. 'sql-client.execution.max-table-result.rows' is the number of rows that may be held.",
    )
