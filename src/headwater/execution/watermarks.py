"""Watermarks: of the partitions of a source, computed where they are read, and of sources, decided by the driver.

1. A task that reads a partition, in the order of its messages, gives each row the greatest watermark of the rows
   before it, earlier batches included (`watermark_worker`). What was late in its own partition is late, and nothing
   else is: however batches are cut, and however far other partitions are.
2. The greatest watermark of each partition is reported, and becomes part of the commit.
3. The next batch is given the watermark of each source as of that commit: the least of its partitions. It is
   written down in the intent, so a replay sees the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.changelog.operator import FINAL, Time
from headwater.connectors.positions import rows_between
from headwater.connectors.runtime import Position
from headwater.protocol.records import Commit

__all__ = ["END", "WatermarkedSource", "Watermarks", "reported_watermarks", "time_of"]

END = FINAL // 1000
"""The watermark of a source that has been read to its end, in milliseconds."""

Watermark = int | None


def reported_watermarks(
    before: Sequence[Position], sources: int, reports: Mapping[tuple[str, ...], Any], attempt: str
) -> list[Position]:
    """Those of all partitions after a batch: what its tasks have reported, and all others as they were."""
    after = [dict(before[i]) if i < len(before) else {} for i in range(sources)]
    for (of, kind, *where), watermark in reports.items():
        if of == attempt and kind == "watermark":
            source, place = where
            mine = after[int(source)]
            # Several splits of a partition report on their own, in any order.
            mine[place] = max(watermark, mine.get(place, watermark))
    return after if any(after) else []


@dataclass(frozen=True)
class WatermarkedSource:
    """`partitions` of a position are those that have a watermark; one that nothing has come from for `idle_seconds`
    does not hold back others (0: it does)."""

    partitions: Callable[[Position], Sequence[str]]
    idle_seconds: float = 0.0


class Watermarks:
    """The watermarks of the sources of a job, as its driver decides them. `sources` has None for those without.

    With a `period`, in milliseconds, processing time has a watermark, too, behind those of the sources: the last moment
    before a multiple of the period. So it moves only when a window may close."""

    def __init__(
        self,
        sources: Sequence[WatermarkedSource | None],
        period: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = sources
        self._period = period
        self._clock = clock
        self._last_time = 0
        self._active: dict[tuple[int, str], tuple[int, float]] = {}  # a position, and when it was first seen

    @property
    def used(self) -> bool:
        return self._period is not None or any(source is not None for source in self._sources)

    def next(self, commit: Commit, ends: Sequence[Position] = ()) -> list[list[Watermark]]:
        """For the batch after this commit: per source the watermark before and in it; empty where none is used. `ends`
        are the ends of what there is to read: a partition whose messages wait to be read is not idle."""
        if not self.used:
            return []
        for place, end in enumerate(ends):
            for key in [key for key, offset in end.items() if offset > commit.positions[place].get(key, 0)]:
                self._active[place, key] = (commit.positions[place].get(key, 0), self._clock())
        before = self._reached(commit)
        found = [self._of_source(place, commit) for place in range(len(self._sources))]
        awake = [now for now, idle in found if not idle]
        # A source without a watermark yet may still deliver old rows, so it holds back all idle ones.
        held = None if not awake or None in awake else min(n for n in awake if n is not None)
        after: list[Watermark] = []
        for (now, idle), was, source in zip(found, before, self._sources, strict=False):
            # A source from which nothing comes goes along with the others.
            raised = _later(now, held) if idle else now
            after.append(_later(raised, was) if source is not None else None)
        if self._period is not None:
            after.append(_later(self._processing(commit), before[-1]))
        return [[was, now] for was, now in zip(before, after, strict=True)]

    def processing_time(self, watermarks: list[list[Watermark]]) -> int:
        """Of the batch with these watermarks: now, but not before its watermark, and behind that of the batch before,
        also if the clock was set back."""
        # The time of the batch lies behind every window that its watermark has closed: a row must not fall into a
        # window that is gone.
        reached = watermarks[-1][1] if self._period is not None else None
        least = 0 if reached is None or reached == END else reached + 1
        self._last_time = max(int(time.time() * 1000), self._last_time + 1, least)
        return self._last_time

    def _processing(self, commit: Commit) -> int:
        assert self._period is not None
        if all(b is not None and rows_between(p, b) <= 0 for p, b in zip(commit.positions, commit.bounds, strict=True)):
            return END
        return int(time.time() * 1000) // self._period * self._period - 1

    def waiting(self, commit: Commit) -> dict[int, list[str]]:
        """Per source, partitions without a watermark that hold back others, which have one, until something comes."""
        found = {}
        for place, source in enumerate(self._sources):
            mine = commit.watermarks[place] if place < len(commit.watermarks) else {}
            if source is None or source.idle_seconds or not mine or self._of_source(place, commit) != (None, False):
                continue
            found[place] = [key for key in source.partitions(commit.positions[place]) if key not in mine]
        return found

    def _reached(self, commit: Commit) -> list[Watermark]:
        places = len(self._sources) + (self._period is not None)
        return [*commit.reached] if commit.reached else [None] * places

    def _of_source(self, place: int, commit: Commit) -> tuple[Watermark, bool]:
        """The least watermark of its partitions, and whether all of them are idle. One that was read to its end holds
        nothing back."""
        source = self._sources[place]
        if source is None:
            return None, True
        position, bound = commit.positions[place], commit.bounds[place]
        # A partition that was read to its bound has nothing more to come, and must not hold back the others.
        open_ = [k for k in source.partitions(position) if bound is None or position.get(k, 0) < bound.get(k, 0)]
        if bound is not None and not open_:
            return END, False
        mine = commit.watermarks[place] if place < len(commit.watermarks) else {}
        # An idle partition neither holds back nor advances the watermark: what it still has may be as old as its last
        # message.
        awake = [k for k in open_ if not self._is_idle(place, k, position, source.idle_seconds)]
        if not awake:
            return max((mine[k] for k in open_ if k in mine), default=None), True
        return (min(mine[k] for k in awake) if all(k in mine for k in awake) else None), False

    def _is_idle(self, place: int, key: str, position: Position, seconds: float) -> bool:
        here, now = position.get(key, 0), self._clock()
        at, since = self._active.get((place, key), (None, now))
        # By position and not by messages: offsets also move over transaction markers, which shows that the partition is
        # alive.
        if at != here:
            self._active[place, key] = (here, now)
            return False
        return seconds > 0 and now - since >= seconds


def time_of(
    watermarks: Sequence[Sequence[Watermark]], sources: Sequence[int], processing: int, delay: int = 0, batch: int = 0
) -> Time:
    """The time of an operator over these sources, from what the intent says of all: that of the slowest, `delay`
    microseconds before it."""
    mine = [watermarks[place] for place in sources] if watermarks else []
    before, now = (_micros([pair[i] for pair in mine], delay) for i in (0, 1))
    return Time(before, now, processing * 1000, batch)


def _micros(watermarks: list[Watermark], delay: int) -> Watermark:
    known = [w for w in watermarks if w is not None]
    if not known or len(known) < len(watermarks):
        return None
    least = min(known)
    return FINAL if least >= END else least * 1000 - delay


def _later(one: Watermark, other: Watermark) -> Watermark:
    return max((w for w in (one, other) if w is not None), default=None)
