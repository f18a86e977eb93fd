"""The log of a checkpoint, step by step on a real disk: recovery, claims, garbage, and what is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from small_job import ROWS_PER_BATCH, Driver, Table, expected, genesis, next_intent, on_failure, sent_once

from headwater.errors import (
    CheckpointTakenError,
    DamagedCheckpointError,
    IncompatibleCheckpointError,
    JobError,
    MissingFileError,
    StaleCheckpointError,
    StorageUnavailableError,
)
from headwater.protocol.batch_ids import BatchId, is_written
from headwater.protocol.batches import Batches
from headwater.protocol.checkpoint import Checkpoint
from headwater.protocol.entries import entry_numbers
from headwater.protocol.log import read_commit, read_entry, read_intent, read_log
from headwater.protocol.records import Commit, Intent, RunFile, files_of
from headwater.protocol.storage import Storage, open_storage

ROWS = 30


@pytest.fixture
def sink(tmp_path: Path) -> Table:
    return Table(tmp_path / "sink.db")


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "cp")


class Killed(BaseException):
    """The process ends here."""


def killed(driver: Driver) -> Driver:
    """A new run after the process was killed: its lock is gone, nothing else."""
    driver.checkpoint.release()
    return Driver(driver.location, driver.sink, driver.rows)


def test_a_job_runs_to_its_end(location: str, sink: Table) -> None:
    driver = Driver(location, sink, ROWS)
    committed = driver.drain()
    assert driver.job.load(committed.state) == expected(ROWS)
    assert sent_once(sink, ROWS)
    again = Driver(location, sink, ROWS)
    assert again.drain() == committed


@pytest.mark.parametrize("where", ["before the sink", "after the sink"])
def test_a_batch_that_was_begun_is_replayed_exactly(location: str, sink: Table, where: str) -> None:
    def fail(at: str) -> None:
        if at == where and driver.checkpoint.committed.batch == 2:
            raise Killed

    driver = Driver(location, sink, ROWS, fail)
    with pytest.raises(Killed):
        driver.drain()
    pending = driver.checkpoint.pending
    driver = killed(driver)
    committed = driver.start()
    assert pending is not None
    assert (committed.batch, committed.intent, committed.positions) == (3, pending.digest, pending.end)
    driver.checkpoint.release()
    driver.drain()
    assert sent_once(sink, ROWS)


def test_a_failed_attempt_is_never_seen(location: str, sink: Table) -> None:
    """Defect a: a retry went on from the state that its failed attempt had saved."""
    failures = iter([True, True, False])

    def fail(at: str) -> None:
        if at == "after the sink" and next(failures, False):
            raise StorageUnavailableError("simulated")

    driver = Driver(location, sink, ROWS, fail)
    committed = driver.drain()
    assert driver.job.load(committed.state) == expected(ROWS)
    assert sent_once(sink, ROWS)
    kept = {run.name for commit in read_log(driver.storage).commits.values() for run in files_of(commit.state)}
    assert set(driver.storage.names("state/")) == kept  # what the failed attempts wrote is gone


def test_an_older_copy_is_refused_with_exactly_once(location: str, sink: Table, tmp_path: Path) -> None:
    """Defect b: a copy one batch old was continued, and lost the rows that the sink had under the same number."""
    driver = Driver(location, sink, ROWS)
    driver.start()
    driver.batch()
    shutil.copytree(location, tmp_path / "copy")
    driver.batch()
    before = sink.sent()
    older = Driver(str(tmp_path / "copy"), sink, ROWS)
    with pytest.raises(StaleCheckpointError, match="the sink has a batch 2 that it knows nothing of"):
        older.start()
    assert sink.sent() == before


def test_a_committed_batch_id_stands_for_its_content() -> None:
    """Defect b, where the rows are written."""
    done = BatchId(3, "aa")
    assert BatchId.parse(str(done)) == done
    assert is_written(done, BatchId(3, "aa"))
    assert not is_written(done, BatchId(4, "bb"))
    assert not is_written(None, BatchId(1, "aa"))
    for other in (BatchId(3, "bb"), BatchId(2, "aa")):
        with pytest.raises(StaleCheckpointError):
            is_written(done, other)


def named_by_entries(storage: Storage) -> set[str]:
    """Files that any commit of the log names, whether or not it is kept."""
    entries = [read_entry(storage, number) for number in entry_numbers(storage.names("log/"))]
    commits = [Commit.from_json(entry.content) for entry in entries if entry.kind == "commit"]
    return {name for commit in commits for name in commit.names}


def test_a_kill_inside_the_removal_of_garbage_harms_nothing(location: str, sink: Table) -> None:
    """Defect c: files were removed before the manifest that named them, which wedged the job for good."""
    rows, survived, found = 40 * ROWS_PER_BATCH, 0, set[str]()
    for _ in range(39):
        driver = Driver(location, sink, rows)
        left = survived

        def delete(*names: str, real: object = driver.storage.delete) -> None:
            nonlocal left
            for name in names:
                if not left:
                    found.add(name.partition("/")[0])
                    raise Killed
                left -= 1
                real(name)  # type: ignore[operator]

        driver.storage.delete = delete  # type: ignore[method-assign]
        try:
            driver.start()
            driver.batch()
            survived = 0
        except Killed:
            survived += 1  # one removal further next time
            assert read_log(driver.storage).committed == driver.checkpoint.committed
            assert named_by_entries(driver.storage) <= set(driver.storage.names("state/"))
        driver.checkpoint.release()
    assert found == {"log", "state"}
    driver = Driver(location, sink, rows)
    committed = driver.drain()
    assert driver.job.load(committed.state) == expected(rows)
    kept = {run.name for commit in read_log(driver.storage).commits.values() for run in files_of(commit.state)}
    assert set(driver.storage.names("state/")) == kept


@pytest.mark.parametrize("what", ["state", "state/totals/0"])
def test_missing_state_is_an_error_that_names_the_file(location: str, sink: Table, what: str) -> None:
    """Defect e: without one of its directories, state was taken for empty, and groups counted from 1 again."""
    driver = Driver(location, sink, ROWS)
    driver.start()
    name = sorted(driver.batch().names)[0]
    driver.checkpoint.release()
    shutil.rmtree(Path(location, what))
    with pytest.raises(MissingFileError, match=name):
        Driver(location, sink, ROWS).start()


def test_state_that_goes_missing_while_running_is_an_error(location: str, sink: Table) -> None:
    driver = Driver(location, sink, ROWS)
    driver.start()
    name = sorted(driver.batch().names)[0]
    Path(location, name).unlink()
    with pytest.raises(MissingFileError, match=name):
        driver.batch()


def test_state_without_a_log_is_not_a_new_checkpoint(location: str, sink: Table) -> None:
    driver = Driver(location, sink, ROWS)
    driver.start()
    driver.batch()
    driver.checkpoint.release()
    shutil.rmtree(Path(location, "log"))
    with pytest.raises(MissingFileError, match=r"log/0{20}"):
        Driver(location, sink, ROWS).start()


def test_a_commit_needs_nothing_but_itself(location: str, sink: Table) -> None:
    """Defect h: a commit without its intent restarted from the first position, on top of existing state."""
    driver = Driver(location, sink, ROWS)
    driver.start()
    committed = driver.batch()
    driver.checkpoint.release()
    view = read_log(driver.storage)
    intents = [n for n in view.numbers if json.loads(driver.storage.read(f"log/{n:020d}.json"))["kind"] == "intent"]
    driver.storage.delete(*(f"log/{number:020d}.json" for number in intents))
    again = Driver(location, sink, ROWS)
    assert again.start() == committed


def test_an_intent_without_rows_is_replayed_too(location: str, sink: Table) -> None:
    """Defect h: an intent of zero rows without its commit made a later restart count twice."""
    driver = Driver(location, sink, ROWS)
    driver.start()
    driver.batch()
    empty = next_intent(driver.checkpoint.committed, ROWS, most=0)
    driver.checkpoint.intend(empty)
    driver = killed(driver)
    committed = driver.start()
    assert (committed.batch, committed.intent) == (empty.batch, empty.digest)
    driver.checkpoint.release()
    driver.drain()
    assert sent_once(sink, ROWS)


def test_a_commit_must_be_its_intent_to_the_end(location: str, sink: Table) -> None:
    """Defect i: a batch could end early, and its commit said so."""
    driver = Driver(location, sink, ROWS)
    committed = driver.start()
    intent = next_intent(committed, ROWS)
    driver.checkpoint.intend(intent)
    commit = replace(committed, batch=1, attempt="a", intent=intent.digest, positions=intent.end)
    for wrong in (replace(commit, positions=[{"0": 1}]), replace(commit, batch=2), replace(commit, intent="other")):
        with pytest.raises(JobError, match="a bug in Headwater"):
            driver.checkpoint.commit(wrong)
    driver.checkpoint.commit(commit)
    with pytest.raises(JobError, match="cannot begin"):
        driver.checkpoint.intend(intent)


def test_the_newer_run_wins(location: str, sink: Table) -> None:
    """Without a lock, as in an object store: the log alone keeps two runs apart."""
    old, new = Driver(location, sink, ROWS), Driver(location, sink, ROWS)
    for driver in (old, new):
        driver.storage.lock = lambda: None  # type: ignore[method-assign]
    old.start()
    old.batch()
    new.start()
    with pytest.raises(CheckpointTakenError, match="By: process") as taken:
        old.batch()
    assert taken.value.hint
    new.drain()
    assert sent_once(sink, ROWS)


def test_an_answer_that_was_lost_is_no_other_run(location: str, sink: Table) -> None:
    """Defect j: the append is repeated as the same entry, and known again."""
    driver = Driver(location, sink, ROWS)
    driver.start()
    real, lost = driver.storage.create, iter([True, True, False, True, False])

    def create(name: str, content: bytes) -> None:
        real(name, content)
        if next(lost, False):
            raise StorageUnavailableError("simulated")

    driver.storage.create = create  # type: ignore[method-assign]
    assert driver.batch().batch == 1
    assert driver.batch().batch == 2


def test_an_append_without_an_answer_is_not_followed_by_another(location: str, sink: Table) -> None:
    """It may still be done, and would be taken for another run's."""
    driver = Driver(location, sink, ROWS)
    committed = driver.start()

    def create(name: str, content: bytes) -> None:
        raise StorageUnavailableError("simulated")

    real, driver.storage.create = driver.storage.create, create  # type: ignore[method-assign]
    with pytest.raises(StorageUnavailableError, match="simulated"):
        driver.checkpoint.intend(next_intent(committed, ROWS))
    driver.storage.create = real  # type: ignore[method-assign]
    with pytest.raises(JobError, match="may be in the log already with other content"):
        driver.checkpoint.intend(next_intent(committed, ROWS, most=1))
    driver.checkpoint.release()
    assert Driver(location, sink, ROWS).drain().positions == [{"0": ROWS}]


