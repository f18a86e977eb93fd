"""Copies of a checkpoint's files on this host, shared by all processes of one user.

The directory lies in the temporary directory under a name that others can foresee, so it is used only if it is ours and
closed to everyone else. What has not been asked for during an hour is removed; a file that is mapped stays mapped.
"""

from __future__ import annotations

import hashlib
import math
import os
import stat
import tempfile
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from headwater.errors import StorageRefusedError
from headwater.protocol.storage import sync_file

__all__ = ["FileCache", "private_directory"]

_UNUSED_SECONDS = 3600.0
_LOOK_EVERY = 300.0


class FileCache:
    """`owner` tells the files of one checkpoint from those of others."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._looked = -math.inf  # not 0: the clock of a machine starts there

    def find(self, name: str, size: int) -> Path | None:
        path = self._path(name)
        with suppress(FileNotFoundError):
            if path.stat().st_size == size:
                os.utime(path)  # in use
                return path
        return None

    def staging(self, name: str) -> Path:
        self._remove_unused()
        return self._path(name).with_suffix(f".{uuid.uuid4().hex}.tmp")

    def keep(self, name: str, file: Path) -> Path:
        """1. Sync, so that no crash leaves a file with a right size and wrong content. 2. Give it its name."""
        path = self._path(name)
        sync_file(file)  # 1
        file.rename(path)  # 2
        return path

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        key = hashlib.sha256(f"{self._owner}\0{name}".encode()).hexdigest()
        return _directory() / key[:40]

    def _remove_unused(self) -> None:
        if time.monotonic() - self._looked < _LOOK_EVERY:
            return
        self._looked = time.monotonic()
        for path in _directory().iterdir():
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _UNUSED_SECONDS:
                    path.unlink()


def _directory() -> Path:
    return private_directory(Path(tempfile.gettempdir()) / f"headwater-cache-{os.geteuid()}")


def private_directory(path: Path) -> Path:
    """Made if need be; refused if it is not a directory of this user's alone."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()  # not what a link points to
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise StorageRefusedError(
            f"'{path}' is not a directory of this user's alone, so no state is copied there.",
            hint="Remove it, or set TMPDIR to a directory of your own.",
        )
    return path
