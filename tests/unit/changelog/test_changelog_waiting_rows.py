"""Rows that wait for a time against a plain model: far times, restarts, merges, other numbers of state partitions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from changelog_model import table
from operator_model import live_rows, reopened

from headwater.changelog.kinds import HASH
from headwater.changelog.operator import FINAL, Time
from headwater.changelog.pairing import last_not_after
from headwater.changelog.timers import TimeIndex
from headwater.changelog.waiting_rows import AT_ONCE, WaitingRows
from headwater.protocol.storage import open_storage
from headwater.state import compaction
from headwater.state.files import open_state, save_state
from headwater.state.merge import merged
from headwater.state.partitions import partition_of
from headwater.state.rescale import rescale
from headwater.state.runs import Run
from headwater.state.table import StateTable

SECOND = 1_000_000
ROWS = pa.schema([("v", pa.string()), ("list", pa.list_(pa.int32())), ("row", pa.struct([("x", pa.int32())]))])
WAITING = WaitingRows("waiting", ROWS)
CENTRES = [0, -5_000 * SECOND, 1_700_000_000 * SECOND, (1 << 32) * SECOND, 200_000_000_000 * SECOND]
FAR = [-(10**17), -1, 0, (1 << 32) * SECOND - 1, (1 << 32) * SECOND, 9 * 10**18]
"""Slots of seconds go from 1970 to 2106: what is before or behind them shares the first or the last one."""
Waiter = tuple[int, str]
"""HASH and a value."""


class History:
    """Random batches of rows, each in its state partition, with a watermark that never goes back."""

    def __init__(self, dice: Random, directory: Path) -> None:
        self.dice = dice
        self.storage = open_storage(str(directory))
        self.states = [{"waiting": StateTable(WAITING.spec)} for _ in range(dice.randint(1, 3))]
        self.model: Counter[tuple[int, Waiter]] = Counter()
        self.centre, self.span = dice.choice(CENTRES), dice.choice([50, 3 * SECOND, 4_000 * SECOND])
        self.spread = dice.choice([1, 2, 1 << 20])
        self.watermark: int | None = None
        self.batch = 0

    def play(self) -> None:
        self.batch += 1
        self._move_watermark()
        rows = [self._row() for _ in range(self.dice.choice([0, 0, 1, 3, 8, 20]))]
        self.model.update(rows)
        limit = AT_ONCE if self.watermark is None else self.watermark
        due = {entry: count for entry, count in self.model.items() if entry[0] <= limit}
        expected: Counter[Waiter] = Counter()
        for entry, count in due.items():
            expected[entry[1]] += count
            del self.model[entry]
        assert self._step(rows) == expected
        assert sum(map(live_rows, self.states)) == self.model.total()

    def _move_watermark(self) -> None:
        if self.dice.random() < 0.8:
            least = self.centre - self.span if self.watermark is None else self.watermark
            steps = [0, 1, 999, SECOND, self.span // 3, self.span]
            self.watermark = min(least + self.dice.choice(steps), FINAL)
        if self.dice.random() < 0.03:
            self.watermark = FINAL

    def _row(self) -> tuple[int, Waiter]:
        key = self.dice.randrange(3)
        hashed = ((key * 7919 % self.spread - self.spread // 2) << 32) | (key * 104_729 % self.spread)
        times = [self.centre + self.dice.randint(-self.span, self.span)] * 6
        times += [self.dice.choice(FAR), AT_ONCE]
        if self.watermark is not None:
            times += [min(self.watermark + near, FINAL) for near in (-1, 0, 1) if self.watermark != FINAL or near < 1]
        return self.dice.choice(times), (hashed, f"k{key}")

    def _step(self, rows: list[tuple[int, Waiter]]) -> Counter[Waiter]:
        given = table(pa.schema([(HASH, pa.int64()), *ROWS]), [(h, v, [1, None], {"x": 1}) for _, (h, v) in rows])
        times = np.array([time for time, _ in rows], dtype=np.int64)
        numbers = partition_of(given.column(HASH).to_numpy(), len(self.states))
        found: Counter[Waiter] = Counter()
        for number, state in enumerate(self.states):
            mine = numbers == number
            time = Time(None, self.watermark, batch=self.batch)
            due = WAITING.due(state["waiting"], given.filter(pa.array(mine)), times[mine], time)
            found.update(zip(due.column(HASH).to_pylist(), due.column("v").to_pylist(), strict=True))
        return found

    def disturb(self) -> None:
        """A restart, a compaction, or another number of state partitions, or nothing."""
        action = self.dice.choice(["", "restart", "compact", "files", "rescale"])
        if action == "restart":
            self.states = [reopened(state) for state in self.states]
        elif action == "compact":
            for state in self.states:
                _compact(state["waiting"], self.dice)
        elif action in {"files", "rescale"} and self.dice.random() < 0.1:
            self._through_files(self.dice.randint(1, 3) if action == "rescale" else len(self.states))

    def _through_files(self, partitions: int) -> None:
        files = [save_state(self.storage, s, f"state/op/{n}/{self.batch}") for n, s in enumerate(self.states)]
        if partitions != len(files):
            files = rescale(self.storage, [WAITING.spec], files, partitions, lambda n: f"state/op/{n}/r{self.batch}")
        self.states = [open_state(self.storage, [WAITING.spec], of_partition) for of_partition in files]


def _compact(waiting: StateTable, dice: Random) -> None:
    """Some neighbours into one, as a compaction does beside the batches."""
    if len(waiting.runs) > 1:
        start = dice.randrange(len(waiting.runs) - 1)
        end = dice.randint(start + 2, len(waiting.runs))
        rows = merged(waiting.spec, waiting.runs[start:end], drop_tombstones=start == 0, chunk_rows=dice.choice([0, 2]))
        run = Run(waiting.spec.run_schema, list(rows))
        waiting.runs[start:end] = [run] if run.rows else []


@pytest.mark.parametrize("merged_rows", [1, 10, 1000])
def test_every_row_comes_once_when_its_time_has_passed(
    merged_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "INLINE_MERGE_ROWS", merged_rows)
    for seed in range(25):
        history = History(Random(seed * 1000 + merged_rows), tmp_path / str(seed))
        for _ in range(8):
            history.play()
            history.disturb()


def test_the_last_version_not_after_a_time_is_that_of_a_search() -> None:
    for seed in range(500):
        dice = Random(seed)
        first = dice.choice([0, -(1 << 62), 1 << 61])
        versions = sorted(((dice.randrange(3), first + dice.randrange(5)) for _ in range(dice.randrange(8))), key=_time)
        asked = [(dice.randrange(4), first + dice.randint(-1, 6)) for _ in range(dice.randrange(8))]
        found = last_not_after(_columns(versions), _columns(asked))
        expected = [
            max((place for place, (k, t) in enumerate(versions) if k == key and t <= time), default=-1)
            for key, time in asked
        ]
        assert found.tolist() == expected, seed


def _time(entry: tuple[int, int]) -> int:
    return entry[1]


def _columns(entries: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    keys, times = np.array(entries, dtype=np.int64).reshape(-1, 2).T
    return keys, times


def test_entries_of_a_second_that_are_not_due_are_not_written_again() -> None:
    """Whoever takes one of very many leaves a tombstone."""
    index = TimeIndex("expiry", pa.schema([("k", pa.int64())]))
    entries = StateTable(index.spec)
    keys = np.arange(1000, dtype=np.int64)
    index.write(entries, keys, keys, [pa.array(keys)])
    (whole,) = entries.runs
    assert index.take(entries, 0).column("k").to_pylist() == [0]
    assert entries.runs[0] is whole
    assert entries.rows == 1001
    assert index.take(entries, 2).column("k").to_pylist() == [1, 2]
    assert index.take(entries, FINAL).num_rows == 997
    assert not entries.runs
