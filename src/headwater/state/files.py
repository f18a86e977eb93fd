"""Runs as files: Arrow IPC files of record batches, written once, mapped by every worker that needs them.

A task is given the files to open and answers with the files its state consists of afterwards. It never lists a
directory. A process keeps the files it has mapped, because the next batch needs most of them again; it closes those
that the state of the same partition does not name any more, and those that nobody has asked for in a while.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.errors import IncompatibleCheckpointError, StorageUnavailableError
from headwater.state.manifest import PartitionFiles, RunFile, RunStorage
from headwater.state.merge import merged
from headwater.state.runs import Run, TableSpec
from headwater.state.table import StateTable

__all__ = [
    "IDLE_SECONDS",
    "MOST_MAPS",
    "MappedRuns",
    "RunWriter",
    "compact",
    "open_run",
    "open_state",
    "save_state",
    "spec_of",
    "write_run",
]

MOST_MAPS = 2048
IDLE_SECONDS = 600.0
_OPENINGS = 3


def open_state(storage: RunStorage, specs: Iterable[TableSpec], files: PartitionFiles) -> dict[str, StateTable]:
    """The tables of one state partition from exactly these files. Runs of the same directory that are not named any
    more are closed."""
    tables = {
        spec.name: StateTable(spec, [_mapped.get(storage, spec, file) for file in files.get(spec.name, ())])
        for spec in specs
    }
    # Only now: what this state still names must not be closed and mapped again.
    _mapped.release(storage, [file.name for of_table in files.values() for file in of_table])
    return tables


def save_state(storage: RunStorage, state: Mapping[str, StateTable], prefix: str) -> dict[str, list[RunFile]]:
    """Store the runs that have no file yet, as `<prefix>-<table>-<n>.arrow`; answer with all files of the state. The
    prefix is the directory of the state partition with a name that is unique to the attempt and task."""
    return {
        name: [
            run.file or write_run(storage, f"{prefix}-{name}-{number}.arrow", run.schema, run.batches)
            for number, run in enumerate(table.runs)
        ]
        for name, table in state.items()
    }


def write_run(storage: RunStorage, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> RunFile:
    """Write sorted rows as they come, and publish the file."""
    with RunWriter(storage, name, schema) as writer:
        for batch in batches:
            writer.write(batch)
        return writer.publish()


class RunWriter:
    """A run that is written piece by piece. Nothing of it can be seen before it is published. A context: what was not
    published at its end is removed. StorageUnavailableError if there is no space for it."""

    def __init__(self, storage: RunStorage, name: str, schema: pa.Schema) -> None:
        self.rows = 0
        self._storage, self._name = storage, name
        self._path = storage.staging(name)
        with self._errors():
            # The digest is made while the bytes pass by; reading the file again would double the I/O.
            self._sink = _Digesting(self._path.open("wb", buffering=0))
        try:
            with self._errors():
                self._writer = pa.ipc.new_file(pa.PythonFile(self._sink, mode="w"), schema)
        except BaseException:
            self._discard()
            raise

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._discard()

    def _discard(self) -> None:
        # A disk that is full would be filled further by each attempt, and garbage is collected only behind a commit.
        self._sink.file.close()
        self._path.unlink(missing_ok=True)

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        with self._errors():
            self._writer.write_batch(batch)

    def publish(self) -> RunFile:
        with self._errors():
            self._writer.close()
            self._sink.file.close()
        self._storage.publish(self._name, self._path)
        return RunFile(self._name, self.rows, self._sink.size, self._sink.digest.hexdigest())

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # Whatever it is, another attempt writes another file, perhaps on another host.
            fact = f"State file '{self._name}' could not be written."
            raise StorageUnavailableError(fact, detail=str(error.strerror or error)) from error


def compact(
    storage: RunStorage, spec: TableSpec, files: Sequence[RunFile], target: str, *, drop_tombstones: bool
) -> RunFile:
    """Merge these runs, oldest first, into a new file. `drop_tombstones` if the first is the oldest of its table. The
    files are mapped for this alone: nothing stays open afterwards."""
    runs = [open_run(storage, spec, file) for file in files]
    return write_run(storage, target, spec.run_schema, merged(spec, runs, drop_tombstones=drop_tombstones))


def spec_of(storage: RunStorage, table: str, file: RunFile) -> TableSpec:
    """The table that this file is a run of, as the file itself says."""
    path = storage.local(file.name, file.bytes, file.digest)
    with _damage_of(file):
        schema = pa.ipc.open_file(pa.memory_map(str(path))).schema
    try:
        return TableSpec.of_run(table, schema)
    except (KeyError, TypeError, ValueError):
        raise _damaged(file, f"it does not say which columns of table '{table}' are its key") from None


def open_run(storage: RunStorage, spec: TableSpec, file: RunFile) -> Run:
    """Map the file. What is missing or of another size or content is an error that names it."""
    # The copy of a remote file may be removed by another process, which does not need it any more, before it is mapped.
    for _ in range(_OPENINGS - 1):
        with suppress(FileNotFoundError):
            return _open_run(storage, spec, file)
    try:
        return _open_run(storage, spec, file)
    except FileNotFoundError as error:
        raise _damaged(file, "it is missing") from error


def _open_run(storage: RunStorage, spec: TableSpec, file: RunFile) -> Run:
    path = storage.local(file.name, file.bytes, file.digest)
    # The size is checked at every opening; digests only when a file is fetched or verified, because that reads all of
    # it.
    size = path.stat().st_size
    if size != file.bytes:
        raise _damaged(file, f"it has {size} bytes instead of {file.bytes}")
    return _map(path, spec, file)


def _map(path: Path, spec: TableSpec, file: RunFile) -> Run:
    with _damage_of(file):
        # Mapped: a lookup reads the pages it needs, and workers on one machine share them.
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        batches = [reader.get_batch(n) for n in range(reader.num_record_batches)]
        rows = sum(batch.num_rows for batch in batches)
        if reader.schema != spec.run_schema or rows != file.rows:
            raise _damaged(file, f"it has other columns than table '{spec.name}' or not {file.rows} rows")
        return Run(reader.schema, batches, file)


@contextmanager
def _damage_of(file: RunFile) -> Iterator[None]:
    """What Arrow raises about bytes that it did not write."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        # Arrow also raises OSErrors of its own; those of the system have a number, and say nothing about the content.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise _damaged(file, f"it is no Arrow file ({error})") from error


