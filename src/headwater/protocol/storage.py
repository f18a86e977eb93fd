"""The files of one checkpoint, wherever they lie.

A name is relative to the checkpoint ('log/00000000000000000042.json'). A file is whole and durable, or it is not there;
none is ever changed. Small files are created on one condition: that there is none of that name. This is what keeps two
drivers apart, so a place that cannot do it is not used.

`open_storage` makes one; what it returns retries transient errors, and can be pickled: a worker opens it again. Tasks
use `task_storage`: a worker keeps its connections from task to task.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from headwater.errors import DamagedCheckpointError, MissingFileError

__all__ = [
    "AlreadyExistsError",
    "Storage",
    "check_name",
    "checked_size",
    "damaged",
    "digest_of",
    "file_digest",
    "open_storage",
    "sync_file",
    "task_storage",
]

_CHUNK = 1 << 20
_KEPT = 32
"""Storages that a worker keeps: one for each job that it has worked for."""


class AlreadyExistsError(Exception):
    """There is a file of that name, with other content."""


class Storage(ABC):
    """Every method may raise StorageUnavailableError (after retries) or StorageRefusedError."""

    location: str
    """As `open_storage` takes it. It may hold secrets; `str(storage)` does not."""

    @abstractmethod
    def create(self, name: str, content: bytes) -> None:
        """When this returns, the file is there and survives a crash. If it was there before: AlreadyExistsError.

        With the same content it counts as created: an earlier request of ours, whose answer was lost, has done it.
        """

    @abstractmethod
    def read(self, name: str) -> bytes:
        """MissingFileError if it is not there."""

    @abstractmethod
    def read_range(self, name: str, start: int, length: int) -> bytes: ...

    @abstractmethod
    def size(self, name: str) -> int | None:
        """In bytes; None if it is not there."""

    @abstractmethod
    def names(self, prefix: str) -> list[str]:
        """All names that begin with `prefix`, a directory with its '/', at any depth; in no order. Leftovers of
        writers that crashed may be among them."""

    def directories(self) -> list[str]:
        """The names right below this location that have something below themselves."""
        raise NotImplementedError

    @abstractmethod
    def delete(self, *names: str) -> None:
        """It is fine if some are gone already. One call removes its files in any order."""

    @abstractmethod
    def staging(self, name: str) -> Path:
        """A path that does not exist yet, to write the file `name` to before it is published."""

    @abstractmethod
    def publish(self, name: str, local_file: Path) -> None:
        """What was written to `staging(name)` becomes visible, whole and durable, and the staging path ends.

        The name must be unique to the writer: this is not conditional.
        """

    @abstractmethod
    def local(self, name: str, size: int, digest: str) -> Path:
        """A path that can be memory-mapped: the file itself, or a copy that was checked when it was fetched.

        MissingFileError if it is not there, DamagedCheckpointError if it has another size (or digest, when fetched).
        """

    def forget(self, names: Iterable[str]) -> None:
        """Drop local copies of files that are not needed any more. Who has mapped one keeps it until it is unmapped."""
        del names

    def lock(self) -> None:
        """Keep other processes out, where that can be done at once (on local disks). CheckpointTakenError if one holds
        it. Elsewhere the log alone keeps drivers apart: a store that cannot create on a condition is refused."""
        return

    def unlock(self) -> None:
        return

    def __reduce__(self) -> tuple[object, ...]:
        return open_storage, (self.location,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


def open_storage(location: str) -> Storage:
    """Nothing is created or asked for yet. A location that cannot be used raises StorageRefusedError."""
    from headwater.protocol.locations import parse_location
    from headwater.protocol.storage_retries import RetryingStorage

    parsed = parse_location(location)
    if parsed.scheme == "file":
        from headwater.protocol.local import LocalStorage

        return RetryingStorage(LocalStorage(parsed.path))
    from headwater.protocol.objects import open_object_storage

    return RetryingStorage(open_object_storage(location, parsed))


def task_storage(location: str) -> Storage:
    """As `open_storage`, for tasks: an object store is opened once in a process. A client of it has connections, which
    take several round trips to make, and looks at the directory of its copies from time to time."""
    from headwater.protocol.locations import parse_location

    # A directory is opened each time: it costs nothing, and a worker may outlive one that is removed and made again.
    if parse_location(location).scheme == "file":
        return open_storage(location)
    # By process: a client that was made before a fork has lost its threads, and shares its connections.
    return _kept(location, os.getpid())


@lru_cache(maxsize=_KEPT)
def _kept(location: str, process: int) -> Storage:
    """Two threads that come first at once may make two: each can be used by any thread, and one is kept."""
    del process
    return open_storage(location)


@lru_cache(maxsize=4096)
def check_name(name: str) -> str:
    """A name from a file is not believed to stay inside the checkpoint."""
    if name.startswith("/") or any(segment in ("", ".", "..") for segment in name.split("/")):
        raise DamagedCheckpointError(f"'{name}' is not a valid file name in a checkpoint.")
    return name


def digest_of(content: bytes) -> str:
    """Of a whole file; what a commit says of the files it names."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def file_digest(path: Path) -> str:
    """As `digest_of`, in bounded memory."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def damaged(name: str, what: str, storage: Storage) -> DamagedCheckpointError:
    return DamagedCheckpointError(
        f"File '{name}' of the checkpoint {what}.",
        detail=f"Checkpoint: {storage}",
        hint="Restore the checkpoint from a copy, or start with a new --checkpoint directory (the job then reads its "
        "input again).",
    )


def checked_size(storage: Storage, name: str, found: int | None, expected: int) -> None:
    """Missing and different are errors that name the file; neither is ever taken for empty."""
    if found is None:
        raise MissingFileError(name, str(storage))
    if found != expected:
        raise damaged(name, f"has {found:,} bytes instead of {expected:,}", storage)


def sync_file(path: Path) -> int:
    """Make the content of a file durable; answers its size."""
    # fsync writes what is cached of the file, whichever descriptor wrote it; the writer may have closed its own.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
