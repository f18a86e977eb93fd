"""Where a simulated checkpoint lies, as the schedule sees it: opened for processes, copied, restored and damaged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from simulated_storage import DIRECTORY, Bucket, File, Machine, SimulatedDisk, SimulatedObjects
from simulated_world import Process, World

from headwater.protocol.entries import LOG
from headwater.protocol.local import LocalStorage
from headwater.protocol.storage import Storage

ROOT = "/cp"
Created = Callable[[Process, str, bytes], None]


class Backend(ABC):
    shared: bool
    """Whether several machines can reach it, so that no lock keeps drivers apart."""

    @abstractmethod
    def open_for(self, process: Process) -> tuple[Storage, SimulatedDisk | SimulatedObjects]: ...

    @abstractmethod
    def content(self) -> dict[str, bytes]:
        """All files by name."""

    @abstractmethod
    def has(self, name: str) -> bool: ...

    @abstractmethod
    def restore(self, content: dict[str, bytes]) -> None: ...

    def set(self, name: str, content: bytes | None) -> None:
        files = self.content()
        files.pop(name, None)
        self.restore(files if content is None else {**files, name: content})


class DiskBackend(Backend):
    shared = False

    def __init__(self, world: World, created: Created) -> None:
        self.machine = Machine(world)
        self.created = created

    def open_for(self, process: Process) -> tuple[Storage, SimulatedDisk]:
        def created(path: str, content: bytes) -> None:
            name = path[len(ROOT) + 1 :]
            if name.startswith(LOG):
                self.created(process, name, content)

        disk = SimulatedDisk(self.machine, process, created)
        return LocalStorage(ROOT, disk), disk

    def content(self) -> dict[str, bytes]:
        return {
            f"{directory}/{name}"[len(ROOT) + 1 :]: file.content
            for directory, names in self.machine.now.items()
            for name, file in names.items()
            if file is not DIRECTORY
        }

    def has(self, name: str) -> bool:
        directory, _, last = name.rpartition("/")
        return last in self.machine.now.get(f"{ROOT}/{directory}", {})

    def restore(self, content: dict[str, bytes]) -> None:
        """All of it synced."""
        machine = self.machine
        machine.now = {directory: {} for directory in machine.now}
        for directory in list(machine.now):
            if directory != "/":
                parent, _, name = directory.rpartition("/")
                machine.now[parent or "/"][name] = DIRECTORY
        for path, held in content.items():
            directory, _, name = f"{ROOT}/{path}".rpartition("/")
            file = machine.now[directory][name] = File(held)
            file.synced = True
        machine.durable = {directory: dict(names) for directory, names in machine.now.items()}
        machine.changes = {directory: [] for directory in machine.now}


class ObjectsBackend(Backend):
    shared = True

    def __init__(self, world: World, created: Created) -> None:
        self.world = world
        self.bucket = Bucket()
        self.created = created

    def open_for(self, process: Process) -> tuple[Storage, SimulatedObjects]:
        def created(name: str, content: bytes) -> None:
            self.created(process, name, content)

        objects = SimulatedObjects(self.bucket, self.world, process, created)
        return objects, objects

    def content(self) -> dict[str, bytes]:
        return dict(self.bucket.objects)

    def has(self, name: str) -> bool:
        return name in self.bucket.objects

    def restore(self, content: dict[str, bytes]) -> None:
        self.bucket.objects = dict(content)