def _damaged(file: RunFile, what: str) -> IncompatibleCheckpointError:
    return IncompatibleCheckpointError(
        f"State file '{file.name}' of the checkpoint cannot be used: {what}.",
        hint="Restore the checkpoint from a complete copy; 'headwater checkpoint verify' checks every file it names.",
    )


@dataclass
class _Digesting:
    """A binary file that knows the size and the digest of what was written."""

    file: Any
    size: int = 0
    closed: bool = False
    digest: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self.digest.update(view)
        self.size += view.nbytes
        while view.nbytes:  # an unbuffered file may take less than it is given
            view = view[self.file.write(view) :]
        return len(data)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        self.closed = True


@dataclass
class _Mapping:
    run: Run
    storage: RunStorage
    used: float


@dataclass
class MappedRuns:
    """Runs this process has mapped, the one used longest ago first. A map costs no memory beyond the page cache, but a
    process may have some 65,000 of them only, and the disk space of a removed file is free only when its map is."""

    limit: int = MOST_MAPS
    idle: float = IDLE_SECONDS
    _runs: dict[tuple[str, str], _Mapping] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._runs)

    def get(self, storage: RunStorage, spec: TableSpec, file: RunFile) -> Run:
        known = self._runs.pop((storage.location, file.name), None)
        # A name alone is not enough: after a restore from a copy the same name may stand for other bytes.
        run = known.run if known is not None and known.run.file == file else open_run(storage, spec, file)
        self._runs[storage.location, file.name] = _Mapping(run, storage, time.monotonic())
        return run

    def release(self, storage: RunStorage, names: list[str]) -> None:
        """Close what lies in the directories of these names without being named, what has been idle, and what is too
        much."""
        named, directories = set(names), {_directory(name) for name in names}
        oldest, surplus = time.monotonic() - self.idle, len(self._runs) - self.limit
        for number, (key, mapping) in enumerate(list(self._runs.items())):
            location, name = key
            mine = location == storage.location and _directory(name) in directories
            unnamed = mine and name not in named
            # Another partition's maps are left alone unless idle or too many: its next batch needs them again.
            if unnamed or (not mine and (mapping.used < oldest or number < surplus)):
                del self._runs[key]
                mapping.storage.forget([name])


_mapped = MappedRuns()


def _directory(name: str) -> str:
    return name.rpartition("/")[0]