def test_only_some_commits_and_claims_are_kept(location: str, sink: Table) -> None:
    for _ in range(10):
        driver = Driver(location, sink, ROWS)
        driver.start()
        driver.batch()
        driver.checkpoint.release()
    view = read_log(driver.storage)
    kinds = [json.loads(driver.storage.read(f"log/{number:020d}.json"))["kind"] for number in view.numbers]
    assert kinds.count("claim") == 10
    assert kinds.count("commit") == 3 == len(view.commits)
    assert kinds.count("intent") <= 3


def test_another_format_version_is_refused(location: str, sink: Table) -> None:
    driver = Driver(location, sink, ROWS)
    driver.start()
    driver.checkpoint.release()
    newest = sorted(Path(location, "log").iterdir())[-1]
    newest.write_bytes(newest.read_bytes().replace(b'"format":2', b'"format":1'))
    with pytest.raises(IncompatibleCheckpointError, match="format version 1") as refused:
        Driver(location, sink, ROWS).start()
    assert "version of Headwater that wrote" in refused.value.hint


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format":2}', b"\0" * 200])
def test_a_torn_entry_is_damage(location: str, sink: Table, content: bytes) -> None:
    driver = Driver(location, sink, ROWS)
    driver.start()
    driver.checkpoint.release()
    newest = sorted(Path(location, "log").iterdir())[-1]
    newest.write_bytes(content)
    with pytest.raises(DamagedCheckpointError, match=newest.name):
        Driver(location, sink, ROWS).start()


