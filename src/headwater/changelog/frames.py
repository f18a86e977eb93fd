"""Aggregates over frames of sorted rows: what OVER computes for each row.

Rows are sorted by partition and order. A frame is given by the place of its first row and the place behind its last
one, for every row. Nothing here goes through the rows of each frame: sums are differences of running sums, which are
exact, and the least of a frame is that of two overlapping pieces whose length is a power of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import localcontext
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from headwater.changelog.accumulate import Accumulator, Kept
from headwater.changelog.columns import Bools, Ints
from headwater.changelog.exact_sums import ExactSums
from headwater.changelog.ordering import SortKey, sort_keys
from headwater.changelog.reduce import checked_cast

__all__ = ["Frame", "Places", "framed", "shifted"]

_LARGEST = (1 << 63) - 1


@dataclass(frozen=True)
class Frame:
    """From `preceding` rows or microseconds before the current row to `following` after it; None is unbounded. The end
    of a range is the last row with the same order."""

    kind: Literal["rows", "range"]
    preceding: int | None = None
    following: int | None = 0


@dataclass(frozen=True)
class Places:
    """Sorted rows: the number of each one's partition, and its order as an integer."""

    partitions: Ints
    orders: Ints

    @property
    def starts(self) -> Ints:
        starts: Ints = np.searchsorted(self.partitions, self.partitions, "left")
        return starts

    @property
    def stops(self) -> Ints:
        stops: Ints = np.searchsorted(self.partitions, self.partitions, "right")
        return stops

    def frame(self, frame: Frame) -> tuple[Ints, Ints]:
        """The place of the first row of each frame, and that behind the last one."""
        rows = np.arange(len(self.partitions), dtype=np.int64)
        start, stop = self.starts, self.stops
        if frame.kind == "rows":
            # Both ends may lie before the row, or behind it, and so outside of the partition: such frames are empty.
            first = start if frame.preceding is None else np.clip(rows - frame.preceding, start, stop)
            last = stop if frame.following is None else np.clip(rows + frame.following + 1, first, stop)
            return first, last
        first = start if frame.preceding is None else self._place(self.orders - frame.preceding, "left")
        last = stop if frame.following is None else self._place(self.orders + frame.following, "right")
        return first, last

    def _place(self, orders: Ints, side: Literal["left", "right"]) -> Ints:
        """Where these orders would stand in their own partitions."""
        # By ranks: partition and order then fit into one integer, which a single search can find.
        both = np.concatenate([self.orders, orders])
        _, ranks = np.unique(both, return_inverse=True)
        size = int(ranks.max(initial=0)) + 1
        keys = self.partitions * size + ranks[: len(orders)]
        wanted = self.partitions * size + ranks[len(orders) :]
        places: Ints = np.searchsorted(keys, wanted, side)
        return places

    @property
    def peers(self) -> Bools:
        """Which rows have another partition or order than the row before."""
        new: Bools = np.ones(len(self.partitions), dtype=np.bool_)
        new[1:] = (np.diff(self.partitions) != 0) | (np.diff(self.orders) != 0)
        return new


def framed(accumulator: Accumulator, values: pa.Array, first: Ints, last: Ints) -> Kept:
    """The accumulator over each frame; NULL, or 0, for frames without values."""
    match accumulator.function:
        case "sum" if accumulator.exact:
            return _exact_sums(accumulator, values, first, last)
        case "sum":
            return _sums(accumulator, values, first, last)
        case "first":
            return _first_value(values, first, last)
        case "last":
            return _last_value(values, first, last)
    return _extremes(values, first, last, accumulator.function)


def shifted(values: pa.Array, places: Places, by: int) -> tuple[pa.Array, Bools]:
    """The value of the row so many places before (below 0: after), and whether there is one in the partition."""
    at = np.arange(len(values), dtype=np.int64) - by
    inside: Bools = (at >= places.starts) & (at < places.stops)
    return values.take(pa.array(np.where(inside, at, 0), mask=~inside)), inside


