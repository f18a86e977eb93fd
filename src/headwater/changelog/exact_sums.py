"""Exact sums of DOUBLE: the result depends on which values are in a group, never on the order they came in, on how the
input was cut, or on what was there before and was retracted.

A sum is kept as a fixed-point number that no addition rounds (a Kulisch accumulator), and rounded once, when it is
shown. Its window is 256 bits, of which the lowest stands for 2**-128: values of a magnitude from 2**-75 to 2**64, and
0, are whole multiples of that, and the sum of 2**62 of them fits. They are added in *limbs* of 32 bits, kept in 64-bit
integers until carries are propagated, so that columns of them can be summed by whatever sums integers: numpy, Arrow, or
Spark's hash aggregation (`exact_sums_sql`).

Everything else (NaN, infinities, magnitudes beyond the window) is rare. It is kept beside the window, in Python
integers: how many NaN and infinities there are, and an exact sum of the others in multiples of 2**-1074, the least of
all doubles.

As columns of partial sums, a sum `s` is

    s_0 … s_5     BIGINT   limb k counts multiples of 2**(32 k - 128); NULL is 0
    s, s_weight   DOUBLE, BIGINT   besides, this value so many times (negative: retracted); NULL is nothing; without a
                  column `s_weight` it is once

so that a plain column of values is a valid partial sum, too.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools, Ints, flat

__all__ = ["LEAST", "LIMBS", "LIMIT", "STORED", "ExactSums", "inside", "limb_names", "split", "weight_name"]

Floats = npt.NDArray[np.float64]

LIMBS = 6
LIMB_BITS = 32
LOWEST = -128
"""Limbs of a value, bits of a limb, the exponent of the lowest bit."""
LEAST, LIMIT = 2.0**-75, 2.0**64
"""Magnitudes of values inside the window: `LEAST` is, `LIMIT` is not."""
STORED = pa.large_binary()
"""The type of a stored sum: the window, 32 bytes, and what is beside it. NULL is 0."""

_WORDS = 8
_MASK = (1 << LIMB_BITS) - 1
_TINY = 1074
_COUNTS = struct.Struct("<qqq")
_BLOCK = 1 << 14
"""Values that are split at a time: all intermediate results stay in the processor's cache."""


def limb_names(name: str) -> list[str]:
    return [f"{name}_{k}" for k in range(LIMBS)]


def weight_name(name: str) -> str:
    return f"{name}_weight"


def inside(values: Floats) -> Bools:
    # Values outside are rare (NaN, infinities, the very large and very small) and are summed one by one, as whole
    # numbers.
    size = np.abs(values)
    result: Bools = (size < LIMIT) & ((size >= LEAST) | (size == 0))
    return result


def split(values: Floats) -> dict[int, Ints]:
    """The limbs of values that are all inside the window, by their numbers; without those that are 0 for all."""
    limbs: dict[int, Ints] = {}
    # Twice as fast as all values at once, which would go through main memory at every step.
    for start in range(0, len(values), _BLOCK):
        block = slice(start, start + _BLOCK)
        for k, pieces in _pieces(values[block]):
            if k not in limbs:
                limbs[k] = np.zeros(len(values), dtype=np.int64)
            limbs[k][block] = pieces
    return limbs


def _pieces(values: Floats) -> Iterator[tuple[int, Floats]]:
    """From the highest limb down. Multiplying by a power of two, cutting off and subtracting what was cut off are
    exact."""
    largest = float(np.abs(values).max(initial=0.0))
    for k in reversed(range(LIMBS)):
        unit = 2.0 ** (LOWEST + LIMB_BITS * k)
        if largest >= unit:
            # The factor is a power of two, so its inverse is exact, and multiplying is faster than dividing.
            pieces = np.trunc(values * (1 / unit))
            yield k, pieces
            values = values - pieces * unit
            if not values.any():
                return