def test_checkpoints_of_the_first_versions_are_refused(location: str, sink: Table) -> None:
    Path(location).mkdir()
    Path(location, "job.json").write_text("{}")
    with pytest.raises(IncompatibleCheckpointError, match="older version"):
        Driver(location, sink, ROWS).start()


def test_state_can_be_rewritten_between_batches(location: str, sink: Table) -> None:
    driver = Driver(location, sink, ROWS)
    driver.start()
    committed = driver.batch()
    rewritten = replace(committed, partitions=4, state={"totals": {0: committed.state["totals"][0]}})
    driver.checkpoint.amend(rewritten)
    with pytest.raises(JobError, match="Only state"):
        driver.checkpoint.amend(replace(committed, positions=[{"0": 0}]))
    driver.checkpoint.release()
    assert Driver(location, sink, ROWS).start() == rewritten


def test_records_survive_json() -> None:
    run = RunFile("state/o/3/f", 2, 10, "aa")
    intent = Intent(
        7, [{"0": 1}], [{"0": 2}], [None], [[[["0", 1, 2]]]], {"by": "key"}, 5, [{"id": "x"}], {"stem": "s"}
    )
    commit = Commit(
        7, "a", intent.digest, 4, [{"0": 2}], [None], [{"0": 3}], {"o": {3: {"t": (run,)}}}, {}, [], {"n": 1}
    )
    assert Commit.from_json(json.loads(json.dumps(commit.to_json()))) == commit
    assert Intent.from_json(json.loads(json.dumps(intent.to_json()))).digest == intent.digest
    assert replace(intent, time=6).digest != intent.digest
    assert commit.names == {"state/o/3/f"}


