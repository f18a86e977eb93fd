"""Which task reads what of a batch: all of it once, evenly, and the same each time."""

from __future__ import annotations

import random

import pytest

from headwater.connectors.kafka.read.splits import KafkaSplit, assign_splits, offsets_of, position_of, splits_of

START = {("t", 0): 5, ("t", 1): 0, ("u", 0): 7}
END = {("t", 0): 105, ("t", 1): 3, ("u", 0): 7, ("u", 1): 40}


def held(assigned: list[list[KafkaSplit]]) -> list[tuple[str, int, int]]:
    return sorted((s.topic, s.partition, offset) for mine in assigned for s in mine for offset in range(s.first, s.end))


WHOLE = sorted((*tp, offset) for tp, end in END.items() for offset in range(START.get(tp, 0), end))


@pytest.mark.parametrize("tasks", [1, 2, 3, 7])
@pytest.mark.parametrize("pieces", [0, 1, 3, 1000])
def test_every_offset_is_read_once(tasks: int, pieces: int) -> None:
    assigned = assign_splits(START, END, tasks, pieces)
    assert len(assigned) == tasks
    assert held(assigned) == WHOLE


def test_a_partition_is_read_by_one_task_unless_pieces_are_asked_for() -> None:
    assigned = assign_splits(START, END, 2, 0)
    assert assigned == [[KafkaSplit("t", 0, 5, 105)], [KafkaSplit("t", 1, 0, 3), KafkaSplit("u", 1, 0, 40)]]
    sizes = [sum(s.size for s in mine) for mine in assign_splits(START, END, 4, 4)]
    assert max(sizes) <= 36 + 3


def test_the_order_of_positions_does_not_matter() -> None:
    expected = assign_splits(START, END, 3, 5)
    for seed in range(5):
        shuffled = list(END.items())
        random.Random(seed).shuffle(shuffled)
        assert assign_splits(START, dict(shuffled), 3, 5) == expected


def test_positions_and_splits_are_plain_values() -> None:
    assert offsets_of(position_of(END)) == END
    assert position_of({("a:b", 3): 9}) == {"a:b:3": 9}
    assert splits_of([["t", 1, 2, 3]]) == [KafkaSplit("t", 1, 2, 3)]