class _Beside(NamedTuple):
    """What does not fit into the window of one sum; `finite` in multiples of 2**-1074."""

    nan: int = 0
    plus: int = 0
    minus: int = 0
    finite: int = 0

    def plus_other(self, other: _Beside) -> _Beside:
        return _Beside(*(a + b for a, b in zip(self, other, strict=True)))

    @staticmethod
    def of(value: float, weight: int) -> _Beside:
        if math.isnan(value):
            return _Beside(nan=weight)
        if math.isinf(value):
            return _Beside(plus=weight) if value > 0 else _Beside(minus=weight)
        numerator, denominator = value.as_integer_ratio()
        return _Beside(finite=weight * numerator * ((1 << _TINY) // denominator))

    def to_bytes(self) -> bytes:
        size = (self.finite.bit_length() + 8) // 8
        return _COUNTS.pack(self.nan, self.plus, self.minus) + self.finite.to_bytes(size, "little", signed=True)

    @staticmethod
    def from_bytes(content: bytes) -> _Beside:
        nan, plus, minus = _COUNTS.unpack_from(content)
        return _Beside(nan, plus, minus, int.from_bytes(content[_COUNTS.size :], "little", signed=True))

    def shown(self, window: int) -> float:
        """The sum of this and the window, rounded once. Counts below 0 are of values that are retracted before they
        come; for the moment they count as none."""
        if self.nan > 0 or (self.plus > 0 and self.minus > 0):
            return float("nan")
        if self.plus > 0 or self.minus > 0:
            return float("inf") if self.plus > 0 else float("-inf")
        # Both as multiples of the least double, so that they can be added as whole numbers.
        total = self.finite + (window << (_TINY + LOWEST))
        try:
            # Python rounds the quotient of two whole numbers once, to the nearest double.
            return total / (1 << _TINY)
        except OverflowError:
            return float("inf") if total > 0 else float("-inf")


@dataclass(frozen=True)
class ExactSums:
    """The sums of groups, which are numbered. `limbs` has a row per limb, carries propagated: all but the last are from
    0 to 2**32 - 1, the last one has the sign. `beside` has what does not fit into the window, by group."""

    limbs: Ints
    beside: dict[int, _Beside] = field(default_factory=dict)

    @staticmethod
    def of_rows(rows: pa.Table, name: str, groups: Ints, count: int) -> ExactSums:
        """The partial sums `name` of these rows, added up in `count` groups."""
        limbs: Ints = np.zeros((_WORDS, count), dtype=np.int64)
        for k, column in enumerate(limb_names(name)):
            if column in rows.column_names:
                _add_large(limbs, k, groups, _integers(rows, column))
        values = flat(rows, name)
        present = values.is_valid().to_numpy(zero_copy_only=False)
        weights = _integers(rows, weight_name(name)) if weight_name(name) in rows.column_names else None
        if present.all():
            return ExactSums._of_values(limbs, values.to_numpy(), weights, groups)
        chosen = None if weights is None else weights[present]
        return ExactSums._of_values(limbs, values.drop_null().to_numpy(), chosen, groups[present])

    @staticmethod
    def _of_values(limbs: Ints, values: Floats, weights: Ints | None, groups: Ints) -> ExactSums:
        fits = inside(values)
        beside: dict[int, _Beside] = {}
        if not fits.all():
            times = np.ones(len(values), dtype=np.int64) if weights is None else weights
            # Values outside of the window are rare and few: one by one, with Python's integers.
            for group, value, weight in _distinct(groups[~fits], values[~fits], times[~fits]):
                beside[group] = beside.get(group, _Beside()).plus_other(_Beside.of(value, weight))
            values, groups = values[fits], groups[fits]
            weights = None if weights is None else weights[fits]
        for k, pieces in split(values).items():
            if weights is None:
                np.add.at(limbs[k], groups, pieces)
            else:
                _add_large(limbs, k, groups, pieces * weights)
        return ExactSums(_carried(limbs), _something(beside))

    @staticmethod
    def from_stored(column: pa.Array) -> ExactSums:
        # 64 bits per limb while adding, 32 when stored: carries need not be propagated with every addition.
        limbs: Ints = np.zeros((_WORDS, len(column)), dtype=np.int64)
        known = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        stored = column.drop_null()
        if len(stored):
            windows = pc.binary_slice(stored, 0, 4 * _WORDS).buffers()[2]
            limbs[:, known] = np.frombuffer(windows, "<u4", _WORDS * len(stored)).reshape(-1, _WORDS).T
        # The highest word has the sign: stored as 32 bits like the others, it is extended again.
        limbs[-1] = limbs[-1].astype(np.uint32).astype(np.int32)
        long = np.flatnonzero(pc.greater(pc.binary_length(stored), 4 * _WORDS).to_numpy(zero_copy_only=False))
        return ExactSums(limbs, {int(known[n]): _Beside.from_bytes(stored[n].as_py()[4 * _WORDS :]) for n in long})

    def __add__(self, other: ExactSums) -> ExactSums:
        beside = dict(self.beside)
        for group, more in other.beside.items():
            beside[group] = beside.get(group, _Beside()).plus_other(more)
        return ExactSums(_carried(self.limbs + other.limbs), _something(beside))

    def take(self, places: Ints) -> ExactSums:
        """The sums at these places."""
        beside = {row: self.beside[int(place)] for row, place in enumerate(places) if int(place) in self.beside}
        return ExactSums(self.limbs[:, places], beside if self.beside else {})

    def plus_beside(self, group: int, more: _Beside) -> ExactSums:
        """With what does not fit into the window of one of the sums."""
        # Removed if nothing is left, or a sum that is back to 0 would be stored as something.
        beside = {**self.beside, group: self.beside.get(group, _Beside()).plus_other(more)}
        return ExactSums(self.limbs, _something(beside))

    def __len__(self) -> int:
        return int(self.limbs.shape[1])

    def some(self) -> Bools:
        """Which of the sums are not 0, or may not stay 0."""
        some: Bools = (self.limbs != 0).any(axis=0)
        some[list(self.beside)] = True
        return some

    def stored(self) -> pa.Array:
        """Equal sums are stored as equal bytes, and 0 as NULL."""
        # Propagated carries make the bytes of a sum unique, so that comparing stored bytes compares sums.
        windows = np.ascontiguousarray(self.limbs.T.astype("<u4"))
        ends = np.arange(len(windows) + 1, dtype=np.int64) * (4 * _WORDS)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(windows)]
        column = pa.LargeBinaryArray.from_buffers(STORED, len(windows), buffers)
        if self.beside:
            longer = [
                window + self.beside[group].to_bytes() if group in self.beside else window
                for group, window in enumerate(column.to_pylist())
            ]
            column = pa.array(longer, STORED)
        some = self.some()
        return column if some.all() else pc.if_else(pa.array(some), column, pa.scalar(None, STORED))

    def exact(self) -> list[Fraction | None]:
        """The sums as they are; None where a value is not finite."""
        windows = [int.from_bytes(w.tobytes(), "little", signed=True) for w in self.limbs.T.astype("<u4")]
        sums: list[Fraction | None] = [Fraction(window, 1 << -LOWEST) for window in windows]
        for group, beside in self.beside.items():
            finite = Fraction(windows[group], 1 << -LOWEST) + Fraction(beside.finite, 1 << _TINY)
            sums[group] = None if beside.nan > 0 or beside.plus > 0 or beside.minus > 0 else finite
        return sums

    def rounded(self) -> pa.Array:
        """The sums as DOUBLE: the nearest to each, of two that are equally near the even one."""
        shown = _nearest(self.limbs)
        for group, beside in self.beside.items():
            window = self.limbs[:, group].astype("<u4").tobytes()
            shown[group] = beside.shown(int.from_bytes(window, "little", signed=True))
        return pa.array(shown)


def _integers(rows: pa.Table, name: str) -> Ints:
    numbers: Ints = pc.fill_null(flat(rows, name), 0).to_numpy()
    return numbers


def _distinct(groups: Ints, values: Floats, weights: Ints) -> Iterator[tuple[int, float, int]]:
    """The net weight of each value of a group."""
    rows = pa.table([pa.array(groups), pa.array(values), pa.array(weights)], names=["group", "value", "weight"])
    net = rows.group_by(["group", "value"], use_threads=False).aggregate([("weight", "sum")])
    for row in net.to_pylist():
        yield row["group"], row["value"], row["weight_sum"]


def _something(beside: dict[int, _Beside]) -> dict[int, _Beside]:
    return {group: one for group, one in beside.items() if any(one)}


def _add_large(limbs: Ints, k: int, groups: Ints, numbers: Ints) -> None:
    """Numbers of up to 63 bits, so many of which would overflow: in two parts."""
    np.add.at(limbs[k], groups, numbers & _MASK)
    np.add.at(limbs[k + 1], groups, numbers >> LIMB_BITS)


def _carried(limbs: Ints) -> Ints:
    for k in range(_WORDS - 1):
        # An arithmetic shift: a negative limb borrows from the next one.
        carry = limbs[k] >> LIMB_BITS
        if carry.any():
            limbs[k + 1] += carry
            limbs[k] &= _MASK
    return limbs


def _nearest(limbs: Ints) -> Floats:
    """Sums in the window, rounded. Of the magnitude the upper 64 bits are taken, from the first that is set, with the
    lowest of them set if anything below is: converting that integer rounds as the whole would have been."""
    negative = limbs[-1] < 0
    size = _carried(np.where(negative, -limbs, limbs)) if negative.any() else limbs
    used = np.flatnonzero(size.any(axis=1))
    if not len(used):
        return np.zeros(size.shape[1])
    # The two limbs below it are 0, and make every value one of three limbs or more.
    lowest = int(used[0]) - 2
    size = np.concatenate([np.zeros((2, size.shape[1]), dtype=np.int64), size[used[0] : used[-1] + 1]])
    top: Ints = np.full(size.shape[1], 2, dtype=np.int64)
    for k in range(3, size.shape[0]):
        top[size[k] != 0] = k
    columns = np.arange(size.shape[1])
    first, second, third = (size[top - k, columns].astype(np.uint64) for k in range(3))
    bits = np.frexp(first.astype(np.float64))[1].astype(np.uint64)  # of the first limb, 0 to 32
    below = (third & ((np.uint64(1) << bits) - np.uint64(1))) != 0
    for k in range(2, size.shape[0] - 3):
        below |= (size[k] != 0) & (k < top - 2)
    upper = (((first << np.uint64(32)) | second) << (np.uint64(32) - bits)) | (third >> bits) | below.astype(np.uint64)
    exponent = LOWEST + LIMB_BITS * (lowest + top - 2) + bits.astype(np.int64)
    nearest: Floats = np.ldexp(upper.astype(np.float64), exponent.astype(np.int32))
    return np.where(negative, -nearest, nearest)
