"""A rescale that is killed before any of its writes: the job goes on from the state as it was, or as it should be."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.execution import rescale as rescaling
from headwater.execution.rescale import rescale_checkpoint
from headwater.protocol.checkpoint import Checkpoint
from headwater.protocol.log import read_log
from headwater.protocol.records import Commit, Genesis, Intent, RunFile
from headwater.protocol.storage import Storage, open_storage
from headwater.state.columns import HASH
from headwater.state.files import open_run, open_state, save_state
from headwater.state.partitions import partition_of
from headwater.state.table import TableSpec

SPEC = TableSpec("groups", pa.schema([("k", pa.int64())]), pa.schema([("v", pa.int64())]))
OPERATORS = ("aggregate-1", "aggregate-2")
BEFORE, AFTER, BATCHES, KEYS = 1, 2, 4, 20

Partitions = dict[int, dict[str, tuple[RunFile, ...]]]


class Killed(BaseException):
    """The process ends here."""


def hashes_of(keys: range) -> np.ndarray:
    return (np.array(keys, np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)


def changed(storage: Storage, operator: str, before: Partitions, batch: int) -> Partitions:
    """Every key has the number of the batch."""
    hashes, keys = hashes_of(range(KEYS)), np.arange(KEYS)
    after: Partitions = {}
    for number in range(BEFORE):
        mine = partition_of(hashes, BEFORE) == number
        state = open_state(storage, [SPEC], {name: list(runs) for name, runs in before.get(number, {}).items()})
        values = pa.array([batch] * int(mine.sum()), pa.int64())
        gone = np.zeros(len(values), bool)
        state["groups"].write(hashes[mine], [pa.array(keys[mine])], [values], gone)
        files = save_state(storage, state, f"state/{operator}/{number}/a{batch}")
        after[number] = {name: tuple(runs) for name, runs in files.items()}
    return after


def stopped_job(location: str) -> None:
    """Its checkpoint, with more commits than are kept."""
    checkpoint = Checkpoint(open_storage(location))
    checkpoint.begin(Genesis("id", "plan", BEFORE, [{"0": 0}], [None]))
    committed = checkpoint.claim("run").committed
    for batch in range(1, BATCHES + 1):
        start, end = committed.positions, [{"0": batch}]
        intent = Intent(batch, start, end, [None], [[[["0", batch - 1, batch]]]], {}, 0)
        checkpoint.intend(intent)
        state = {o: changed(checkpoint.storage, o, dict(committed.state.get(o, {})), batch) for o in OPERATORS}
        committed = replace(
            committed, batch=batch, attempt=f"a{batch}", intent=intent.digest, positions=end, state=state
        )
        checkpoint.commit(committed)
        checkpoint.collect()
    checkpoint.release()


def rows_of(storage: Storage, commit: Commit) -> dict[str, dict[int, int]]:
    """What the state holds; every key lies in its partition."""
    found: dict[str, dict[int, int]] = {operator: {} for operator in commit.state}
    for operator, partitions in commit.state.items():
        for number, tables in partitions.items():
            for run in sorted(tables["groups"], key=lambda run: run.name):  # a later batch wins
                rows = open_run(storage, SPEC, run).table
                assert set(partition_of(rows.column(HASH).to_numpy(), commit.partitions).tolist()) <= {number}
                found[operator].update({row["k"]: row["v"] for row in rows.to_pylist()})
    return found


def killed_before(step: int, real: Storage) -> Storage:
    """The storage of a process that is killed before its write of this number."""
    left = step

    def counted(write: Callable[..., None]) -> Callable[..., None]:
        def counting(*arguments: object) -> None:
            nonlocal left
            if not left:
                raise Killed
            left -= 1
            write(*arguments)

        return counting

    delete = counted(real.delete)
    real.create = counted(real.create)  # type: ignore[method-assign]
    real.publish = counted(real.publish)  # type: ignore[method-assign]
    real.delete = lambda *names: [delete(name) for name in names] and None  # type: ignore[method-assign]
    return real


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # who is killed closes no files
def test_a_rescale_that_is_killed_anywhere_harms_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped_job(str(tmp_path / "stopped"))
    wanted = {operator: dict.fromkeys(range(KEYS), BATCHES) for operator in OPERATORS}
    seen: list[int] = []
    for step in range(100):
        location = str(tmp_path / f"killed-{step}")
        shutil.copytree(tmp_path / "stopped", location)
        with monkeypatch.context() as patched:
            storage = killed_before(step, open_storage(location))
            patched.setattr(rescaling, "open_storage", lambda _, storage=storage: storage)
            try:
                rescale_checkpoint(location, AFTER)
                ended = True
            except Killed:
                ended = False
        check_recovery(location, wanted, seen)
        if ended:
            break
        assert rescale_checkpoint(location, AFTER).after == AFTER
        check_recovery(location, wanted, [])
    assert ended
    assert step > len(["claim", *AFTER * OPERATORS, "commit"]), "nothing was removed"
    assert seen == [BEFORE] * seen.count(BEFORE) + [AFTER] * seen.count(AFTER)
    assert seen.count(AFTER) > 1, "killed after the commit, while garbage is removed"


def check_recovery(location: str, wanted: dict[str, dict[int, int]], seen: list[int]) -> None:
    """A run of the job takes it over: the state is whole, and nothing lies beside it that no kept commit names."""
    storage = open_storage(location)
    checkpoint = Checkpoint(storage)
    recovered = checkpoint.claim("again")
    assert recovered.pending is None
    assert (recovered.committed.batch, recovered.committed.positions) == (BATCHES, [{"0": BATCHES}])
    assert rows_of(storage, recovered.committed) == wanted
    named = frozenset[str]().union(*(commit.names for commit in read_log(storage).commits.values()))
    assert set(storage.names("state/")) == named
    checkpoint.release()
    seen.append(recovered.committed.partitions)
