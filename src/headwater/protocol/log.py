"""Reading the log: the newest entry, and what it points at. Nothing here writes."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.errors import MissingFileError
from headwater.protocol.entries import LOG, Entry, entry_name, entry_numbers, parse_entry
from headwater.protocol.records import Commit, Genesis, Intent
from headwater.protocol.storage import Storage

__all__ = ["LogView", "read_commit", "read_entry", "read_genesis", "read_intent", "read_log"]


@dataclass(frozen=True)
class LogView:
    """The log at one moment. `commits` are the kept ones by their sequence numbers, oldest first."""

    numbers: list[int]
    head: Entry
    genesis: Genesis
    commits: dict[int, Commit]
    pending: Intent | None

    @property
    def committed(self) -> Commit:
        return self.commits[self.head.pointers.commits[-1]]


def read_log(storage: Storage) -> LogView:
    """Whatever the newest entry points at and is missing is an error that names the file."""
    while True:
        numbers = entry_numbers(storage.names(LOG))
        if not numbers:
            raise MissingFileError(entry_name(0), str(storage))
        try:
            return _follow(storage, numbers)
        except MissingFileError:
            if entry_numbers(storage.names(LOG))[-1:] == numbers[-1:]:
                # Nobody has moved on, so nobody has removed it as garbage: it is really missing.
                raise


def _follow(storage: Storage, numbers: list[int]) -> LogView:
    head = read_entry(storage, numbers[-1])
    pending = head.pointers.pending
    return LogView(
        numbers,
        head,
        read_genesis(storage),
        {number: read_commit(storage, number) for number in head.pointers.commits},
        None if pending is None else read_intent(storage, pending),
    )


def read_entry(storage: Storage, sequence: int) -> Entry:
    return parse_entry(storage.read(entry_name(sequence)), sequence, storage)


def read_genesis(storage: Storage) -> Genesis:
    return Genesis.from_json(read_entry(storage, 0).content)


def read_commit(storage: Storage, sequence: int) -> Commit:
    if sequence == 0:
        return Commit.of_genesis(read_genesis(storage))
    return Commit.from_json(_read_kind(storage, sequence, "commit").content)


def read_intent(storage: Storage, sequence: int) -> Intent:
    return Intent.from_json(_read_kind(storage, sequence, "intent").content)


def _read_kind(storage: Storage, sequence: int, kind: str) -> Entry:
    """A claim where another entry was: that one is removed, and a run that was too slow has found its number free."""
    entry = read_entry(storage, sequence)
    if entry.kind != kind:
        raise MissingFileError(entry.name, str(storage))
    return entry