def _sums(accumulator: Accumulator, values: pa.Array, first: Ints, last: Ints) -> pa.Array:
    kind = accumulator.type
    if pa.types.is_decimal(kind):
        with localcontext() as context:
            context.prec = 76
            # The running sum goes over all partitions, so it may have more digits than the sum of any frame.
            running = _running(np.array([v or 0 for v in values.to_pylist()], dtype=object))
            totals = (running[last] - running[first]).tolist()
            return checked_cast(pa.array(totals, pa.decimal256(76, kind.scale)), kind)
    numbers = values.cast(pa.int64()).fill_null(0).to_numpy()
    largest = max(abs(int(numbers.max(initial=0))), abs(int(numbers.min(initial=0))))
    # It may overflow although no frame does; Python's integers, far slower, do not.
    if largest * len(numbers) <= _LARGEST:
        running = _running(numbers)
        return pa.array(running[last] - running[first])
    running = _running(np.array(numbers.tolist(), dtype=object))
    totals = pa.array([str(v) for v in (running[last] - running[first]).tolist()]).cast(pa.decimal128(38, 0))
    return checked_cast(totals, kind)


def _running(numbers: Any) -> Any:
    """Sums of all before each place, and of all."""
    return np.concatenate([np.zeros(1, dtype=numbers.dtype), np.cumsum(numbers)])


def _exact_sums(accumulator: Accumulator, values: pa.Array, first: Ints, last: Ints) -> ExactSums:
    count = len(values)
    each = ExactSums.of_rows(
        pa.table([values.cast(pa.float64())], names=[accumulator.name]), accumulator.name, np.arange(count), count
    )
    running: Ints = np.zeros((each.limbs.shape[0], count + 1), dtype=np.int64)
    np.cumsum(each.limbs, axis=1, out=running[:, 1:])
    found = ExactSums(running[:, last] - running[:, first])
    # Rare: values that are not finite, very large or very small have no running sum.
    if each.beside:
        for row in range(count):
            for place in range(int(first[row]), int(last[row])):
                if place in each.beside:
                    found = found.plus_beside(row, each.beside[place])
    return found + ExactSums(np.zeros_like(found.limbs))  # adding propagates carries


def _extremes(values: pa.Array, first: Ints, last: Ints, function: str) -> pa.Array:
    """By the ranks of the values, of which those of NULL are behind all others."""
    keys = sort_keys(values, SortKey("", descending=function == "max", nulls_first=False))
    order = np.lexsort(list(reversed(keys)))
    ranks: Ints = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(len(values))
    ranks[values.is_null().to_numpy(zero_copy_only=False)] = len(values)
    lengths = last - first
    # Level k has for every place the best of the 2**k rows from there on.
    levels = [ranks]
    while (1 << len(levels)) <= int(lengths.max(initial=1)):
        half, below = 1 << (len(levels) - 1), levels[-1]
        level = below.copy()
        level[: len(below) - half] = np.minimum(below[: len(below) - half], below[half:])
        levels.append(level)
    some = lengths > 0
    power = np.zeros(len(lengths), dtype=np.int64)
    power[some] = np.log2(lengths[some]).astype(np.int64)
    best: Ints = np.full(len(lengths), len(values), dtype=np.int64)
    for level, ranks_of_level in enumerate(levels):
        rows = np.flatnonzero(some & (power == level))
        ends = last[rows] - (1 << level)
        best[rows] = np.minimum(ranks_of_level[first[rows]], ranks_of_level[ends])
    none = best == len(values)
    # One place more, for frames without values: their rank is one behind the last.
    at = np.append(order, 0)[np.where(none, len(values), best)]
    return values.take(pa.array(at, mask=none))


def _first_value(values: pa.Array, first: Ints, last: Ints) -> pa.Array:
    """The first value of each frame that is not NULL."""
    count = len(values)
    # A running minimum from the end gives every place the next valid one: one pass, however wide the frames are.
    following = np.where(_valid(values), np.arange(count, dtype=np.int64), count)[::-1]
    at = np.append(np.minimum.accumulate(following)[::-1], count)[first]
    return _values_at(values, at, at >= last)


def _last_value(values: pa.Array, first: Ints, last: Ints) -> pa.Array:
    """The last value of each frame that is not NULL."""
    count = len(values)
    places = np.arange(count, dtype=np.int64)
    previous = np.maximum.accumulate(np.where(_valid(values), places, -1)) if count else places
    at = np.where(last > 0, previous[np.maximum(last, 1) - 1], -1) if count else places
    return _values_at(values, at, at < first)


def _valid(values: pa.Array) -> Bools:
    valid: Bools = values.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _values_at(values: pa.Array, at: Ints, none: Bools) -> pa.Array:
    return values.take(pa.array(np.where(none, 0, at), mask=none))
