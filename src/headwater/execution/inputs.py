"""The sources of a job, opened once, and what a batch reads of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from headwater.changelog.conditions import Condition
from headwater.connectors.positions import rows_between
from headwater.connectors.runtime import LocalAggregation, Position, RowOrder, RuntimeContext, ScanPlan, Source, Split
from headwater.execution.values import ValuesSource
from headwater.execution.watermarks import WatermarkedSource
from headwater.plan.nodes import Scan, Values, Write
from headwater.plan.sources import sources_of

__all__ = ["InputRange", "Inputs", "Splits", "is_finished", "open_source"]

Splits = list[list[list[Split]]]


@dataclass(frozen=True)
class InputRange:
    """What a batch reads: per source from where to where."""

    start: list[Position]
    end: list[Position]

    @property
    def rows(self) -> int:
        return sum(rows_between(start, end) for start, end in zip(self.start, self.end, strict=True))

    @property
    def nothing(self) -> InputRange:
        return InputRange(self.start, self.start)


class Inputs:
    """Positions, bounds and splits are lists with one entry per source."""

    def __init__(self, plan: Write, context: RuntimeContext) -> None:
        self._scans = sources_of(plan)
        self.sources: list[Source] = [open_source(scans[0], context) for scans in self._scans]
        # By identity: two scans of one table are equal values, and yet may be different nodes with their own columns.
        self._place = {id(scan): place for place, scans in enumerate(self._scans) for scan in scans}

    def place_of(self, scan: Scan | Values) -> int:
        """A scan that was put together from others reads the source of its table."""
        if id(scan) in self._place or isinstance(scan, Values):
            return self._place[id(scan)]
        return next(
            place
            for place, (first, *_) in enumerate(self._scans)
            if isinstance(first, Scan) and first.table == scan.table
        )

    def start(self) -> list[Position]:
        return [source.start() for source in self.sources]

    def bounds(self, start: list[Position]) -> list[Position | None]:
        return [source.bound(begin) for source, begin in zip(self.sources, start, strict=True)]

    def available(self, position: list[Position], bounds: list[Position | None], limit: int) -> InputRange:
        """What can be read now; nothing, if start and end are the same."""
        asked = zip(self.sources, position, bounds, strict=True)
        ranges = [source.available(here, bound, limit) for source, here, bound in asked]
        return InputRange([start for start, _ in ranges], [end for _, end in ranges])

    def splits(self, wanted: InputRange) -> Splits:
        asked = zip(self.sources, wanted.start, wanted.end, strict=True)
        return [source.splits(start, end) for source, start, end in asked]

    def scan(
        self,
        scan: Scan | Values,
        local: LocalAggregation | None = None,
        where: Condition | None = None,
        order: RowOrder = "any",
    ) -> ScanPlan | None:
        if isinstance(scan, Scan) and scan.placed:
            order = "partition"
        fields = dict(scan.fields) if isinstance(scan, Scan) else {}
        return self.sources[self.place_of(scan)].scan(scan.names, local, order, fields, where)

    def name_of(self, place: int) -> str:
        scan = self._scans[place][0]
        return scan.table.name if isinstance(scan, Scan) else "VALUES"

    def watermarked(self, idle_seconds: float) -> list[WatermarkedSource | None]:
        """What decides on watermarks, for the sources that have one."""
        pairs = zip(self.sources, self._scans, strict=True)
        return [_watermarked(source, scans, idle_seconds) for source, scans in pairs]

    @property
    def revision(self) -> int:
        return sum(source.revision for source in self.sources)

    def learn(self, splits: Splits) -> None:
        for source, mine in zip(self.sources, splits, strict=True):
            source.learn(mine)

    def divert_bad_records(self, splits: Splits, bad: Sequence[int]) -> int:
        """How many messages could not be read; `bad` are the counts of the sources' metrics."""
        found = 0
        for source, scans, mine, count in zip(self.sources, self._scans, splits, bad, strict=True):
            # All columns that any scan of the table reads: a message is bad if any of them cannot be read.
            columns = dict.fromkeys(name for scan in scans for name in scan.names)
            found += source.divert_bad_records(mine, list(columns), count)
        return found

    def divert_late_rows(self, origins: Sequence[str]) -> None:
        """Keep the messages that rows came from which were too late; see ORIGIN."""
        of_source: dict[int, dict[str, list[int]]] = {}
        for origin in origins:
            source, _, message = origin.partition(":")
            place, _, offset = message.rpartition(":")
            of_source.setdefault(int(source), {}).setdefault(place, []).append(int(offset))
        for place_of_source, messages in of_source.items():
            self.sources[place_of_source].divert_late_rows(messages)

    def facts(self) -> list[dict[str, Any]]:
        return [source.facts() for source in self.sources]

    def check_facts(self, facts: Sequence[dict[str, Any]]) -> None:
        for source, known in zip(self.sources, facts, strict=False):
            source.check_facts(known)

    def done(self, positions: Sequence[Position]) -> None:
        for source, end in zip(self.sources, positions, strict=True):
            source.done(end)

    def lag(self, positions: Sequence[Position]) -> int:
        return sum(source.lag(end) for source, end in zip(self.sources, positions, strict=True))

    def close(self) -> None:
        with ExitStack() as closing:
            for source in self.sources:
                closing.callback(source.close)


def open_source(node: Scan | Values, context: RuntimeContext) -> Source:
    if isinstance(node, Values):
        return ValuesSource(node, context)
    source: Source = node.table.connector.source(node.table, context.about(node.table))
    return source


def _watermarked(source: Source, scans: Sequence[Scan | Values], idle_seconds: float) -> WatermarkedSource | None:
    placed = [scan for scan in scans if isinstance(scan, Scan) and scan.placed]
    if not placed:
        return None
    own = placed[0].table.options.values.get("scan.watermark.idle-timeout")
    return WatermarkedSource(source.partitions, own.total_seconds() if own is not None else idle_seconds)


def is_finished(position: Sequence[Position], bounds: Sequence[Position | None]) -> bool:
    return all(
        bound is not None and all(position[i].get(k, 0) >= v for k, v in bound.items())
        for i, bound in enumerate(bounds)
    )
