"""Storage whose transient errors are waited for.

A request whose answer was lost may have been done. All but one can simply be done again; a `create` that then finds its
own content has succeeded (content is unique to its writer: every entry of the log carries an id).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from headwater.errors import MissingFileError, StorageRefusedError, StorageUnavailableError
from headwater.protocol.storage import AlreadyExistsError, Storage

__all__ = ["PAUSES", "RetryingStorage"]

T = TypeVar("T")

PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds; after the last one the error is the caller's. A job then tries its batch again."""


class RetryingStorage(Storage):
    """Any storage, with retries. `pause` sleeps."""

    def __init__(
        self, storage: Storage, pauses: tuple[float, ...] = PAUSES, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self.location = storage.location
        self._storage = storage
        self._pauses = pauses
        self._pause = pause

    def __str__(self) -> str:
        return str(self._storage)

    def create(self, name: str, content: bytes) -> None:
        self._retried(lambda: self._create(name, content))

    def _create(self, name: str, content: bytes) -> None:
        try:
            self._storage.create(name, content)
        except AlreadyExistsError:
            # The first request may have succeeded without an answer. Entries carry the run's id, so equal content is
            # our own.
            if self._found(name) != content:
                raise

    def _found(self, name: str) -> bytes:
        try:
            return self._storage.read(name)
        except MissingFileError:
            # S3 answers 409 to a conditional write while another one of the same name is under way, perhaps an earlier
            # request of ours: nobody has won yet. Or it was removed since; then the number of the entry is free again,
            # which only a claim can meet, and that looks whether it is the newest.
            fact = f"File '{name}' of '{self}' is being written or removed by another request."
            raise StorageUnavailableError(fact) from None

    def read(self, name: str) -> bytes:
        return self._retried(lambda: self._storage.read(name))

    def read_range(self, name: str, start: int, length: int) -> bytes:
        return self._retried(lambda: self._storage.read_range(name, start, length))

    def size(self, name: str) -> int | None:
        return self._retried(lambda: self._storage.size(name))

    def names(self, prefix: str) -> list[str]:
        return self._retried(lambda: self._storage.names(prefix))

    def directories(self) -> list[str]:
        return self._retried(self._storage.directories)

    def delete(self, *names: str) -> None:
        if names:
            self._retried(lambda: self._storage.delete(*names))

    def staging(self, name: str) -> Path:
        return self._retried(lambda: self._storage.staging(name))

    def publish(self, name: str, local_file: Path) -> None:
        self._retried(lambda: self._storage.publish(name, local_file))

    def local(self, name: str, size: int, digest: str) -> Path:
        return self._retried(lambda: self._storage.local(name, size, digest))

    def forget(self, names: Iterable[str]) -> None:
        self._storage.forget(names)

    def lock(self) -> None:
        self._retried(self._storage.lock)

    def unlock(self) -> None:
        self._storage.unlock()

    def _retried(self, action: Callable[[], T]) -> T:
        for pause in self._pauses:
            try:
                return action()
            except StorageRefusedError:
                raise
            except StorageUnavailableError:
                self._pause(pause)
        return action()
