"""The sources of a job, opened once, and what a batch reads of them."""

from __future__ import annotations

from pyspark.sql import DataFrame

from headwater.changelog.early import EarlyGroups
from headwater.connectors.io import IoContext, Position, QuickSource, Source, total
from headwater.connectors.open import open_source
from headwater.plan.nodes import Scan, Values, Write
from headwater.plan.sources import sources_of
from headwater.runtime.checkpoint import Intent

__all__ = ["Inputs", "is_finished", "rows_of"]


class Inputs:
    """Positions and bounds are lists with one entry per source."""

    def __init__(self, plan: Write, context: IoContext) -> None:
        self._scans = sources_of(plan)
        self._sources: list[Source] = [open_source(scans[0], context) for scans in self._scans]
        self._place = {id(scan): place for place, scans in enumerate(self._scans) for scan in scans}

    def start(self) -> list[Position]:
        return [source.start() for source in self._sources]

    def bounds(self, start: list[Position]) -> list[Position | None]:
        return [source.bound(begin) for source, begin in zip(self._sources, start, strict=True)]

    def available(self, position: list[Position], bounds: list[Position | None], limit: int) -> Intent:
        """What can be read now; nothing, if start and end are the same."""
        asked = zip(self._sources, position, bounds, strict=True)
        ranges = [source.available(here, bound, limit) for source, here, bound in asked]
        return Intent([start for start, _ in ranges], [end for _, end in ranges], bounds)

    def read(self, intent: Intent, scan: Scan | Values) -> DataFrame:
        place = self._place[id(scan)]
        return self._sources[place].read(intent.start[place], intent.end[place], scan.names)

    def read_ordinary(self, intent: Intent, scan: Scan | Values, whole: bool) -> DataFrame | None:
        """As `read`, perhaps less far. Scans that read a table together must go equally far."""
        place = self._place[id(scan)]
        source = self._sources[place]
        if not isinstance(source, QuickSource) or len(self._scans[place]) > 1:
            return None
        return source.read_ordinary(intent.start[place], intent.end[place], scan.names, whole)

    def reached(self, intent: Intent) -> Intent:
        """How far a batch went that was read so."""
        asked = zip(self._sources, intent.end, strict=True)
        ends = [source.reached(end) if isinstance(source, QuickSource) else end for source, end in asked]
        return Intent(intent.start, ends, intent.bounds)

    def keep_tasks(self, intent: Intent) -> bool:
        """Whether the same rows come in the same tasks, whenever they are read."""
        asked = zip(self._sources, self._scans, intent.start, intent.end, strict=True)
        return all(source.keeps_tasks(start, end, s.names) for source, scans, start, end in asked for s in scans)

    def read_groups(self, intent: Intent, scan: Scan, early: EarlyGroups) -> DataFrame | None:
        place = self._place[id(scan)]
        source = self._sources[place]
        if not isinstance(source, QuickSource):
            return None
        return source.read_groups(intent.start[place], intent.end[place], early)

    def learn(self, intent: Intent) -> None:
        for source, start, end in zip(self._sources, intent.start, intent.end, strict=True):
            source.learn(start, end)

    def settle(self, intent: Intent) -> int:
        """How many messages could not be read."""
        bad = 0
        for source, scans, start, end in zip(self._sources, self._scans, intent.start, intent.end, strict=True):
            columns = dict.fromkeys(name for scan in scans for name in scan.names)
            bad += source.settle(start, end, list(columns))
        return bad

    def done(self, intent: Intent) -> None:
        for source, end in zip(self._sources, intent.end, strict=True):
            source.done(end)

    def lag(self, intent: Intent) -> int:
        return sum(source.lag(end) for source, end in zip(self._sources, intent.end, strict=True))

    def close(self) -> None:
        for source in self._sources:
            source.close()


def rows_of(intent: Intent) -> int:
    return sum(total(start, end) for start, end in zip(intent.start, intent.end, strict=True))


def is_finished(position: list[Position], bounds: list[Position | None]) -> bool:
    return all(
        bound is not None and all(position[i].get(k, 0) >= v for k, v in bound.items())
        for i, bound in enumerate(bounds)
    )
