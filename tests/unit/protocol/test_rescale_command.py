"""`headwater checkpoint rescale`, and `show` of what it leaves: partitions, positions and watermarks."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from headwater.cli import app
from headwater.errors import CheckpointTakenError, HeadwaterError, IncompatibleCheckpointError
from headwater.protocol.batches import Batches, BatchOutcome
from headwater.protocol.checkpoint import Checkpoint
from headwater.protocol.inspect import verify
from headwater.protocol.log import read_log
from headwater.protocol.records import Commit, Genesis, Intent
from headwater.protocol.storage import open_storage
from headwater.state.files import open_state, save_state
from headwater.state.partitions import partition_of
from headwater.state.table import StateTable, TableSpec

SPEC = TableSpec("rows", pa.schema([("k", pa.int64())]), pa.schema([("v", pa.int64())]))
KEYS = 40
TOPICS = [{"cluster": "c", "topics": {"a:b": "id"}}]
WATERMARK = 1_772_368_200_000  # 2026-03-01 12:30:00 in UTC


class Numbers:
    """A job without Spark: after batch b, the value of each key is b times the key. It can be made to fail."""

    def __init__(self, location: str, failing: bool = False) -> None:
        self.checkpoint = Checkpoint(open_storage(location))
        self.batches = Batches(self.checkpoint, self, self._failed)
        self.failing = failing

    def start(self) -> Numbers:
        if not self.checkpoint.exists():
            genesis = Genesis(uuid.uuid4().hex, "plan", 2, [{"a:b:2": 0, "a:b:10": 0}], [None], TOPICS)
            self.checkpoint.begin(genesis)
        self.batches.claim()
        self.batches.replay()
        return self

    def batch(self) -> None:
        before = self.checkpoint.committed
        end = {partition: position + 10 for partition, position in before.positions[0].items()}
        self.batches.run(Intent(before.batch + 1, before.positions, [end], [None], [[[]]], {}, 0, TOPICS))

    def stop(self) -> None:
        self.checkpoint.release()

    def execute(self, intent: Intent, committed: Commit, attempt: str) -> BatchOutcome:
        if self.failing:
            raise HeadwaterError("simulated")
        hashes = np.arange(KEYS, dtype=np.int64) << 32
        partitions, saved = partition_of(hashes, committed.partitions), {}
        for number in range(committed.partitions):
            keys = pa.array(hashes[partitions == number] >> 32)
            table = StateTable(SPEC)
            values = pa.array(keys.to_numpy() * intent.batch)
            table.write(hashes[partitions == number], [keys], [values], np.zeros(len(keys), bool))
            tables = save_state(self.checkpoint.storage, {"rows": table}, f"state/op/{number}/{attempt}-1")
            saved[number] = {name: tuple(runs) for name, runs in tables.items()}
        return BatchOutcome({"op": saved}, watermarks=[{"a:b:2": WATERMARK}])

    @staticmethod
    def _failed(error: Exception, failures: int) -> None:
        raise error


def values(location: Path) -> dict[int, int]:
    """By a lookup in the state partition that each key belongs to."""
    storage = open_storage(str(location))
    committed, found = read_log(storage).committed, {}
    for key in range(KEYS):
        hashes = np.array([key << 32], dtype=np.int64)
        files = committed.state["op"][int(partition_of(hashes, committed.partitions)[0])]
        lookup = open_state(storage, [SPEC], files)["rows"].lookup(hashes, [pa.array([key])])
        found[key] = lookup.values.column("v")[0].as_py()
    return found


def command(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["checkpoint", *map(str, arguments)])


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """Two jobs, two batches each, in two state partitions."""
    for name in ("totals", "others"):
        job = Numbers(str(tmp_path / "jobs" / name)).start()
        job.batch()
        job.batch()
        job.stop()
    return tmp_path / "jobs"


@pytest.mark.parametrize("partitions", [5, 1])
def test_state_is_rewritten_and_the_job_goes_on(jobs: Path, partitions: int) -> None:
    said = command("rescale", jobs, "--partitions", partitions)
    assert said.exit_code == 0
    assert said.output.splitlines() == [
        f"others: 2 partitions before, {partitions} now, 40 rows of state.",
        f"totals: 2 partitions before, {partitions} now, 40 rows of state.",
    ]
    assert values(jobs / "totals") == {key: 2 * key for key in range(KEYS)}
    assert verify(open_storage(str(jobs / "totals"))) == []
    job = Numbers(str(jobs / "totals")).start()
    job.batch()
    job.stop()
    assert read_log(job.checkpoint.storage).committed.partitions == partitions
    assert values(jobs / "totals") == {key: 3 * key for key in range(KEYS)}


def test_a_running_job_is_refused(jobs: Path) -> None:
    running = Numbers(str(jobs / "others")).start()
    said = command("rescale", jobs, "--partitions", 5)
    assert isinstance(said.exception, CheckpointTakenError)
    assert "Another running job holds this checkpoint." in str(said.exception)
    assert said.output == ""
    running.batch()
    running.stop()
    assert {read_log(open_storage(str(jobs / name))).committed.partitions for name in ("totals", "others")} == {2}
    assert values(jobs / "others") == {key: 3 * key for key in range(KEYS)}


def test_a_batch_that_is_not_finished_is_refused(jobs: Path) -> None:
    failing = Numbers(str(jobs / "totals"), failing=True).start()
    with pytest.raises(HeadwaterError, match="simulated"):
        failing.batch()
    failing.stop()
    said = command("rescale", jobs / "totals", "--partitions", 5)
    assert isinstance(said.exception, IncompatibleCheckpointError)
    assert "Batch 3 of this checkpoint is not finished." in str(said.exception)
    assert "Start the job, let it finish the batch" in str(said.exception)
    Numbers(str(jobs / "totals")).start().stop()  # which finishes it
    assert command("rescale", jobs / "totals", "--partitions", 5).exit_code == 0
    assert values(jobs / "totals") == {key: 3 * key for key in range(KEYS)}


def test_show_has_watermarks_and_partitions(jobs: Path) -> None:
    command("rescale", jobs / "totals", "--partitions", 5)
    lines = [line.split() for line in command("show", jobs / "totals").output.splitlines()]
    assert ["State", "partitions:", "5.", "Format"] in [line[:4] for line in lines]
    positions = [line for line in lines if line[:1] == ["a:b"]]
    assert positions == [["a:b", "2", "20", "–", "2026-03-01", "12:30:00"], ["a:b", "10", "20", "–", "–"]]
    content = json.loads(command("show", jobs / "totals", "--json").output)
    assert (content["partitions"], content["watermarks"]) == (5, [{"a:b:2": WATERMARK}])
