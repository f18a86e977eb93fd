"""A disk that forgets what was not synced, and an object store whose answers get lost.

`SimulatedDisk` stands below the real `LocalStorage`; `SimulatedObjects` stands in for the requests of `ObjectStorage`.
Both have the real retries above them.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from simulated_world import Process, World

from headwater.errors import MissingFileError, StorageUnavailableError
from headwater.protocol.disk import Disk
from headwater.protocol.storage import AlreadyExistsError, Storage, checked_size


class File:
    __slots__ = ("content", "synced")

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.synced = False


DIRECTORY = File(b"")
DIRECTORY.synced = True
Change = tuple[str, File | None]  # a name in a directory stands for this file from now on, or for none


class Machine:
    """One disk, with what is on it and what is only in memory: names per directory, and content per file."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.now: dict[str, dict[str, File]] = {"/": {}}
        self.durable: dict[str, dict[str, File]] = {"/": {}}
        self.changes: dict[str, list[list[Change]]] = {"/": []}
        self.holder: Process | None = None
        self.syncs_files = self.syncs_directories = True  # taken out by mutations
        world.on_machine_crash = self.crash

    def change(self, directory: str, *changes: Change) -> None:
        """One atomic change of a directory, not durable yet."""
        self._apply(self.now[directory], list(changes))
        self.changes[directory].append(list(changes))

    def sync(self, directory: str) -> None:
        self.durable[directory] = dict(self.now[directory])
        self.changes[directory] = []

    def crash(self) -> None:
        """Of the changes that were not synced, some have reached the disk; unsynced content may be torn."""
        rng = self.world.rng
        for directory, changes in self.changes.items():
            names = self.durable[directory]
            kept = [c for c in changes if rng.random() < 0.5]
            if rng.random() < 0.5:  # a journal keeps their order
                kept = changes[: len(kept)]
            for change in kept:
                self._apply(names, change)
        self.now = {}
        self._restore("/")
        self.durable = {directory: dict(names) for directory, names in self.now.items()}
        self.changes = {directory: [] for directory in self.now}
        self.holder = None

    def _restore(self, directory: str) -> None:
        names = self.now[directory] = dict(self.durable.get(directory, {}))
        for name, file in names.items():
            if file is DIRECTORY:
                self._restore(f"{directory.rstrip('/')}/{name}")
            elif not file.synced:
                names[name] = self._torn(file)

    def _torn(self, file: File) -> File:
        rng = self.world.rng
        size = rng.randrange(len(file.content) + 1)
        torn = File(rng.choice([file.content[:size], file.content, b"\0" * size]))
        torn.synced = True
        return torn

    @staticmethod
    def _apply(names: dict[str, File], changes: list[Change]) -> None:
        for name, file in changes:
            if file is None:
                names.pop(name, None)
            else:
                names[name] = file


class SimulatedDisk(Disk):
    """The disk of a machine as one process sees it."""

    def __init__(self, machine: Machine, process: Process, created: Callable[[str, bytes], None]) -> None:
        self.machine = machine
        self.process = process
        self.created = created
        self.world = machine.world

    def _step(self, what: str, path: str) -> None:
        self.world.step(self.process, what)
        if self.world.storage_fault():
            raise OSError(errno.ENOSPC, "simulated", path)

    def stage(self, path: Path, content: bytes) -> None:
        """What a task does with a staging path: write, without syncing."""
        try:
            self._step("stage", str(path))
        except OSError as error:
            raise StorageUnavailableError("simulated") from error
        directory, name = _split(str(path))
        self.machine.change(directory, (name, File(content)))

    def write(self, path: str, content: bytes) -> None:
        self._step("write", path)
        directory, name = _split(path)
        file = File(content)
        self.machine.change(directory, (name, file))
        self._step("fsync", path)
        file.synced = self.machine.syncs_files

    def seal(self, path: str) -> None:
        self._step("seal", path)
        self._file(path).synced = self.machine.syncs_files

    def link(self, source: str, target: str) -> None:
        self._step("link", target)
        (directory, name), file = _split(target), self._file(source)
        if name in self.machine.now[directory]:
            raise FileExistsError(target)
        self.machine.change(directory, (name, file))
        self.created(target, file.content)

    def rename(self, source: str, target: str) -> None:
        self._step("rename", target)
        (directory, old), (_, new), file = _split(source), _split(target), self._file(source)
        self.machine.change(directory, (old, None), (new, file))

    def unlink(self, path: str) -> None:
        self._step("unlink", path)
        self._file(path)
        directory, name = _split(path)
        self.machine.change(directory, (name, None))

    def read(self, path: str, start: int = 0, length: int = -1) -> bytes:
        self._step("read", path)
        content = self._file(path).content[start:]
        return content if length < 0 else content[:length]

    def size(self, path: str) -> int:
        return len(self._file(path).content)

    def files(self, path: str) -> list[str]:
        self._step("list", path)
        return [
            f"{directory}/{name}"[len(path) + 1 :]
            for directory, names in self.machine.now.items()
            if directory == path or directory.startswith(f"{path}/")
            for name, file in names.items()
            if file is not DIRECTORY
        ]

    def is_directory(self, path: str) -> bool:
        return path in self.machine.now

    def make_directory(self, path: str) -> None:
        if path not in self.machine.now:
            self._step("mkdir", path)
            parent, name = _split(path)
            self.machine.change(parent, (name, DIRECTORY))
            self.machine.now[path], self.machine.durable[path], self.machine.changes[path] = {}, {}, []

    def sync_directory(self, path: str) -> None:
        self._step("sync", path)
        if self.machine.syncs_directories:
            self.machine.sync(path)

    def lock(self, path: str) -> int:
        holder = self.machine.holder
        if holder is not None and holder is not self.process and not (holder.dead or holder.done):
            raise BlockingIOError(path)
        self.machine.holder = self.process
        return 1

    def unlock(self, handle: int) -> None:
        self.machine.holder = None

    def _file(self, path: str) -> File:
        directory, name = _split(path)
        file = self.machine.now.get(directory, {}).get(name)
        if file is None:
            raise FileNotFoundError(path)
        return file


