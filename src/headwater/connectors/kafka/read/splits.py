"""Positions of a topic's partitions, and how a batch is divided among the tasks that read it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headwater.connectors.kafka.clients.admin import Offsets, TopicPartition
from headwater.connectors.runtime import Position

__all__ = ["KafkaSplit", "assign_splits", "offsets_of", "position_of", "splits_of"]


class KafkaSplit(NamedTuple):
    """The messages of a partition from offset `first` to before `end`; some offsets may hold none."""

    topic: str
    partition: int
    first: int
    end: int

    @property
    def place(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def size(self) -> int:
        return self.end - self.first


def position_of(offsets: Offsets) -> Position:
    return {f"{topic}:{partition}": offset for (topic, partition), offset in offsets.items()}


def offsets_of(position: Position) -> Offsets:
    pairs = ((key.rsplit(":", 1), offset) for key, offset in position.items())
    return {(topic, int(partition)): offset for (topic, partition), offset in pairs}


def splits_of(recorded: Iterable[Sequence[str | int]]) -> list[KafkaSplit]:
    """Splits as an intent has them."""
    return [KafkaSplit(str(t), int(p), int(first), int(end)) for t, p, first, end in recorded]


def assign_splits(start: Offsets, end: Offsets, tasks: int, pieces: int) -> list[list[KafkaSplit]]:
    """What each task reads of a batch: the largest split goes to the task with least to do. Depends on the positions
    alone. A partition is read by one task, in order, unless `pieces` says in about how many splits of equal size the
    batch is cut (0: it is not)."""
    whole = [KafkaSplit(*tp, start.get(tp, 0), stop) for tp, stop in end.items() if stop > start.get(tp, 0)]
    splits = [piece for split in whole for piece in _cut(split, sum(s.size for s in whole), pieces)]
    assigned: list[list[KafkaSplit]] = [[] for _ in range(tasks)]
    load = [(0, task) for task in range(tasks)]
    # The split itself breaks ties: the assignment must be the same when a batch is repeated, whatever the order of a
    # dict.
    for split in sorted(splits, key=lambda s: (-s.size, s)):
        size, task = heapq.heappop(load)
        assigned[task].append(split)
        heapq.heappush(load, (size + split.size, task))
    # In order of partition and offset, so that pieces of one partition that meet in a task are read in order.
    return [sorted(mine) for mine in assigned]


def _cut(split: KafkaSplit, total: int, pieces: int) -> list[KafkaSplit]:
    if pieces == 0:
        return [split]
    size = max(1, -(-total // pieces))
    places = range(split.first, split.end, size)
    return [KafkaSplit(split.topic, split.partition, first, min(first + size, split.end)) for first in places]
