"""The calls to the operating system that local storage is made of.

They stand behind one class so that the simulation can run the same storage on a disk that crashes, tears what was not
synced and forgets renames.
"""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

__all__ = ["Disk"]

_PRIVATE_FILE = 0o600
_PRIVATE_DIRECTORY = 0o700


class Disk:
    """Paths are absolute strings. Errors are OSErrors."""

    def write(self, path: str, content: bytes) -> None:
        """A new private file with this content, synced."""
        # The mode is given here, not left to the umask: checkpoints hold data.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)

    def seal(self, path: str) -> None:
        """Sync a file that somebody else has written, and keep it private."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fchmod(descriptor, _PRIVATE_FILE)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def link(self, source: str, target: str) -> None:
        """FileExistsError if the target is there: on a local disk this is the conditional write."""
        os.link(source, target)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)  # noqa: PTH104 - paths are strings here

    def unlink(self, path: str) -> None:
        os.unlink(path)  # noqa: PTH108

    def read(self, path: str, start: int = 0, length: int = -1) -> bytes:
        with open(path, "rb") as file:  # noqa: PTH123
            file.seek(start)
            return file.read(length)

    def size(self, path: str) -> int:
        found = os.stat(path)  # noqa: PTH116
        if not stat.S_ISREG(found.st_mode):
            raise FileNotFoundError(path)
        return found.st_size

    def files(self, path: str) -> list[str]:
        """Relative paths of all files below a directory; none if it is not there."""

        def unless_gone(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError):  # what cannot be listed is not taken for empty
                raise error

        found = []
        for directory, _, names in os.walk(path, onerror=unless_gone):
            below = os.path.relpath(directory, path)
            found += [name if below == "." else f"{below}/{name}" for name in names]
        return found

    def directories(self, path: str) -> list[str]:
        try:
            with os.scandir(path) as entries:
                return [entry.name for entry in entries if entry.is_dir()]
        except FileNotFoundError:
            return []

    def is_directory(self, path: str) -> bool:
        return Path(path).is_dir()

    def make_directory(self, path: str) -> None:
        """Fine if it is there."""
        try:
            os.mkdir(path, _PRIVATE_DIRECTORY)  # noqa: PTH102
        except FileExistsError:
            if not self.is_directory(path):
                raise

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: str) -> int:
        """A handle to unlock with; BlockingIOError if another process holds the lock, which ends with its holder."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _PRIVATE_FILE)
        try:
            # Released by the kernel when the process ends, however it ends: no lock file is ever left to clean up.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def unlock(self, handle: int) -> None:
        os.close(handle)