def _split(path: str) -> tuple[str, str]:
    directory, _, name = path.rpartition("/")
    return directory or "/", name


class Bucket:
    """What is in an object store. `conditional` is taken out by a mutation."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.staged: dict[str, bytes] = {}
        self.conditional = True

    @staticmethod
    def under_way(world: World) -> set[str]:
        """What delayed requests are to create."""
        return {getattr(request, "creates", "") for request in world.delayed}


class SimulatedObjects(Storage):
    """Requests of one process. Each can fail before it is done, after, or be done later."""

    def __init__(self, bucket: Bucket, world: World, process: Process, created: Callable[[str, bytes], None]) -> None:
        self.location = "s3://simulated/cp"
        self.bucket = bucket
        self.world = world
        self.process = process
        self.created = created

    def __str__(self) -> str:
        return self.location

    def _request(self, what: str, action: Callable[[], None]) -> None:
        world = self.world
        world.step(self.process, what)
        if not world.storage_fault():
            action()
        elif world.random() < world.profile.delayed:
            world.delayed.append(action)
            raise StorageUnavailableError(f"simulated: {what} is on its way")
        elif world.random() < 0.5:
            action()
            raise StorageUnavailableError(f"simulated: {what} was done")
        else:
            raise StorageUnavailableError(f"simulated: {what} was not done")

    def create(self, name: str, content: bytes) -> None:
        done = False

        def put() -> None:
            nonlocal done
            if not self.bucket.conditional or name not in self.bucket.objects:
                self.bucket.objects[name] = content
                self.created(name, content)
                done = True

        # S3 answers 409 to a conditional write while another one is under way: nobody has won yet.
        if name in self.bucket.under_way(self.world) and self.world.fault(self.world.profile.conflict):
            raise AlreadyExistsError(name)
        put.creates = name  # type: ignore[attr-defined]
        self._request(f"create {name}", put)
        if not done:
            raise AlreadyExistsError(name)

    def read(self, name: str) -> bytes:
        self._request("read", lambda: None)
        if name not in self.bucket.objects:
            raise MissingFileError(name, self.location)
        return self.bucket.objects[name]

    def read_range(self, name: str, start: int, length: int) -> bytes:
        return self.read(name)[start : start + length]

    def size(self, name: str) -> int | None:
        content = self.bucket.objects.get(name)
        return None if content is None else len(content)

    def names(self, prefix: str) -> list[str]:
        self._request("list", lambda: None)
        return [name for name in self.bucket.objects if name.startswith(prefix)]

    def delete(self, *names: str) -> None:
        for name in names:
            self._request(f"delete {name}", partial(self._remove, name))

    def _remove(self, name: str) -> None:
        self.bucket.objects.pop(name, None)

    def staging(self, name: str) -> Path:
        return Path(f"/staging/{self.world.unique()}")

    def stage(self, path: Path, content: bytes) -> None:
        self.bucket.staged[str(path)] = content

    def publish(self, name: str, local_file: Path) -> None:
        content = self.bucket.staged[str(local_file)]
        self._request(f"publish {name}", lambda: self.bucket.objects.__setitem__(name, content))

    def local(self, name: str, size: int, digest: str) -> Path:
        checked_size(self, name, self.size(name), size)
        return Path(name)

    def forget(self, names: Iterable[str]) -> None:
        return
