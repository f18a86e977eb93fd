"""Storage in an object store, through obstore: S3 and what is compatible with it, Google Cloud Storage, Azure.

A put is seen whole or not at all, and a small file is put on the condition that there is none of its name. Files that
are to be memory-mapped are copied into a private directory of this host; what this host has published is there already.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.errors import MissingFileError, StorageRefusedError, StorageUnavailableError
from headwater.options.secrets import MASK
from headwater.protocol.cache import FileCache
from headwater.protocol.locations import Location
from headwater.protocol.storage import AlreadyExistsError, Storage, check_name, checked_size, damaged, file_digest

# obstore is imported where it is used: jobs with local checkpoints, and their workers, never load it.
if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = ["ObjectStorage", "open_object_storage"]

_SHOWN = 300
_RANGE = 16 << 20
"""Bytes per request of a download: each stays within the client's time limit on a slow line."""
_PAGE = 1000
_CLIENT = {"connect_timeout": timedelta(seconds=10), "timeout": timedelta(seconds=60)}
_RETRIES = {"max_retries": 2, "retry_timeout": timedelta(seconds=30)}
"""Within one request; `RetryingStorage` goes on from there."""


def open_object_storage(location: str, parsed: Location) -> ObjectStorage:
    return ObjectStorage(location, parsed, FileCache(str(parsed)))


