"""Which windows of event time a row belongs to: TUMBLE, HOP and CUMULATE, as functions of the time alone, and sessions
as what is left of intervals that are merged.

Times are microseconds since 1970, windows are [start, end). A window of a TIMESTAMP_LTZ is one of local time: its start
and end are what a clock in the session's time zone shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Ints, flat
from headwater.changelog.operator import Time

__all__ = [
    "TICK",
    "Assigned",
    "Assigner",
    "Cumulate",
    "Hop",
    "Intervals",
    "Tumble",
    "from_local",
    "to_local",
    "watermarks_of",
    "window_hash",
]

TICK = 1000
"""Event time has milliseconds, as Flink's: a window closes when the watermark reaches its last one."""


@dataclass(frozen=True)
class Assigned:
    """One entry per row and window: the row's number, and start and end of the window."""

    rows: Ints
    starts: Ints
    ends: Ints


class Assigner(Protocol):
    def assign(self, times: Ints) -> Assigned: ...


@dataclass(frozen=True)
class Tumble:
    size: int
    offset: int = 0

    def assign(self, times: Ints) -> Assigned:
        starts = _floor(times, self.size, self.offset)
        return Assigned(np.arange(len(times), dtype=np.int64), starts, starts + self.size)


@dataclass(frozen=True)
class Hop:
    slide: int
    size: int
    offset: int = 0

    def assign(self, times: Ints) -> Assigned:
        count = -(-self.size // self.slide)
        last = _floor(times, self.slide, self.offset)
        starts = (last[:, None] - np.arange(count, dtype=np.int64)[::-1] * self.slide).ravel()
        rows = np.repeat(np.arange(len(times), dtype=np.int64), count)
        # Where the size is no multiple of the slide, the earliest window may end before the row.
        inside = starts + self.size > times[rows]
        return Assigned(rows[inside], starts[inside], starts[inside] + self.size)


@dataclass(frozen=True)
class Cumulate:
    """Windows that start together and grow by `step` up to `size`."""

    step: int
    size: int
    offset: int = 0

    def assign(self, times: Ints) -> Assigned:
        count = self.size // self.step
        starts = np.repeat(_floor(times, self.size, self.offset), count)
        rows = np.repeat(np.arange(len(times), dtype=np.int64), count)
        ends = starts + np.tile(np.arange(1, count + 1, dtype=np.int64) * self.step, len(times))
        inside = ends > times[rows]
        return Assigned(rows[inside], starts[inside], ends[inside])


def _floor(times: Ints, unit: int, offset: int) -> Ints:
    starts: Ints = (times - offset) // unit * unit + offset
    return starts


@dataclass(frozen=True)
class Intervals:
    """Sessions, or times that are sessions of their own: the number of their key, the first and the last time."""

    keys: Ints
    starts: Ints
    lasts: Ints

    def merged(self, gap: int) -> tuple[Intervals, Ints]:
        """Those of a key that are not more than `gap` apart become one. Sorted; and for each of the old ones the number
        of the new one it is part of."""
        order = np.lexsort([self.starts, self.keys])
        keys, starts, lasts = self.keys[order], self.starts[order], self.lasts[order]
        # Not simply the last of the session before: a long one may contain shorter ones that start later.
        latest = _running_maximum(keys, lasts)
        fresh = np.ones(len(order), dtype=np.bool_)
        fresh[1:] = (keys[1:] != keys[:-1]) | (starts[1:] > latest[:-1] + gap)
        of_sorted = np.cumsum(fresh) - 1
        first = np.flatnonzero(fresh)
        last = np.append(first[1:], len(order)) - 1 if len(order) else first
        of_old: Ints = np.empty(len(order), dtype=np.int64)
        of_old[order] = of_sorted
        return Intervals(keys[first], starts[first], latest[last]), of_old


def _running_maximum(keys: Ints, values: Ints) -> Ints:
    """The greatest value so far of the same key, which are sorted: of the values' ranks, raised by key."""
    distinct, ranks = np.unique(values, return_inverse=True)
    raised = np.maximum.accumulate(keys * len(distinct) + ranks)
    return np.asarray(distinct[raised - keys * len(distinct)])


def to_local(times: Ints, zone: str) -> Ints:
    """What a clock in the zone shows at these instants, as microseconds since 1970-01-01 00:00 on it."""
    instants = pa.array(times, pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))
    return np.asarray(pc.local_timestamp(instants).cast(pa.int64()).to_numpy())


def from_local(times: Ints, zone: str) -> Ints:
    """The instants at which a clock in the zone shows these times: the later one of two, and where it skips a time,
    the instant at which it does."""
    local = pa.array(times, pa.timestamp("us"))
    # The later instant of two: a window that the clock shows twice must not close after its first hour.
    instants = pc.assume_timezone(local, zone, ambiguous="latest", nonexistent="latest")
    return np.asarray(instants.cast(pa.int64()).to_numpy())


def window_hash(starts: Ints, ends: Ints) -> Ints:
    """32 bits that tell windows apart."""
    mixed = (starts.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ ends.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray((mixed >> np.uint64(32)).astype(np.int64))


def watermarks_of(batch: pa.Table, own: str, time: Time) -> Ints:
    """For each row the watermark by which it is late or not: that of the batch before, or if it is later the one in
    the column `own`, of the partition that the row came from."""
    lowest = np.iinfo(np.int64).min
    # Not the watermark after the batch: which rows moved it depends on how batches are cut.
    before = lowest if time.watermark_before is None else time.watermark_before
    passed: Ints = np.full(batch.num_rows, before, dtype=np.int64)
    if own:
        passed = np.maximum(passed, flat(batch, own).cast(pa.int64()).fill_null(lowest).to_numpy())
    return passed
