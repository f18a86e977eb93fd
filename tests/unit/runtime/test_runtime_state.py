"""State and progress on disk: what a crash at any moment leaves behind, and what the next run makes of it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from headwater.changelog.state import TableSpec
from headwater.errors import IncompatibleCheckpointError, JobError
from headwater.runtime.checkpoint import Checkpoint, Intent
from headwater.runtime.layers import Bucket, state_rows

SPECS = (TableSpec("rows", pa.schema([("k", pa.int64())]), pa.schema([("v", pa.int64())])),)
BUCKETS = 3


class Job:
    """Batches over a dict, with the order of steps that `runtime.loop` keeps."""

    def __init__(self, directory: Path) -> None:
        self.checkpoint = Checkpoint(str(directory))
        self.checkpoint.drop_uncommitted_state()
        self.done = self.checkpoint.last_commit()

    def batch(self, changes: dict[int, int | None], run: str) -> None:
        """Save the state of batch done + 1. It counts only once it is committed."""
        for number in {k % BUCKETS for k in changes}:
            mine = {k: v for k, v in changes.items() if k % BUCKETS == number}
            bucket = self._bucket(number)
            state = bucket.load(SPECS, self.done + 1)
            keys = pa.array(list(mine), pa.int64())
            dead = np.array([v is None for v in mine.values()], dtype=np.bool_)
            state["rows"].write(keys.to_numpy(), [keys], [pa.array(list(mine.values()), pa.int64())], dead)
            bucket.save(state, self.done + 1, run, number)

    def commit(self) -> None:
        self.done += 1
        self.checkpoint.commit(self.done, {})

    def rows(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for number in range(BUCKETS):
            state = self._bucket(number).load(SPECS, self.done + 1)["rows"]
            keys = pa.array([k for k in range(40) if k % BUCKETS == number], pa.int64())
            hit = state.lookup(keys.to_numpy(), [keys])
            pairs = zip(keys.to_pylist(), hit.values.column("v").to_pylist(), hit.hit, strict=True)
            found.update({k: v for k, v, there in pairs if there})
        return found

    def _bucket(self, number: int) -> Bucket:
        return Bucket(self.checkpoint.state_location("1-normalize"), number)


@pytest.mark.parametrize("seed", range(3))
def test_only_what_is_committed_counts(seed: int, tmp_path: Path) -> None:
    dice, model = Random(seed), dict[int, int]()
    job = Job(tmp_path)
    for number in range(110):
        changes = {dice.randrange(40): dice.choice([None, dice.randrange(9)]) for _ in range(dice.randrange(1, 8))}
        for attempt in range(dice.choice([1, 1, 1, 2, 3])):
            if attempt:
                job = Job(tmp_path)  # the one before was killed after it had saved its state
            job.batch(changes, f"{number}-{attempt}")
        job.commit()
        for key, value in changes.items():
            model.pop(key, None)
            if value is not None:
                model[key] = value
        if dice.random() < 0.2:
            job = Job(tmp_path)
        assert job.rows() == model
    assert job.done == 110


def test_old_files_are_removed(tmp_path: Path) -> None:
    job = Job(tmp_path)
    for number in range(120):
        job.checkpoint.intend(job.done + 1, Intent([{"t:0": number}], [{"t:0": number + 1}], [None]))
        job.batch({number % 40: number}, str(number))
        job.commit()
    files = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) < 300
    assert not [name for name in files if name.endswith(".tmp")]
    assert Job(tmp_path).rows() == job.rows()
    assert job.checkpoint.intent(job.done) is not None
    assert state_rows(job.checkpoint.state_location("1-normalize")) >= 40


def test_leftovers_of_a_crash_are_removed(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.batch({1: 1}, "a")
    job.commit()
    before = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    job.batch({1: 2, 2: 2}, "b")
    again = Job(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == before
    assert again.rows() == {1: 1}


def test_a_retried_task_starts_from_the_batch_before(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.batch({3: 1}, "a")
    job.commit()
    for _ in range(3):  # the same task of the same run, again and again
        job.batch({3: None, 6: 2}, "b")
    job.commit()
    assert job.rows() == {6: 2}


def test_two_tasks_of_one_batch_must_not_share_a_bucket(tmp_path: Path) -> None:
    bucket = Bucket(str(tmp_path), 0)
    bucket.save(bucket.load(SPECS, 1), 1, "run", 0)
    bucket.save(bucket.load(SPECS, 1), 1, "run", 0)
    bucket.save(bucket.load(SPECS, 1), 1, "another run", 1)
    with pytest.raises(JobError, match="a bug in Headwater"):
        bucket.save(bucket.load(SPECS, 1), 1, "another run", 0)


def test_a_checkpoint_belongs_to_one_job_at_a_time(tmp_path: Path) -> None:
    first, second = Checkpoint(str(tmp_path / "c")), Checkpoint(str(tmp_path / "c"))
    first.acquire()
    with pytest.raises(IncompatibleCheckpointError, match="Another running job holds this checkpoint"):
        second.acquire()
    first.release()
    second.acquire()
    second.release()


def test_an_intent_comes_back_as_it_was(tmp_path: Path) -> None:
    checkpoint = Checkpoint(str(tmp_path))
    assert checkpoint.intent(1) is None
    assert checkpoint.last_commit() == 0
    assert checkpoint.job() is None
    intent = Intent([{"t:0": 1}, {}], [{"t:0": 5}, {"rows": 2}], [None, {"rows": 2}])
    checkpoint.intend(1, intent)
    created = checkpoint.create({"partitions": 2})
    assert checkpoint.intent(1) == intent
    assert checkpoint.job() == created == {"partitions": 2, "identity": created["identity"]}
    assert Checkpoint(str(tmp_path / "other")).create({})["identity"] != created["identity"]
    assert checkpoint.sink() == {}
    checkpoint.remember_sink({"writers": 2})
    assert checkpoint.sink() == {"writers": 2}
    assert checkpoint.last_commit() == 0
    checkpoint.commit(1, {"rows": 4})
    assert checkpoint.last_commit() == 1
