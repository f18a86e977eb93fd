"""Storage in a directory: conditions, privacy, leftovers, and errors that name the file."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from headwater.errors import (
    CheckpointTakenError,
    DamagedCheckpointError,
    MissingFileError,
    StorageRefusedError,
    StorageUnavailableError,
)
from headwater.protocol.cache import FileCache, private_directory
from headwater.protocol.disk import Disk
from headwater.protocol.local import LocalStorage
from headwater.protocol.storage import AlreadyExistsError, Storage, digest_of, open_storage
from headwater.protocol.storage_retries import RetryingStorage


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path / "jobs" / "cp"))


def test_a_file_is_created_once(storage: Storage) -> None:
    storage.create("log/1", b"mine")
    storage.create("log/1", b"mine")  # an answer that was lost
    with pytest.raises(AlreadyExistsError):
        storage.create("log/1", b"another's")
    assert storage.read("log/1") == b"mine"
    assert storage.read_range("log/1", 1, 2) == b"in"
    assert (storage.size("log/1"), storage.size("log/2")) == (4, None)
    assert storage.names("log/") == ["log/1"]


def test_listing_and_deleting_what_is_not_there(storage: Storage) -> None:
    assert storage.names("state/") == []
    storage.delete("log/1", "state/0/none")
    with pytest.raises(MissingFileError, match="'log/1'"):
        storage.read("log/1")


def test_everything_is_private(storage: Storage, tmp_path: Path) -> None:
    """Defect m: checkpoints followed the umask, although they hold data."""
    before = os.umask(0)
    try:
        storage.lock()
        storage.create("log/1", b"x")
        path = storage.staging("state/o/0/f")
        path.write_bytes(b"rows")
        storage.publish("state/o/0/f", path)
    finally:
        os.umask(before)
        storage.unlock()
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "jobs").rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


def test_a_published_file_is_mapped_where_it_lies(storage: Storage) -> None:
    path = storage.staging("state/o/0/f")
    path.write_bytes(b"rows")
    assert storage.size("state/o/0/f") is None  # not seen before it is whole
    storage.publish("state/o/0/f", path)
    storage.publish("state/o/0/f", path)  # repeated after its answer was lost
    assert storage.names("state/") == ["state/o/0/f"]
    assert storage.local("state/o/0/f", 4, digest_of(b"rows")).read_bytes() == b"rows"
    with pytest.raises(DamagedCheckpointError, match=r"'state/o/0/f' .* has 4 bytes instead of 5"):
        storage.local("state/o/0/f", 5, digest_of(b"rows."))
    with pytest.raises(MissingFileError, match="'state/o/0/g'"):
        storage.local("state/o/0/g", 5, "")


def test_one_process_holds_it(storage: Storage) -> None:
    storage.lock()
    other = open_storage(storage.location)
    with pytest.raises(CheckpointTakenError, match="Another running job holds this checkpoint"):
        other.lock()
    storage.unlock()
    other.lock()
    other.unlock()


def test_names_stay_inside(storage: Storage) -> None:
    for name in ("../other", "/etc/passwd", "state//f", "a/./b"):
        with pytest.raises(DamagedCheckpointError):
            storage.read(name)


class FullDisk(Disk):
    """Fails some times, then works."""

    def __init__(self, failures: int, number: int) -> None:
        self.failures, self.number = failures, number

    def link(self, source: str, target: str) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError(self.number, os.strerror(self.number))
        super().link(source, target)


def test_transient_errors_are_waited_for(tmp_path: Path) -> None:
    """Defect j: commits and intents were not retried."""
    pauses: list[float] = []
    storage = RetryingStorage(LocalStorage(str(tmp_path), FullDisk(2, errno.ENOSPC)), (1.0, 2.0), pauses.append)
    storage.create("log/1", b"x")
    assert pauses == [1.0, 2.0]
    assert [path.name for path in (tmp_path / "log").iterdir()] == ["1"]
    storage = RetryingStorage(LocalStorage(str(tmp_path), FullDisk(3, errno.ENOSPC)), (1.0, 2.0), pauses.append)
    with pytest.raises(StorageUnavailableError, match="There is no space left for checkpoint"):
        storage.create("log/2", b"x")


def never(pause: float) -> None:
    pytest.fail(f"waited for {pause} s")


def test_other_errors_are_final(tmp_path: Path) -> None:
    storage = RetryingStorage(LocalStorage(str(tmp_path), FullDisk(1, errno.EIO)), (1.0,), never)
    with pytest.raises(StorageRefusedError):
        storage.create("log/1", b"x")
    storage = RetryingStorage(LocalStorage(str(tmp_path), FullDisk(1, errno.EPERM)), (1.0,), never)
    with pytest.raises(StorageRefusedError, match="no hard links"):
        storage.create("log/1", b"x")


def test_the_cache_is_ours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect m: the directory of local copies had a foreseeable name, and nobody asked whose it was."""
    assert stat.S_IMODE(private_directory(tmp_path / "mine").stat().st_mode) == 0o700
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    (tmp_path / "file").write_text("")
    for name in ("open", "link", "file"):
        with pytest.raises(StorageRefusedError, match="this user's alone"):
            private_directory(tmp_path / name)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(StorageRefusedError, match="this user's alone"):
        private_directory(tmp_path / "mine")


def test_copies_are_kept_and_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect d: copies of remote files were never removed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    cache, other = FileCache("s3://a"), FileCache("s3://b")
    path = cache.staging("state/f")
    path.write_bytes(b"rows")
    kept = cache.keep("state/f", path)
    assert cache.find("state/f", 4) == kept
    assert cache.find("state/f", 5) is None
    assert other.find("state/f", 4) is None
    cache.forget(["state/f", "state/none"])
    assert cache.find("state/f", 4) is None
    path = cache.staging("state/g")
    path.write_bytes(b"rows")
    os.utime(cache.keep("state/g", path), (0, 0))
    monkeypatch.setattr("time.monotonic", lambda: 7.0)  # on a machine that has just started, too
    FileCache("s3://c").staging("anything")
    assert cache.find("state/g", 4) is None  # unused for long