def test_a_name_in_a_commit_cannot_lead_outside() -> None:
    named = {"aggregate-1": {"0": {"groups": [["../../etc/passwd", 1, 1, ""]]}}}
    with pytest.raises(DamagedCheckpointError):
        Commit.from_json({**Commit.of_genesis(genesis(ROWS)).to_json(), "state": named})


def test_errors_of_the_checkpoint_are_not_retried(location: str) -> None:
    class Broken:
        def execute(self, intent: Intent, committed: Commit, attempt: str) -> None:
            raise MissingFileError("state/f", location)

    checkpoint = Checkpoint(open_storage(location))
    checkpoint.begin(genesis(ROWS))
    batches = Batches(checkpoint, Broken(), lambda error, failures: on_failure(StorageUnavailableError(""), 1))  # type: ignore[arg-type]
    batches.claim()
    with pytest.raises(MissingFileError):
        batches.run(next_intent(checkpoint.committed, ROWS))


def test_a_claim_is_not_taken_for_the_entry_that_was_there(location: str, sink: Table) -> None:
    """A run that was slow to claim may find the number of a removed entry free; whoever still looks for that entry must
    look again."""
    driver = Driver(location, sink, ROWS)
    driver.start()
    claims = read_log(driver.storage).head.pointers.claims
    for read in (read_intent, read_commit):
        with pytest.raises(MissingFileError):
            read(driver.storage, claims[0])
