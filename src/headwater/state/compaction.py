"""Which runs are merged, and when. Plain arithmetic on their sizes.

A step merges small runs of similar size itself, so there are few of them and a key is rewritten O(log n) times. What is
beyond its limits would make a batch take much longer than others: such runs pile up until a *compaction* merges several
of them. The driver plans one per state table from its newest commit, runs it as a job of its own while batches go on
(`files.compact`), and swaps the result into the next commit, if the runs that were merged still stand there side by
side. A result that comes too late is a file nobody names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from headwater.state.manifest import RunFile

__all__ = [
    "COMPACTED_RUNS",
    "INLINE_MERGE_BYTES",
    "INLINE_MERGE_ROWS",
    "MERGE_FACTOR",
    "MOST_RUNS",
    "CompactionLimits",
    "Sized",
    "first_merged",
    "plan_compaction",
    "swapped",
    "too_many_runs",
]

MERGE_FACTOR = 1.5
"""A run is merged with older ones while they are at most this many times the size of all newer ones together."""
INLINE_MERGE_ROWS = 1_000_000
INLINE_MERGE_BYTES = 64 << 20
"""The most that a step merges: about 0.2 s."""
COMPACTED_RUNS = 4
"""How many runs a compaction merges at least: with fewer, rows would be rewritten more often."""
MOST_RUNS = 24
"""With more runs than this, batches wait for the compaction, because lookups ask every run."""


@dataclass(frozen=True)
class CompactionLimits:
    """A merge beyond `inline_rows` or `inline_bytes` is a compaction; beyond `most_runs`, batches wait for it."""

    inline_rows: int = INLINE_MERGE_ROWS
    inline_bytes: int = INLINE_MERGE_BYTES
    most_runs: int = MOST_RUNS


_LIMITS = CompactionLimits()


class Sized(Protocol):
    @property
    def rows(self) -> int: ...

    @property
    def bytes(self) -> int: ...


def first_merged(runs: Sequence[Sized]) -> int:
    """The first of the runs, oldest first, that a step merges with all newer ones; the last one if none."""
    first = len(runs) - 1
    rows, size = runs[first].rows, runs[first].bytes
    # Sizes grow by at least this factor from run to run, so there are O(log n) runs, and a row moves up O(log n)
    # times.
    while first and runs[first - 1].rows <= MERGE_FACTOR * rows:
        rows, size = rows + runs[first - 1].rows, size + runs[first - 1].bytes
        if rows > INLINE_MERGE_ROWS or size > INLINE_MERGE_BYTES:
            break
        first -= 1
    return first


def plan_compaction(runs: Sequence[Sized], limits: CompactionLimits = _LIMITS) -> slice | None:
    """Which of these runs, oldest first, to merge into one: the newest neighbours of similar size that no step will
    merge any more. None if there are too few of them. If the slice starts at 0, tombstones may be dropped."""
    for end in range(_final_runs(runs, limits), COMPACTED_RUNS - 1, -1):
        start, rows = end - 1, runs[end - 1].rows
        while start and runs[start - 1].rows <= MERGE_FACTOR * rows:
            start -= 1
            rows += runs[start].rows
        if end - start >= COMPACTED_RUNS:
            return slice(start, end)
    return None


def too_many_runs(runs: Sequence[Sized], limits: CompactionLimits = _LIMITS) -> bool:
    return len(runs) > limits.most_runs


def swapped(runs: Sequence[RunFile], inputs: Sequence[RunFile], result: RunFile) -> list[RunFile] | None:
    """`runs` with `result` in place of `inputs`, which must stand there side by side; None if they do not."""
    # Steps go on while a compaction runs. They append behind its inputs, or merge some of them themselves; then its
    # result is of no use.
    for start in range(len(runs) - len(inputs) + 1):
        if list(runs[start : start + len(inputs)]) == list(inputs):
            kept = [result] if result.rows else []
            return [*runs[:start], *kept, *runs[start + len(inputs) :]]
    return None


def _final_runs(runs: Sequence[Sized], limits: CompactionLimits) -> int:
    """How many of the oldest runs no step can merge: one of them, together with the largest of the newer ones, is
    beyond its limits, and a step merges the newest runs without a gap. (Rows of merged runs may vanish, but never so
    many that less is left than the largest of them had.)"""
    rows, size = 0, 0
    for number in range(len(runs) - 1, -1, -1):
        if runs[number].rows + rows > limits.inline_rows or runs[number].bytes + size > limits.inline_bytes:
            return number + 1
        rows, size = max(rows, runs[number].rows), max(size, runs[number].bytes)
    return 0
