"""Compactions of state beside the batches, by Spark: what they change, and what happens when they do not succeed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headwater.execution.compaction import Compactor
from headwater.protocol.records import StateFiles
from headwater.protocol.storage import open_storage
from headwater.state.compaction import CompactionLimits
from headwater.state.files import open_run, save_state
from headwater.state.manifest import RunFile
from headwater.state.table import StateTable, TableSpec
from headwater.testing.spark import spark_of_tests

SPEC = TableSpec("rows", pa.schema([("k", pa.int64())]), pa.schema([("v", pa.int64())]))
LIMITS = CompactionLimits(inline_rows=10, most_runs=5)
OPERATOR, PARTITION = "aggregate-1", 1


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return spark_of_tests()


class State:
    """The state of one operator as a commit names it: four runs that only a compaction merges, then smaller ones."""

    def __init__(self, directory: Path, spark: SparkSession) -> None:
        self.storage = open_storage(str(directory))
        self.warnings: list[str] = []
        self.compactor = Compactor("totals", spark, self.storage, self.warnings.append, LIMITS)
        self.compactor.specs = {OPERATOR: [SPEC]}
        self.runs = [self.write(range(first, first + 12), number=first) for first in (0, 4, 8, 12)]

    def write(self, keys: range, number: int) -> RunFile:
        table, numbers = StateTable(SPEC), np.array(keys, dtype=np.int64)
        table.write(numbers, [pa.array(numbers)], [pa.array(numbers + 100 * number)], np.zeros(len(numbers), bool))
        return save_state(self.storage, {"rows": table}, f"state/{OPERATOR}/{PARTITION}/{number:02d}-a")["rows"][0]

    @property
    def files(self) -> StateFiles:
        other = {0: {"rows": (self.runs[0],)}}
        return {OPERATOR: {**other, PARTITION: {"rows": tuple(self.runs)}}, "others-2": {}}

    def read(self, files: StateFiles) -> list[int | None]:
        runs = [open_run(self.storage, SPEC, file) for file in files[OPERATOR][PARTITION]["rows"]]
        return StateTable(SPEC, runs).lookup(np.arange(40), [pa.array(np.arange(40))]).values.column("v").to_pylist()

    def stored(self) -> set[str]:
        return set(self.storage.names("state/"))

    def ended(self) -> None:
        """Until the compaction that is under way has ended, well or not."""
        self.compactor.wait()


@pytest.fixture
def state(tmp_path: Path, spark: SparkSession) -> Iterator[State]:
    made = State(tmp_path / "checkpoint", spark)
    yield made
    made.compactor.close()


@contextmanager
def busy(spark: SparkSession, directory: Path) -> Iterator[Callable[[], None]]:
    """No task of others can run before the function is called: both cores have one that waits for it."""
    release, cores = directory / "release", 2

    def hold(number: int) -> None:
        (directory / f"held-{number}").touch()
        deadline = time.monotonic() + 60
        while not release.exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    job = threading.Thread(target=lambda: spark.sparkContext.parallelize(range(cores), cores).foreach(hold))
    job.start()
    try:
        deadline = time.monotonic() + 60
        while not all((directory / f"held-{number}").exists() for number in range(cores)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield release.touch
    finally:
        release.touch()
        job.join()


def test_what_was_merged_is_in_the_next_state(state: State) -> None:
    state.compactor.plan(state.files)
    state.ended()
    state.runs.append(state.write(range(14, 30), number=20))  # of a batch that ran meanwhile
    before = state.files
    after = state.compactor.apply(before)
    merged, newest = after[OPERATOR][PARTITION]["rows"]
    assert newest == state.runs[-1]
    assert merged not in state.runs
    assert merged.rows == 24
    assert state.read(after) == state.read(before)
    assert state.read(after)[:5] == [0, 1, 2, 3, 404]
    assert (after[OPERATOR][0], after["others-2"]) == (before[OPERATOR][0], {})
    assert state.compactor.apply(after) == after, "it is applied once"
    assert state.warnings == []


def test_a_result_whose_inputs_are_gone_is_removed(state: State) -> None:
    state.compactor.plan(state.files)
    state.ended()
    assert any("compaction-" in name for name in state.stored())
    state.runs[2:] = [state.write(range(8, 24), number=30)]
    before = state.files
    assert state.compactor.apply(before) == before
    assert not any("compaction-" in name for name in state.stored())
    assert state.warnings == []


def test_one_that_fails_is_logged_and_planned_again(state: State, tmp_path: Path) -> None:
    missing, away = tmp_path / "checkpoint" / state.runs[1].name, tmp_path / "away"
    before = state.files
    missing.rename(away)
    stored = state.stored()
    for _ in range(2):
        state.compactor.plan(before)
        state.ended()
        assert state.compactor.apply(before) == before
    assert state.stored() == stored
    (warning,) = state.warnings
    assert warning.startswith(f"State table 'rows' of operator '{OPERATOR}' could not be compacted, which is tried")
    assert f"File '{state.runs[1].name}' of the checkpoint is missing." in warning
    away.rename(missing)
    state.compactor.plan(before)  # after two failures, one commit passes without a try
    state.ended()
    assert state.compactor.apply(before) == before
    state.compactor.plan(before)
    state.ended()
    after = state.compactor.apply(before)
    assert len(after[OPERATOR][PARTITION]["rows"]) == 1
    assert state.read(after) == state.read(before)


def test_inputs_that_a_batch_has_removed_are_no_failure(state: State, tmp_path: Path) -> None:
    """As when a batch merges all rows of a table into one run, and the commits that named the old ones go."""
    gone = state.runs[1]
    (tmp_path / "checkpoint" / gone.name).unlink()
    state.compactor.plan(state.files)
    state.ended()
    state.runs = [state.write(range(24), number=30)]
    assert state.compactor.apply(state.files) == state.files
    assert state.warnings == []


def test_batches_go_on_beside_it_until_there_are_too_many_runs(
    state: State, spark: SparkSession, tmp_path: Path
) -> None:
    with busy(spark, tmp_path) as release:
        state.compactor.plan(state.files)
        state.runs.append(state.write(range(5), number=40))
        assert len(state.runs) == LIMITS.most_runs
        assert state.compactor.apply(state.files) == state.files, "not waited for"
        state.runs.append(state.write(range(2), number=41))
        before, after = state.files, []
        batch = threading.Thread(target=lambda: after.append(state.compactor.apply(before)))
        batch.start()
        batch.join(0.3)
        assert batch.is_alive(), "the batch waits for the compaction"
        release()
        batch.join(60)
    assert len(after[0][OPERATOR][PARTITION]["rows"]) == 3
    assert state.read(after[0]) == state.read(before)
