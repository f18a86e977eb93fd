"""Storage in a directory.

A file is written under a name of its own, synced, given its final name (by `link`, which fails if there is one, or by
`rename`), and then its directory is synced: before that a crash may lose the name, after it nothing. A directory is as
durable as its entry in the one above, so those are synced too, once per process and directory.

Only the owner may read what is written here: a checkpoint holds rows.
"""

from __future__ import annotations

import errno
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from headwater.errors import CheckpointTakenError, MissingFileError, StorageRefusedError, StorageUnavailableError
from headwater.protocol.disk import Disk
from headwater.protocol.storage import AlreadyExistsError, Storage, check_name, checked_size

__all__ = ["LocalStorage", "unusable"]

T = TypeVar("T")

_TRANSIENT = frozenset(
    {errno.EAGAIN, errno.EBUSY, errno.EDQUOT, errno.EINTR, errno.ENFILE, errno.ENOSPC, errno.ESTALE, errno.ETIMEDOUT}
)
"""Not EIO: what a failed sync has lost, a second sync does not bring back."""
_LOCK = "lock"


class LocalStorage(Storage):
    """Without retries; see `open_storage`."""

    def __init__(self, root: str, disk: Disk | None = None) -> None:
        self.location = root
        self._disk = disk or Disk()
        self._synced: set[str] = set()
        self._handle: int | None = None

    def __str__(self) -> str:
        return self.location

    def create(self, name: str, content: bytes) -> None:
        """1. A synced file under a temporary name. 2. Its final name, unless that is taken. 3. Sync the directory, also
        where it is taken: the one who took it may have died before doing so. 4. Remove the temporary name."""
        target = self._path(name)
        temporary, directory = _temporary(target), _parent(target)
        with self._errors(name):
            self._make_directories(directory)
            try:
                self._disk.write(temporary, content)  # 1
                # A hard link fails if the name is taken, where a rename would replace it: this is the conditional
                # write.
                made = self._link(temporary, target)  # 2
                self._disk.sync_directory(directory)  # 3
            finally:
                self._remove(temporary)  # 4
        if not made:
            raise AlreadyExistsError(name)

    def read(self, name: str) -> bytes:
        with self._errors(name):
            return self._disk.read(self._path(name))

    def read_range(self, name: str, start: int, length: int) -> bytes:
        with self._errors(name):
            return self._disk.read(self._path(name), start, length)

    def size(self, name: str) -> int | None:
        with self._errors(name):
            return _unless_missing(lambda: self._disk.size(self._path(name)))

    def names(self, prefix: str) -> list[str]:
        directory = prefix.rstrip("/")
        with self._errors(prefix):
            return [f"{directory}/{name}" for name in self._disk.files(self._path(directory))]

    def directories(self) -> list[str]:
        with self._errors(""):
            return self._disk.directories(self.location)

    def delete(self, *names: str) -> None:
        for name in names:
            with self._errors(name):
                self._remove(self._path(name))

    def staging(self, name: str) -> Path:
        """Beside the file itself: a rename works only within one file system."""
        target = self._path(name)
        with self._errors(name):
            self._make_directories(_parent(target))
        return Path(_temporary(target))

    def publish(self, name: str, local_file: Path) -> None:
        """1. Sync the content. 2. Rename. 3. Sync the directory."""
        target = self._path(name)
        with self._errors(name):
            if _unless_missing(lambda: self._disk.seal(str(local_file)), missing=_GONE) is not _GONE:  # 1
                self._disk.rename(str(local_file), target)  # 2
            else:
                # An attempt before this one was interrupted after its rename: the file must be there, then.
                self._disk.size(target)
            self._disk.sync_directory(_parent(target))  # 3

    def local(self, name: str, size: int, digest: str) -> Path:
        checked_size(self, name, self.size(name), size)
        return Path(self._path(name))

    def lock(self) -> None:
        if self._handle is not None:
            return
        with self._errors(_LOCK):
            self._make_directories(self.location)
            try:
                self._handle = self._disk.lock(self._path(_LOCK))
            except BlockingIOError:
                raise _held(self) from None

    def unlock(self) -> None:
        if self._handle is not None:
            self._disk.unlock(self._handle)
            self._handle = None

    def _path(self, name: str) -> str:
        return f"{self.location}/{check_name(name)}"

    def _link(self, source: str, target: str) -> bool:
        try:
            self._disk.link(source, target)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            hint = "Choose a directory on another file system, or an object store (s3://, gs://, az://)."
            raise StorageRefusedError(f"The file system of '{self}' has no hard links.", hint=hint) from None
        return True

    def _remove(self, path: str) -> None:
        _unless_missing(lambda: self._disk.unlink(path))

    def _make_directories(self, path: str) -> None:
        """Each of them durable: made, if need be, and its name synced in the one above."""
        if path in self._synced:
            return
        missing = [path]
        while _parent(missing[-1]) != missing[-1] and len(missing[-1]) >= len(self.location):
            missing.append(_parent(missing[-1]))
        while not self._disk.is_directory(missing[-1]):
            missing.append(_parent(missing[-1]))
        for directory in reversed(missing[:-1]):
            try:
                self._disk.make_directory(directory)
            except FileNotFoundError as error:
                # Nothing is missing of a checkpoint that is not there yet: in such a place nothing can be made.
                raise unusable(str(self), error, f"creating '{directory}'") from None
            # A directory entry is durable only when its directory is synced: without that a crash may forget the
            # file's name.
            # A directory above may not be readable for us; then somebody else has made it, and synced it.
            with suppress(PermissionError):
                self._disk.sync_directory(_parent(directory))
            self._synced.add(directory)

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise MissingFileError(name, str(self)) from None
        except OSError as error:
            raise unusable(str(self), error, name) from None


def unusable(location: str, error: OSError, about: str) -> StorageUnavailableError:
    """`about` is a file, or what was done."""
    fact, detail = f"'{location}' cannot be used as a checkpoint.", f"{about}: {error.strerror}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        fact = f"There is no space left for checkpoint '{location}'."  # a job that waits shows the fact alone
    if error.errno in _TRANSIENT:
        return StorageUnavailableError(fact, detail=detail)
    hint = "Choose a directory that this user may create, read and write, or an object store (s3://, gs://, az://)."
    return StorageRefusedError(fact, detail=detail, hint=hint)


_GONE = object()


def _unless_missing(action: Callable[[], T], missing: object = None) -> T:
    try:
        return action()
    except FileNotFoundError:
        return missing  # type: ignore[return-value]  # callers say what stands for a missing file


def _temporary(path: str) -> str:
    return f"{path}.{uuid.uuid4().hex}.tmp"


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _held(storage: Storage) -> CheckpointTakenError:
    return CheckpointTakenError(
        "Another running job holds this checkpoint.",
        detail=f"Checkpoint: {storage}",
        hint="Stop that job first: 'headwater jobs' lists it. A job can have a directory of its own with --checkpoint.",
    )
