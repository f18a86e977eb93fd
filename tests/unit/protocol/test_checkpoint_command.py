"""`headwater checkpoint`: what it shows, what it finds wrong, and copies that can be continued."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from small_job import Driver, Table, expected, sent_once
from typer.testing import CliRunner, Result

from headwater.cli import app
from headwater.errors import HeadwaterError, IncompatibleCheckpointError, MissingFileError
from headwater.protocol.inspect import copy_checkpoint, described, find_checkpoints, table_sizes, verify
from headwater.protocol.log import read_log
from headwater.protocol.storage import open_storage

ROWS = 300


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """Two jobs of one script, one of them in the middle of a batch."""
    for name in ("1-totals", "2-others"):
        driver = Driver(str(tmp_path / "jobs" / name), Table(tmp_path / f"{name}.db"), ROWS)
        driver.start()
        driver.batch()
        driver.batch()
        driver.checkpoint.release()
    return tmp_path / "jobs"


def command(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["checkpoint", *map(str, arguments)])


def test_show_names_positions_and_state(jobs: Path) -> None:
    said = command("show", jobs)
    assert said.exit_code == 0
    lines = [line.split() for line in said.output.splitlines()]
    assert ["1-totals"] in lines
    assert ["2-others"] in lines
    assert ["Batch", "2", "is", "done."] in lines
    assert ["0", "0", "6", "300", "–"] in lines
    assert [line[:4] for line in lines if line[:2] == ["totals", "t"]] == [["totals", "t", "2", "6"]] * 2


def test_show_is_json_for_programs(jobs: Path) -> None:
    said = command("show", jobs / "1-totals", "--json")
    content = json.loads(said.output)
    assert content["batch"] == 2
    assert content["positions"] == [{"0": 6}]
    assert content["state"][0]["rows"] == 6
    assert content["pending"] is None


def test_what_is_under_way_is_shown(jobs: Path, tmp_path: Path) -> None:
    def fail(where: str) -> None:
        raise HeadwaterError("simulated")

    driver = Driver(str(jobs / "1-totals"), Table(tmp_path / "1-totals.db"), ROWS, fail)
    driver.start()
    with pytest.raises(HeadwaterError, match="simulated"):
        driver.batch()
    driver.checkpoint.release()
    assert "Batch 2 is done; batch 3 is not committed yet." in command("show", jobs / "1-totals").output


def test_where_nothing_is_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(IncompatibleCheckpointError, match="There is no checkpoint"):
        find_checkpoints(str(tmp_path))
    (tmp_path / "job.json").write_text("{}")
    with pytest.raises(IncompatibleCheckpointError, match="older version"):
        find_checkpoints(str(tmp_path))


def test_verify_is_silent_about_what_is_well(jobs: Path) -> None:
    said = command("verify", jobs)
    assert said.exit_code == 0
    assert said.output.splitlines() == ["1-totals: all is well", "2-others: all is well"]


def test_verify_lists_what_is_wrong(jobs: Path) -> None:
    commit = read_log(open_storage(str(jobs / "1-totals"))).committed
    first, second = sorted(commit.names)
    (jobs / "1-totals" / first).unlink()
    content = (jobs / "1-totals" / second).read_bytes()
    (jobs / "1-totals" / second).write_bytes(content[:-1] + b"?")
    said = command("verify", jobs)
    assert said.exit_code == 1
    assert said.output.splitlines() == [
        "1-totals: 2 problems",
        f"  File '{first}' of the checkpoint is missing.",
        f"  File '{second}' has another content than was written.",
        "2-others: all is well",
    ]
    (jobs / "1-totals" / second).write_bytes(content[:-1])
    assert f"File '{second}' has {len(content) - 1} bytes instead of {len(content)}." in command("verify", jobs).output


def test_verify_reads_the_whole_log(jobs: Path) -> None:
    entry = sorted((jobs / "1-totals" / "log").iterdir())[2]
    entry.write_bytes(entry.read_bytes()[:-10])
    assert f"  File 'log/{entry.name}' of the checkpoint is no entry of a log." in command("verify", jobs).output


def test_a_copy_can_be_continued(jobs: Path, tmp_path: Path) -> None:
    said = command("copy", jobs, tmp_path / "copy")
    assert said.exit_code == 0
    assert "Copied 1-totals as of batch 2 to" in said.output
    assert command("verify", tmp_path / "copy").exit_code == 0
    assert "Batch 2 is done." in command("show", tmp_path / "copy").output
    sink = Table(tmp_path / "1-totals.db")
    driver = Driver(str(tmp_path / "copy" / "1-totals"), sink, ROWS)
    assert driver.job.load(driver.drain().state) == expected(ROWS)
    assert sent_once(sink, ROWS)


def test_a_copy_is_not_made_over_another(jobs: Path, tmp_path: Path) -> None:
    command("copy", jobs, tmp_path / "copy")
    said = command("copy", jobs, tmp_path / "copy")
    assert isinstance(said.exception, IncompatibleCheckpointError)
    assert "already holds a checkpoint" in str(said.exception)


def test_an_interrupted_copy_is_refused(jobs: Path, tmp_path: Path) -> None:
    """Whatever was written last is missing: each prefix of the copy is no checkpoint."""
    source = open_storage(str(jobs / "1-totals"))
    for allowed in range(8):
        target = open_storage(str(tmp_path / f"copy{allowed}"))
        real, left = target.create, allowed

        def create(name: str, content: bytes, real: object = real) -> None:
            nonlocal left
            if not left:
                raise KeyboardInterrupt
            left -= 1
            real(name, content)  # type: ignore[operator]

        target.create = create  # type: ignore[method-assign]
        try:
            copy_checkpoint(source, target)
        except KeyboardInterrupt:
            driver = Driver(str(tmp_path / f"copy{allowed}"), Table(tmp_path / "1-totals.db"), ROWS)
            with pytest.raises(MissingFileError):
                driver.start()
            driver.checkpoint.release()
        else:
            assert verify(target) == []
            return
    pytest.fail("no copy was finished")


def test_a_running_job_is_copied_and_verified(tmp_path: Path) -> None:
    """Files vanish under the copy while the job goes on; the copy is still of one batch."""
    driver = Driver(str(tmp_path / "cp"), Table(tmp_path / "sink.db"), 100_000)
    driver.start()
    stopping = threading.Event()

    def work() -> None:
        while not stopping.is_set():
            driver.batch()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        source = open_storage(str(tmp_path / "cp"))
        for number in range(15):
            target = open_storage(str(tmp_path / f"copy{number}"))
            view = copy_checkpoint(source, target)
            assert verify(target) == []
            assert verify(source) == []
            totals = _load(target, view.committed.batch)
            assert totals == expected(view.committed.positions[0]["0"])
    finally:
        stopping.set()
        thread.join()
    driver.checkpoint.release()


def _load(target: object, batch: int) -> dict[str, int]:
    from small_job import Totals

    commit = read_log(target).committed  # type: ignore[arg-type]
    assert commit.batch == batch
    return Totals(target, None).load(commit.state)  # type: ignore[arg-type]


def test_described_has_all_tables(jobs: Path) -> None:
    storage = open_storage(str(jobs / "1-totals"))
    sizes = table_sizes(read_log(storage).committed)
    assert [vars(size) for size in sizes] == described(storage)["state"]
    assert [(size.operator, size.table, size.runs) for size in sizes] == [("totals", "t", 2)]
