"""Looking at a checkpoint from outside, also while its job runs: what it holds, whether it is whole, a copy of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from headwater.errors import DamagedCheckpointError, IncompatibleCheckpointError, MissingFileError
from headwater.protocol.checkpoint import LEGACY, STATE
from headwater.protocol.entries import LOG, entry_name, parse_entry
from headwater.protocol.locations import join, shown
from headwater.protocol.log import LogView, read_entry, read_log
from headwater.protocol.records import FORMAT_VERSION, Claim, Commit, RunFile, files_of
from headwater.protocol.storage import AlreadyExistsError, Storage, damaged, open_storage

__all__ = ["FoundCheckpoint", "TableSize", "copy_checkpoint", "described", "find_checkpoints", "table_sizes", "verify"]

_CHUNK = 16 << 20


@dataclass(frozen=True)
class FoundCheckpoint:
    """A checkpoint; `name` is that of its job, or empty if the location itself is the checkpoint."""

    name: str
    location: str


def find_checkpoints(location: str) -> list[FoundCheckpoint]:
    """The location itself if it is one job's checkpoint, or those right below it."""
    if _is_checkpoint(open_storage(location)):
        return [FoundCheckpoint("", location)]
    below = [FoundCheckpoint(name, join(location, name)) for name in sorted(open_storage(location).directories())]
    found = [part for part in below if _is_checkpoint(open_storage(part.location))]
    if not found:
        raise IncompatibleCheckpointError(
            f"There is no checkpoint in '{shown(location)}'.",
            hint="Name the directory that was given as --checkpoint, or the one of a single job below it.",
        )
    return found


def _is_checkpoint(storage: Storage) -> bool:
    """A log that has lost its first entry is one too: it is damaged, not absent."""
    if storage.size(entry_name(0)) is not None or storage.names(LOG):
        return True
    if storage.size(LEGACY) is not None:
        raise IncompatibleCheckpointError(
            f"The checkpoint in '{storage}' was written by an older version of Headwater, which this one cannot read."
        )
    return False


@dataclass(frozen=True)
class TableSize:
    """How large a table of an operator's state is, over all state partitions."""

    operator: str
    table: str
    runs: int
    rows: int
    bytes: int


def table_sizes(commit: Commit) -> list[TableSize]:
    runs: dict[tuple[str, str], list[RunFile]] = {}
    for operator, partitions in commit.state.items():
        for tables in partitions.values():
            for table, files in tables.items():
                runs.setdefault((operator, table), []).extend(files)
    return [
        TableSize(operator, table, len(files), sum(run.rows for run in files), sum(run.bytes for run in files))
        for (operator, table), files in sorted(runs.items())
    ]


def described(storage: Storage) -> dict[str, Any]:
    """All there is to say, as plain JSON."""
    view = read_log(storage)
    claim = _newest_claim(storage, view)
    return {
        "location": str(storage),
        "format": FORMAT_VERSION,
        "identity": view.genesis.identity,
        "fingerprint": view.genesis.fingerprint,
        "partitions": view.committed.partitions,
        "batch": view.committed.batch,
        "pending": None if view.pending is None else {**view.pending.to_json(), "digest": view.pending.digest},
        "positions": view.committed.positions,
        "bounds": view.committed.bounds,
        "watermarks": view.committed.watermarks,
        "topics": view.committed.topics,
        "sink": view.committed.sink,
        "state": [vars(size) for size in table_sizes(view.committed)],
        "batches": [{"batch": commit.batch, "counts": commit.counts} for commit in view.commits.values()],
        "claim": None if claim is None else claim.to_json(),
    }


def _newest_claim(storage: Storage, view: LogView) -> Claim | None:
    with suppress(MissingFileError, IndexError):  # a copy has no claims, nor has a new checkpoint
        return Claim.from_json(read_entry(storage, view.head.pointers.claims[-1]).content)
    return None


def verify(storage: Storage) -> list[str]:
    """What is wrong with the log and with the files that its kept commits name; nothing, if all is well.

    A running job goes on meanwhile. What it has removed since the log was read is not missing, so whatever seems wrong
    is compared with the log as it is afterwards.
    """
    try:
        before = read_log(storage)
        problems = {run.name: problem for run in _files(before) if (problem := _problem(storage, run))}
        problems |= _entry_problems(storage, before)
        after = read_log(storage)
    except (DamagedCheckpointError, IncompatibleCheckpointError) as error:
        return [error.fact]
    needed = {run.name for run in _files(after)} | set(_entries(after))
    return [problem for name, problem in sorted(problems.items()) if name in needed]


