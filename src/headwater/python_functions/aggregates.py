"""Aggregate functions in the workers: with accumulators that are stored and updated, or over all rows of a group."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.python_functions.accumulators import StoredAccumulator, decoded, encoded, is_empty
from headwater.python_functions.run import Step
from headwater.python_functions.values import python_values

__all__ = ["AccumulatorStep", "AggregateStep"]

Ints = npt.NDArray[np.int64]
Arguments = tuple[Any, ...]
_DIGEST_BYTES = 8
_DIGESTS = 1 << 8 * _DIGEST_BYTES


@dataclass
class AccumulatorStep(Step):
    """An aggregate function whose accumulators are stored. If rows are `retracted`, it has a method for that.

    A batch is applied to an accumulator net: what it inserts and retracts again is not seen by the function; then rows
    are accumulated in the order in which they came, and retracted after that. A retraction from an accumulator without
    rows waits for its row. An accumulator that all rows have left is forgotten, and the next one starts afresh.
    """

    retracted: bool = False

    def accumulated(self, stored: pa.Array, rows: pa.Array, groups: Ints, weights: Ints) -> pa.Array:
        """The accumulators after these rows, which are structs of arguments. `groups` has for each row the place of its
        accumulator, in ascending order; its weight is 1, or -1 if it is retracted."""
        found, arguments = stored.to_pylist(), self._arguments(rows)
        bounds = [*np.flatnonzero(np.diff(groups, prepend=-1)).tolist(), len(groups)]
        for start, stop in pairwise(bounds):
            place = int(groups[start])
            found[place] = self._after(found[place], arguments[start:stop], weights[start:stop])
        return pa.array(found, stored.type)

    def merged(self, stored: pa.Array, groups: Ints, count: int) -> pa.Array:
        """One accumulator for each of `count` groups, of those with its number, in their order."""
        found: list[list[StoredAccumulator]] = [[] for _ in range(count)]
        for group, content in zip(groups.tolist(), stored.to_pylist(), strict=True):
            if content is not None:
                found[group].append(decoded(content, self.name))
        return pa.array([self._merged(parts) for parts in found], stored.type)

    def values(self, stored: pa.Array) -> pa.Array:
        """The result of each; of what has no accumulator, that of an empty one."""
        found = [self._created() if content is None else self._read(content) for content in stored.to_pylist()]
        results = []
        for accumulator in found:
            try:
                results.append(self.target.get_value(accumulator))
            except Exception as error:
                raise self._failed([accumulator], error, "get_value") from error
        return self._results_of(results, self.result, lambda index: [found[index]])

    def _arguments(self, rows: pa.Array) -> list[Arguments]:
        if not self.arguments:
            return [()] * len(rows)
        columns = [python_values(c, kind, self._refuse) for c, kind in zip(rows.flatten(), self.arguments, strict=True)]
        return list(zip(*columns, strict=True))

    def _created(self) -> Any:
        try:
            return self.target.create_accumulator()
        except Exception as error:
            raise self._failed([], error, "create_accumulator") from error

    def _read(self, content: bytes) -> Any:
        return decoded(content, self.name).accumulator

    def _after(self, content: bytes | None, rows: list[Arguments], weights: Ints) -> bytes | None:
        old = StoredAccumulator(self._created()) if content is None else decoded(content, self.name)
        added, taken, waiting = rows, list[Arguments](), old.waiting
        if waiting or weights.min() < 0:
            added, taken, waiting = _net(rows, weights, waiting)
        self._each("accumulate", old.accumulator, added)
        digests = old.digests + sum(map(_digest, added)) if self.retracted else 0
        new = self._without(
            taken, StoredAccumulator(old.accumulator, old.rows + len(added), digests % _DIGESTS, waiting)
        )
        if not is_empty(new.rows, new.digests):
            return encoded(new, self.name)
        return encoded(StoredAccumulator(self._created(), waiting=new.waiting), self.name) if new.waiting else None

    def _without(self, taken: list[Arguments], kept: StoredAccumulator) -> StoredAccumulator:
        """After these retractions. What is not there cannot be retracted: it waits, and meets its row when that
        comes."""
        rows, digests, early = kept.rows, kept.digests, []
        for row in taken:
            if is_empty(rows, digests):
                early.append(row)
            else:
                self._each("retract", kept.accumulator, [row])
                rows, digests = rows - 1, (digests - _digest(row)) % _DIGESTS
        return StoredAccumulator(kept.accumulator, rows, digests, (*kept.waiting, *early))

    def _each(self, method: str, accumulator: Any, rows: list[Arguments]) -> None:
        call, row = getattr(self.target, method), ()
        try:
            for row in rows:
                call(accumulator, *row)
        except Exception as error:
            raise self._failed(row, error, "" if method == "accumulate" else method) from error

    def _merged(self, parts: list[StoredAccumulator]) -> bytes | None:
        if not parts:
            return None
        accumulator, others = self._created(), [part.accumulator for part in parts]
        try:
            self.target.merge(accumulator, others)
        except Exception as error:
            raise self._failed(others, error, "merge") from error
        return encoded(StoredAccumulator(accumulator, sum(part.rows for part in parts)), self.name)


def _net(
    rows: list[Arguments], weights: Ints, waiting: Iterable[Arguments]
) -> tuple[list[Arguments], list[Arguments], tuple[Arguments, ...]]:
    """The rows that are inserted, those that are retracted, and the retractions that still wait for their row. Of equal
    rows the oldest is retracted."""
    # Values are compared as text: NaN is equal to NaN then, and lists can be counted.
    changes = [(repr(row), row, weight) for row, weight in zip(rows, weights.tolist(), strict=True)]
    early = [(repr(row), row) for row in waiting]
    before, here = Counter(key for key, _ in early), Counter(key for key, _, weight in changes if weight < 0)
    added = [r for key, r, weight in changes if weight > 0 and not _uses(before, key) and not _uses(here, key)]
    taken = [row for key, row, weight in changes if weight < 0 and _uses(here, key)]
    return added, taken, tuple(row for key, row in early if _uses(before, key))


def _uses(counts: Counter[str], key: str) -> bool:
    """Whether there is one left. Then there is one less."""
    if counts[key] <= 0:
        return False
    counts[key] -= 1
    return True


def _digest(row: Arguments) -> int:
    return int.from_bytes(hashlib.blake2b(repr(row).encode(), digest_size=_DIGEST_BYTES).digest(), "big")


@dataclass
class AggregateStep(Step):
    """An aggregate function over all rows of a group, in the order in which they came. The only column is an array of
    rows, of which the first `arity` fields are arguments."""

    arity: int = 0

    def _evaluated(self, columns: Sequence[pa.Array], rows: int) -> pa.Array:
        (groups,), (kind,) = columns, self.arguments
        evaluate = self._accumulated if self.style == "row" else self._vectorised
        found = [
            evaluate([row[: self.arity] for row in group or ()]) for group in python_values(groups, kind, self._refuse)
        ]
        return self._converted(found, self.result, columns)

    def _accumulated(self, rows: list[Sequence[Any]]) -> Any:
        row: Sequence[Any] = ()
        try:
            accumulator = self.target.create_accumulator()
            for row in rows:
                self.target.accumulate(accumulator, *row)
            return self.target.get_value(accumulator)
        except Exception as error:
            raise self._failed(row, error) from error

    def _vectorised(self, rows: list[Sequence[Any]]) -> Any:
        import pandas as pd

        columns = [pd.Series([row[place] for row in rows]) for place in range(self.arity)]
        try:
            result = self._of_columns(columns) if hasattr(self.target, "accumulate") else self.function(*columns)
            return result.item() if hasattr(result, "item") else result  # a number of numpy
        except Exception as error:
            raise self._failed([f"{len(rows)} rows"], error) from error

    def _of_columns(self, columns: list[Any]) -> Any:
        """A vectorised function as a class: it accumulates whole columns, once."""
        accumulator = self.target.create_accumulator()
        self.target.accumulate(accumulator, *columns)
        return self.target.get_value(accumulator)