class ObjectStorage(Storage):
    """Without retries of its own; see `open_storage`."""

    def __init__(self, location: str, parsed: Location, cache: FileCache) -> None:
        self.location = location
        self._parsed = parsed
        self._cache = cache
        self._store: ObjectStore | None = None
        self._process = 0

    def __str__(self) -> str:
        return str(self._parsed)

    def create(self, name: str, content: bytes) -> None:
        import obstore

        with self._errors(name), self._no_bucket():
            # One request: a multipart upload checks its condition in a second one, when it is too late, or not at
            # all.
            obstore.put(self._opened(), check_name(name), content, mode="create", use_multipart=False)

    def read(self, name: str) -> bytes:
        import obstore

        with self._errors(name):
            return bytes(obstore.get(self._opened(), check_name(name)).bytes())

    def read_range(self, name: str, start: int, length: int) -> bytes:
        import obstore

        with self._errors(name):
            return bytes(obstore.get_range(self._opened(), check_name(name), start=start, length=length))

    def size(self, name: str) -> int | None:
        import obstore

        try:
            with self._errors(name):
                return int(obstore.head(self._opened(), check_name(name))["size"])
        except MissingFileError:
            return None

    def names(self, prefix: str) -> list[str]:
        import obstore

        with self._errors(prefix):
            pages = obstore.list(self._opened(), prefix.rstrip("/"), chunk_size=_PAGE)
            return [str(meta["path"]) for page in pages for meta in page]

    def directories(self) -> list[str]:
        """What lies directly below, without a look at what lies further down."""
        import obstore

        with self._errors(""):
            prefixes = obstore.list_with_delimiter(self._opened())["common_prefixes"]
        return [prefix.rstrip("/").rpartition("/")[2] for prefix in prefixes]

    def delete(self, *names: str) -> None:
        import obstore

        with self._errors(", ".join(names[:3])):
            try:
                obstore.delete(self._opened(), [check_name(name) for name in names])
            except FileNotFoundError:  # a store that reports it, perhaps before it came to the others
                self._delete_each(names)
        self.forget(names)

    def _delete_each(self, names: Iterable[str]) -> None:
        import obstore

        for name in names:
            try:
                obstore.delete(self._opened(), name)
            except FileNotFoundError:
                continue

    def staging(self, name: str) -> Path:
        return self._cache.staging(check_name(name))

    def publish(self, name: str, local_file: Path) -> None:
        """1. Upload. 2. Keep the file as the copy of this host: the next batch is likely to open it here."""
        import obstore

        # Publishing is repeated after errors whose outcome is unknown, so it has to be idempotent.
        if not local_file.exists() and self.size(name) is not None:
            # An attempt before this one was interrupted after its upload.
            return
        with self._errors(name), self._no_bucket():
            obstore.put(self._opened(), check_name(name), local_file)  # 1
        with self._copying(name):
            self._cache.keep(name, local_file)  # 2

    def local(self, name: str, size: int, digest: str) -> Path:
        """1. The copy of this host, if there is one. 2. Otherwise fetch it, in pieces. 3. Check it. 4. Give it its
        name, so that others see it only when it is whole."""
        copy = self._cache.find(name, size)  # 1
        if copy is not None:
            return copy
        checked_size(self, name, self.size(name), size)
        temporary = self._cache.staging(check_name(name))
        try:
            with self._copying(name), temporary.open("xb") as file:  # 2
                for start in range(0, size, _RANGE):
                    file.write(self.read_range(name, start, min(_RANGE, size - start)))
            if file_digest(temporary) != digest:  # 3
                raise damaged(name, "has another content than was written", self)
            with self._copying(name):
                return self._cache.keep(name, temporary)  # 4
        finally:
            temporary.unlink(missing_ok=True)

    def forget(self, names: Iterable[str]) -> None:
        self._cache.forget(names)

    def lock(self) -> None:
        """There is no lock, so all depends on conditions: a store that ignores them is refused."""
        name = f"probe-{uuid.uuid4().hex}"
        # Some S3-compatible servers accept the header and ignore it; then two drivers would both believe to have won.
        # Nobody else has this name: if it is there, a request whose answer was lost has made it.
        with suppress(AlreadyExistsError):
            self.create(name, b"first")
        try:
            self.create(name, b"second")
        except AlreadyExistsError:
            return
        finally:
            self.delete(name)
        raise StorageRefusedError(
            f"The object store of '{self}' ignores conditions (If-None-Match: *) when it writes.",
            detail="Nothing would keep two runs of a job apart.",
            hint="Use a store with conditional writes, or a directory.",
        )

    def _opened(self) -> ObjectStore:
        """The client's threads do not survive a fork, so every process opens its own."""
        if self._store is None or self._process != os.getpid():
            with self._errors(""):
                self._store, self._process = _open_store(self._parsed), os.getpid()
        return self._store

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        from obstore import exceptions

        try:
            yield
        except FileNotFoundError:
            raise MissingFileError(name, str(self)) from None
        except exceptions.AlreadyExistsError:
            raise AlreadyExistsError(name) from None
        except (
            exceptions.InvalidPathError,
            exceptions.NotSupportedError,
            exceptions.PermissionDeniedError,
            exceptions.UnauthenticatedError,
            exceptions.UnknownConfigurationKeyError,
            ValueError,
        ) as error:
            raise StorageRefusedError(f"'{self}' refuses to be used as a checkpoint.", **self._said(error)) from None
        except (exceptions.BaseError, OSError) as error:
            raise StorageUnavailableError(f"'{self}' cannot be reached.", **self._said(error)) from None

    @contextmanager
    def _copying(self, name: str) -> Iterator[None]:
        """The disk of this host may be full, or a file there gone: nothing is wrong with the store."""
        try:
            yield
        except OSError as error:
            fact = f"File '{name}' of '{self}' could not be copied to this host."
            raise StorageUnavailableError(fact, detail=str(error)) from None

    @contextmanager
    def _no_bucket(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise StorageRefusedError(f"There is no bucket or container '{self._parsed.bucket}'.") from None

    def _said(self, error: BaseException) -> dict[str, str]:
        """What the client says, without secrets, the server's XML, and the dump of its settings in the lines below."""
        text = str(error).strip().partition("\n")[0].partition("<?xml")[0].rstrip(": ")
        for secret in self._parsed.secrets:
            text = text.replace(secret, MASK)
        return {"detail": text[:_SHOWN]}


def _open_store(location: Location) -> ObjectStore:
    from obstore.store import AzureStore, GCSStore, S3Store

    settings: dict[str, Any] = dict(location.settings)
    client: Any = {**_CLIENT, **{key: settings.pop(key) for key in ("allow_http",) if key in settings}}
    common: dict[str, Any] = {"prefix": location.path or None, "client_options": client, "retry_config": _RETRIES}
    if location.scheme == "s3":
        return S3Store(location.bucket, **common, **settings)
    if location.scheme == "gs":
        return GCSStore(location.bucket, **common, **settings)
    return AzureStore(location.bucket, **common, **settings)