def _files(view: LogView) -> list[RunFile]:
    """Each file once, although several commits name it."""
    return list({run.name: run for commit in view.commits.values() for run in files_of(commit.state)}.values())


def _entries(view: LogView) -> list[str]:
    first = max(view.head.pointers.commits[0], 1)
    return [entry_name(number) for number in range(first, view.head.sequence + 1)]


def _problem(storage: Storage, run: RunFile) -> str:
    size = storage.size(run.name)
    if size is None:
        return MissingFileError(run.name, "").fact
    if size != run.bytes:
        return f"File '{run.name}' has {size:,} bytes instead of {run.bytes:,}."
    digest = hashlib.blake2b(digest_size=16)
    try:
        for chunk in _chunks(storage, run):
            digest.update(chunk)
    except MissingFileError as error:
        return error.fact
    return "" if digest.hexdigest() == run.digest else f"File '{run.name}' has another content than was written."


def _entry_problems(storage: Storage, view: LogView) -> dict[str, str]:
    problems = {}
    for name in _entries(view):
        try:
            read_entry(storage, _number(name))
        except DamagedCheckpointError as error:
            problems[name] = error.fact
    return problems


def _chunks(storage: Storage, run: RunFile) -> Iterator[bytes]:
    for start in range(0, run.bytes, _CHUNK):
        yield storage.read_range(run.name, start, min(_CHUNK, run.bytes - start))


def copy_checkpoint(source: Storage, target: Storage) -> LogView:
    """A copy from which the job can go on; answers what it holds. The job may be running.

    1. The target must be empty.
    2. Copy the files of the state that the kept commits name, each checked by its digest.
    3. Read the entries of the log. If some file of 2 or 3 is gone, the job has moved on: again from its newest entry.
    4. Write the entries, the genesis last: without it a copy that was interrupted is refused.
    5. Remove what was copied for nothing.
    """
    if target.names(LOG) or target.names(STATE):
        hint = "Name a directory that does not exist yet."
        raise IncompatibleCheckpointError(f"'{target}' already holds a checkpoint, or a part of one.", hint=hint)  # 1
    copied: set[str] = set()
    while True:
        view = read_log(source)
        try:
            for run in _files(view):
                if run.name not in copied:
                    _copy_file(source, target, run)  # 2
                    copied.add(run.name)
            entries = {name: _read_entry(source, name, view) for name in [*_entries(view), entry_name(0)]}  # 3
            break
        except MissingFileError:
            # The job deletes files that no kept commit names. If it has not moved on, the file is missing for good.
            if read_log(source).head.sequence == view.head.sequence:
                raise
    for name, content in entries.items():
        _create(target, name, content)  # 4
    target.delete(*sorted(copied - {run.name for run in _files(view)}))  # 5
    return view


def _read_entry(source: Storage, name: str, view: LogView) -> bytes:
    """Of the log as it was at `view`. A claim that it does not know has taken the place of an entry that is gone."""
    content = source.read(name)
    entry = parse_entry(content, _number(name), source)
    if entry.kind == "claim" and entry.sequence not in view.head.pointers.claims:
        raise MissingFileError(name, str(source))
    return content


def _number(name: str) -> int:
    return int(name.removeprefix(LOG).removesuffix(".json"))


def _copy_file(source: Storage, target: Storage, run: RunFile) -> None:
    path = target.staging(run.name)
    digest = hashlib.blake2b(digest_size=16)
    try:
        with path.open("xb") as file:
            for chunk in _chunks(source, run):
                digest.update(chunk)
                file.write(chunk)
        if digest.hexdigest() != run.digest or path.stat().st_size != run.bytes:
            raise damaged(run.name, "has another content than was written", source)
        target.publish(run.name, path)
    finally:
        path.unlink(missing_ok=True)


def _create(target: Storage, name: str, content: bytes) -> None:
    try:
        target.create(name, content)
    except AlreadyExistsError:
        raise IncompatibleCheckpointError(f"Somebody else writes to '{target}' at the same time.") from None
