"""Checkpoints in a real object store: conditions, copies on this host, two drivers, and a server that goes away."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest
from small_job import Driver, Table, expected, sent_once
from typer.testing import CliRunner

import headwater
from headwater.cli import app
from headwater.errors import (
    CheckpointTakenError,
    DamagedCheckpointError,
    HeadwaterError,
    MissingFileError,
    StorageRefusedError,
    StorageUnavailableError,
)
from headwater.protocol.objects import ObjectStorage
from headwater.protocol.storage import AlreadyExistsError, Storage, digest_of, open_storage
from object_server import BUCKET, SECRET, ObjectServer

pytestmark = pytest.mark.long

ROWS = 300


@pytest.fixture
def location(object_server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # copies of this host
    return object_server.location(f"{uuid.uuid4().hex}/a%20b%3Fc")


@pytest.fixture
def storage(location: str) -> Storage:
    return open_storage(location)


@pytest.fixture
def sink(tmp_path: Path) -> Table:
    return Table(tmp_path / "sink.db")


def test_a_file_is_created_once(storage: Storage) -> None:
    storage.create("log/1", b"mine")
    storage.create("log/1", b"mine")
    with pytest.raises(AlreadyExistsError):
        storage.create("log/1", b"another's")
    assert storage.read("log/1") == b"mine"
    assert storage.read_range("log/1", 1, 2) == b"in"
    assert (storage.size("log/1"), storage.size("log/2")) == (4, None)
    assert storage.names("log/") == ["log/1"]
    assert storage.names("state/") == []
    storage.delete("log/1", "log/2")
    assert storage.names("log/") == []
    with pytest.raises(MissingFileError, match="'log/1'"):
        storage.read("log/1")


def test_the_query_is_no_part_of_a_key(storage: Storage, object_server: ObjectServer) -> None:
    """Defect j: a URI with a query put every file under one key."""
    storage.create("log/1", b"x")
    storage.create("log/2", b"y")
    prefix = str(storage).split("/")[3]
    found = [path for path in (object_server.directory / BUCKET / prefix).rglob("*") if path.is_file()]
    assert sorted(str(path.relative_to(object_server.directory / BUCKET / prefix)) for path in found) == [
        "a b?c/log/1",
        "a b?c/log/2",
    ]


def test_a_file_is_mapped_from_a_copy(storage: Storage, tmp_path: Path) -> None:
    content = os.urandom(20_000_000)  # several parts, several ranges
    path = storage.staging("state/o/0/f")
    path.write_bytes(content)
    assert storage.size("state/o/0/f") is None
    storage.publish("state/o/0/f", path)
    storage.publish("state/o/0/f", path)  # repeated after its answer was lost
    copy = storage.local("state/o/0/f", len(content), digest_of(content))
    assert copy.is_relative_to(tmp_path)
    storage.forget(["state/o/0/f"])
    assert not copy.exists()
    other = pickle.loads(pickle.dumps(storage))
    assert other.local("state/o/0/f", len(content), digest_of(content)).read_bytes() == content
    storage.delete("state/o/0/f")
    assert not copy.exists()


def test_a_copy_is_checked_when_it_is_fetched(storage: Storage) -> None:
    path = storage.staging("state/f")
    path.write_bytes(b"rows")
    storage.publish("state/f", path)
    storage.forget(["state/f"])
    with pytest.raises(DamagedCheckpointError, match="another content"):
        storage.local("state/f", 4, digest_of(b"r0ws"))
    with pytest.raises(DamagedCheckpointError, match="4 bytes instead of 5"):
        storage.local("state/f", 5, "")
    with pytest.raises(MissingFileError, match="'state/g'"):
        storage.local("state/g", 5, "")


def test_what_is_wrong_is_said_without_secrets(object_server: ObjectServer) -> None:
    wrong = open_storage(object_server.location("x", secret="not-the-secret"))
    with pytest.raises(StorageRefusedError) as refused:
        wrong.create("log/1", b"x")
    with pytest.raises(StorageRefusedError, match="no bucket or container 'other'") as missing:
        open_storage(object_server.location("x", bucket="other")).create("log/1", b"x")
    for text in (str(refused.value), str(missing.value), repr(wrong)):
        assert "not-the-secret" not in text
        assert SECRET not in text


def test_a_store_that_ignores_conditions_is_refused(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.lock()  # this one does not
    real = ObjectStorage.create

    def create(self: ObjectStorage, name: str, content: bytes) -> None:
        self.delete(name)
        real(self, name, content)

    monkeypatch.setattr(ObjectStorage, "create", create)
    with pytest.raises(StorageRefusedError, match="ignores conditions"):
        storage.lock()
    assert storage.names("") == []


def test_a_job_runs_and_goes_on(location: str, sink: Table) -> None:
    driver = Driver(location, sink, 60)
    committed = driver.drain()
    assert driver.job.load(committed.state) == expected(60)
    assert Driver(location, sink, 60).drain() == committed
    assert sent_once(sink, 60)


def test_two_drivers_one_stops(location: str, sink: Table) -> None:
    """In one process, batch by batch."""
    old, new = Driver(location, sink, 60), Driver(location, sink, 60)
    old.start()
    old.batch()
    new.start()
    new.batch()
    with pytest.raises(CheckpointTakenError, match="has taken the checkpoint over"):
        old.batch()
    new.drain()
    assert sent_once(sink, 60)


def test_two_driver_processes_one_stops(location: str, sink: Table) -> None:
    """Started one after the other, both at full speed: the older one stops with a clear error, nothing is doubled."""
    first = _process(location, sink)
    _wait_for_batches(sink, 5)
    second = _process(location, sink)
    ends = [process.communicate(timeout=120)[0].strip() for process in (first, second)]
    assert ends[0].startswith("CheckpointTakenError: Another run of this job has taken the checkpoint over.")
    assert ends[1].startswith("finished")
    assert sent_once(sink, ROWS)
    view = Driver(location, sink, ROWS)
    assert view.job.load(view.drain().state) == expected(ROWS)


def test_many_drivers_at_once(location: str, sink: Table) -> None:
    processes = [_process(location, sink) for _ in range(4)]
    ends = [process.communicate(timeout=120)[0].strip() for process in processes]
    assert sum(end.startswith("finished") for end in ends) >= 1
    assert all(end.startswith(("finished", "CheckpointTakenError")) for end in ends)
    driver = Driver(location, sink, ROWS)
    assert driver.job.load(driver.drain().state) == expected(ROWS)
    assert sent_once(sink, ROWS)


def test_a_server_that_goes_away_is_waited_for(location: str, sink: Table, object_server: ObjectServer) -> None:
    """Defect j: commits and intents were not retried."""
    driver = Driver(location, sink, ROWS)
    problems: list[HeadwaterError] = []

    def drain() -> None:
        try:
            driver.drain()
        except HeadwaterError as error:
            problems.append(error)

    thread = threading.Thread(target=drain)
    thread.start()
    _wait_for_batches(sink, 5)
    object_server.stop()
    time.sleep(3)
    object_server.start()
    thread.join(120)
    assert problems == []
    assert sent_once(sink, ROWS)


def test_a_server_that_stays_away_is_an_error(object_server: ObjectServer) -> None:
    away = open_storage(object_server.location("x").replace(f":{object_server.port}", ":1"))
    away._pauses = (0.01,)  # type: ignore[attr-defined]
    with pytest.raises(StorageUnavailableError, match="cannot be reached"):
        away.create("log/1", b"x")


def test_the_command_works_on_an_object_store(object_server: ObjectServer, sink: Table, tmp_path: Path) -> None:
    root = object_server.location(uuid.uuid4().hex)
    name = root.replace("?", "/1-totals?")
    driver = Driver(name, sink, 60)
    driver.start()
    driver.batch()
    run = CliRunner().invoke
    assert "Batch 1 is done." in run(app, ["checkpoint", "show", root]).output
    said = run(app, ["checkpoint", "verify", root])
    assert (said.exit_code, said.output) == (0, "1-totals: all is well\n")
    assert run(app, ["checkpoint", "copy", root, str(tmp_path / "copy")]).exit_code == 0
    assert run(app, ["checkpoint", "verify", str(tmp_path / "copy")]).exit_code == 0
    back = object_server.location(uuid.uuid4().hex)
    said = run(app, ["checkpoint", "copy", str(tmp_path / "copy"), back])
    assert (said.exit_code, SECRET in said.output) == (0, False)
    assert Driver(back.replace("?", "/1-totals?"), sink, 60).drain().positions == [{"0": 60}]
    assert sent_once(sink, 60)


def _process(location: str, sink: Table) -> subprocess.Popen[str]:
    source = Path(headwater.__file__).parents[1]
    command = [sys.executable, str(Path(__file__).with_name("small_job.py")), location, str(sink.path), str(ROWS)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def _wait_for_batches(sink: Table, count: int) -> None:
    deadline = time.monotonic() + 60
    while not any(batch.number >= count for batch in sink.committed()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
