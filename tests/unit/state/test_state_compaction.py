"""Which runs are merged: never too many runs, never a long merge inside a step, no row rewritten too often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from state_model import DirectoryStorage

from headwater.state.compaction import (
    INLINE_MERGE_BYTES,
    INLINE_MERGE_ROWS,
    MOST_RUNS,
    first_merged,
    plan_compaction,
    swapped,
    too_many_runs,
)
from headwater.state.files import compact, open_run, save_state
from headwater.state.manifest import RunFile
from headwater.state.table import StateTable, TableSpec


@dataclass
class Sizes:
    """The runs of one table, by size alone. `width` is the number of bytes of a row."""

    width: int
    runs: list[RunFile] = field(default_factory=list)
    written: int = 0
    largest_step: int = 0
    most_runs: int = 0

    def step(self, rows: int) -> None:
        self.runs.append(self._run(rows))
        first = first_merged(self.runs)
        together = sum(run.rows for run in self.runs[first:])
        self.runs[first:] = [self._run(together)]
        self.written += together
        if together > rows:
            self.largest_step = max(self.largest_step, together)
        self.most_runs = max(self.most_runs, len(self.runs))

    def compact(self, planned: list[RunFile]) -> bool:
        result = self._run(sum(run.rows for run in planned))
        runs = swapped(self.runs, planned, result)
        self.written += result.rows
        self.runs = self.runs if runs is None else runs
        return runs is not None

    def _run(self, rows: int) -> RunFile:
        return RunFile(f"{self.written}", rows, rows * self.width, "")


LOADS: dict[str, Callable[[Random], int]] = {
    "catching up": lambda _: 500_000,
    "small batches": lambda dice: dice.randrange(1, 5_000),
    "mixed": lambda dice: dice.choice([10, 1_000, 50_000, 400_000, 900_000]),
    "batches beyond the limit": lambda dice: dice.randrange(1_000_000, 3_000_000),
    "just below the limit": lambda _: 900_000,
}


@pytest.mark.parametrize("width", [40, 600])
@pytest.mark.parametrize("load", LOADS)
def test_runs_stay_few_and_steps_short(load: str, width: int) -> None:
    """A compaction takes as long as three batches; its inputs are never merged away under it."""
    dice, sizes, planned, put, discarded = Random(5), Sizes(width), None, 0, 0
    for number in range(400):
        rows = LOADS[load](dice)
        put += rows
        sizes.step(rows)
        if planned is None and (part := plan_compaction(sizes.runs)) is not None:
            planned, due = sizes.runs[part], number + 3
        if planned is not None and number >= due:
            discarded += not sizes.compact(planned)
            planned = None
    assert sizes.largest_step <= INLINE_MERGE_ROWS
    assert sizes.largest_step * width <= INLINE_MERGE_BYTES
    assert discarded == 0
    assert sizes.most_runs <= MOST_RUNS
    assert sizes.written <= 10 * put, "a row is rewritten O(log n) times"


def sized(*rows: int) -> list[RunFile]:
    return [RunFile(str(number), count, 40 * count, "") for number, count in enumerate(rows)]


@pytest.mark.parametrize(
    ("rows", "planned"),
    [
        ([], None),
        ([50_000_000], None),
        ([900_000, 900_000, 900_000], None),
        ([900_000, 900_000, 900_000, 900_000, 900_000], slice(0, 4)),  # a step may still merge the newest
        ([50_000_000, 900_000, 900_000, 900_000, 900_000, 200_000], slice(1, 5)),
        ([3_000_000, 900_000, 900_000, 900_000, 900_000, 200_000], slice(0, 5)),
        ([2_000_000, 2_000_000, 2_000_000, 2_000_000, 50_000_000], slice(0, 5)),
        ([2_000_000, 2_000_000, 2_000_000, 2_000_000, 50_000_000, 1_000_000, 1_000], slice(0, 5)),
        ([1_000, 1_000, 1_000, 1_000, 1_000], None),
    ],
    ids=str,
)
def test_what_is_merged_beside_the_batches(rows: list[int], planned: slice | None) -> None:
    assert plan_compaction(sized(*rows)) == planned


def test_batches_wait_when_there_are_too_many_runs() -> None:
    assert not too_many_runs(sized(*[5] * MOST_RUNS))
    assert too_many_runs(sized(*[5] * (MOST_RUNS + 1)))


def test_a_result_takes_the_place_of_its_inputs_if_they_are_still_there() -> None:
    runs, result = sized(9, 8, 7, 6), RunFile("new", 15, 1, "")
    assert swapped(runs, runs[1:3], result) == [runs[0], result, runs[3]]
    assert swapped([*runs, RunFile("later", 1, 1, "")], runs[:2], result) == [
        result,
        *runs[2:],
        RunFile("later", 1, 1, ""),
    ]
    assert swapped([runs[0], runs[2]], runs[1:3], result) is None
    assert swapped([runs[1], runs[0], runs[2]], runs[1:3], result) is None
    assert swapped(runs, runs, RunFile("empty", 0, 1, "")) == []


SPEC = TableSpec("rows", pa.schema([("k", pa.int64())]), pa.schema([("v", pa.int64())]))


@pytest.mark.parametrize("drop", [True, False])
def test_files_are_merged_into_one(tmp_path: Path, drop: bool) -> None:
    storage, files = DirectoryStorage(tmp_path), []
    for number, (keys, gone) in enumerate([(range(100), False), (range(50, 60), True), (range(55, 58), False)]):
        state = {"rows": StateTable(SPEC)}
        state["rows"].runs = []
        numbers = np.array(keys, dtype=np.int64)
        # below another run, so that tombstones stay
        filler = StateTable(SPEC)
        filler.write(
            np.arange(1_000), [pa.array(np.arange(1_000))], [pa.array(np.arange(1_000))], np.zeros(1_000, bool)
        )
        filler.write(numbers, [pa.array(numbers)], [pa.array(numbers + number)], np.full(len(numbers), gone))
        state["rows"].runs = filler.runs[1:]
        files += save_state(storage, state, f"state/op/0/{number}-a-1")["rows"]
    file = compact(storage, SPEC, files, "state/op/0/compacted.arrow", drop_tombstones=drop)
    run = open_run(storage, SPEC, file)
    assert file.rows == run.rows == (93 if drop else 100)
    found = StateTable(SPEC, [run]).lookup(np.arange(100), [pa.array(np.arange(100))])
    expected = {k: k for k in range(100) if not 50 <= k < 60} | {k: k + 2 for k in range(55, 58)}
    assert {k: v for k, v in enumerate(found.values.column("v").to_pylist()) if v is not None} == expected
    assert [path.name for path in tmp_path.rglob("*") if "staging" in path.name] == []
