"""Windows of event time where rows are read: which rows are on time, and what they give to the groups of their windows.

Rows of a partition come in its order. Each has a watermark, the greatest of all rows before it, and is late for a
window that this watermark has closed. So what is late depends on one partition alone, and is known before the shuffle;
all other rows can be added up to one row per group and window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools, Ints, flat
from headwater.changelog.conditions import Condition
from headwater.changelog.operator import OWN_WATERMARK
from headwater.changelog.preaggregate import GroupBuffer, PreAggregation
from headwater.changelog.window_assigners import TICK

__all__ = ["END", "NONE", "START", "LocalWindows", "PartitionWatermarks", "WindowedRows"]

START, END = "__hw_start", "__hw_end"
"""Of a row's window; in panes, the start of its pane and the end of the last window that the pane is in."""
NONE = -(1 << 62)
"""No watermark yet."""


class PartitionWatermarks:
    """The greatest watermark of each partition so far, in milliseconds; `known` are those of the last commit."""

    def __init__(self, known: Mapping[str, int]) -> None:
        self._known = known
        self._greatest: dict[str, int] = {}

    def before_each(self, place: str, micros: pa.Array) -> Ints:
        """For rows of a partition, which have these watermarks: the greatest before each, earlier batches included. So
        it does not depend on where batches are cut."""
        # Event time has milliseconds. A row without a time says nothing.
        values: Ints = np.where(micros.is_valid(), micros.fill_null(0).to_numpy() // 1000, NONE)
        before = self._greatest.get(place, self._known.get(place, NONE))
        running = np.maximum.accumulate(np.concatenate([[before], values]))
        self._greatest[place] = int(running[-1])
        return np.asarray(running[:-1])

    def seen(self) -> dict[str, int]:
        """Of the partitions that rows came from. One whose rows had no time is not among them: its watermark stays what
        it was."""
        return {place: watermark for place, watermark in self._greatest.items() if watermark != NONE}


@dataclass(frozen=True)
class LocalWindows:
    """All lengths of time are in microseconds.

    time       the column whose windows rows are in
    watermark  the column that the watermark is made of, and what is added to it
    slide      of the grid on which windows, or panes, start
    span       of the grid on which the windows end, `size` after their start: that of CUMULATE is its size
    paned      whether windows overlap, and rows are added up by pane
    lateness   how long after its end a window takes rows
    groups     what is added up: over START, with `paned` also OWN_WATERMARK, and columns of the rows
    where      which rows count, if not all
    """

    time: str
    watermark: tuple[str, int]
    slide: int
    span: int
    size: int
    offset: int
    paned: bool
    lateness: int
    groups: PreAggregation
    where: Condition | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All that rows must have."""
        tested = sorted(self.where.columns) if self.where is not None else []
        grouped = [column for column in self.groups.columns if column not in {START, OWN_WATERMARK}]
        return tuple(dict.fromkeys([self.time, self.watermark[0], *grouped, *tested]))

    def ends(self, starts: Ints) -> Ints:
        return (starts - self.offset) // self.span * self.span + self.offset + self.size

    def on_time(self, rows: pa.Table, own: Ints) -> tuple[pa.Table, int]:
        """The rows that count, with the columns of `groups`; and how many have come too late. `own` are the watermarks
        before the rows, in milliseconds."""
        counted = self._counted(rows)
        times = flat(rows, self.time).cast(pa.int64()).fill_null(0).to_numpy()
        starts: Ints = (times - self.offset) // self.slide * self.slide + self.offset
        late = self._is_late(self.ends(starts), own)
        columns = {START: pa.array(starts, pa.timestamp("us"))}
        if self.paned:
            # Late for the first windows of its pane, but not for all: it is not added up with rows that are on time.
            partly = self._is_late(starts + self.slide, own)
            stamps = np.where(partly, own * 1000, 0)
            columns[OWN_WATERMARK] = pa.array(stamps, pa.int64(), mask=~partly).cast(pa.timestamp("us"))
        wanted = [name for name in self.groups.columns if name not in columns]
        table = pa.table({**columns, **{name: rows.column(name) for name in wanted}})
        kept = counted & ~late
        return (table if kept.all() else table.filter(pa.array(kept))), int(np.count_nonzero(counted & late))

    def _counted(self, rows: pa.Table) -> Bools:
        """Without a time there is no window; of a condition NULL is not TRUE."""
        counted = pc.is_valid(flat(rows, self.time))
        if self.where is not None:
            columns = {name: flat(rows, name) for name in self.where.columns}
            counted = pc.and_(counted, pc.fill_null(self.where.evaluate(columns, rows.num_rows), False))
        return np.asarray(counted.to_numpy(zero_copy_only=False))

    def _is_late(self, ends: Ints, own: Ints) -> Bools:
        return np.asarray((own != NONE) & (ends - TICK + self.lateness <= own * 1000))


class WindowedRows:
    """The rows of one task, partition by partition, on their way to groups. `late` counts those that came too late."""

    def __init__(self, windows: LocalWindows, watermarks: PartitionWatermarks) -> None:
        self._windows = windows
        self._buffer = GroupBuffer(windows.groups)
        self.watermarks = watermarks
        self.late = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """All that rows must have."""
        return self._windows.columns

    def add(self, place: str, rows: pa.Table) -> Iterator[pa.Table]:
        """Groups, if there are enough rows by now."""
        column, moved = self._windows.watermark
        micros = pc.add(flat(rows, column).cast(pa.int64()), moved)
        own = self.watermarks.before_each(place, micros)
        kept, late = self._windows.on_time(rows, own)
        self.late += late
        yield from self._buffer.add(kept)

    def rest(self) -> Iterator[pa.Table]:
        return self._buffer.rest()
