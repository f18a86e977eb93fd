"""The fixes of the protocol, each taken out again: what the simulation must find, or it proves nothing.

The letters are those of the defects that were provoked on the engine before this one:

    a   a retry goes on from what its failed attempt left behind
    b   a batch is taken for written although the sink has another one of the same number
    c   files are removed while something that is needed still names them
    e   missing state is taken for empty state
    h   recovery believes an incomplete checkpoint
    i   where a batch ends depends on timing
    j   storage: lost answers, files that are seen before they are whole
    k   state that is rewritten beside the batches: compactions, another number of partitions

Those of a and i, which lie in the executor and in the readers, make the executor of the simulation do wrong. What
proves Headwater's own, and d, f and g, which are not about the protocol, is listed in decision 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import simulated_storage
from simulated_job import Wrong
from simulated_storage import Bucket, Machine, SimulatedDisk

from headwater.errors import MissingFileError, StaleCheckpointError
from headwater.execution import compaction, rescale
from headwater.execution.compaction import Compactor
from headwater.protocol import batch_ids, local, log
from headwater.protocol.batch_ids import BatchId
from headwater.protocol.checkpoint import STATE, Checkpoint, Recovered
from headwater.protocol.entries import entry_name
from headwater.protocol.records import Commit, Intent, RunFile
from headwater.protocol.storage import Storage
from headwater.protocol.storage_retries import RetryingStorage

Mutation = Callable[[], AbstractContextManager[Wrong]]
MUTATIONS: dict[str, Mutation] = {}


def mutation(name: str) -> Callable[[Callable[[], Iterator[Wrong]]], Mutation]:
    def register(function: Callable[[], Iterator[Wrong]]) -> Mutation:
        MUTATIONS[name] = contextmanager(function)
        return MUTATIONS[name]

    return register


def patched(*patches: Any) -> Iterator[Wrong]:
    with ExitStack() as stack:
        for part in patches:
            stack.enter_context(part)
        yield Wrong()


@mutation("a: a retry sees the state of the failed attempt")
def _retry_sees_failed_state() -> Iterator[Wrong]:
    yield Wrong(retry_sees_failed_state=True)


@mutation("b: a committed batch id is a number without a digest")
def _no_digest() -> Iterator[Wrong]:
    def is_written(committed: BatchId | None, batch: BatchId) -> bool:
        return committed is not None and committed.number >= batch.number

    def check_start(found: list[BatchId], committed: BatchId, pending: BatchId | None) -> None:
        if any(last.number > committed.number + 1 for last in found):
            raise StaleCheckpointError("simulated")

    yield from patched(
        patch.object(batch_ids, "is_written", is_written), patch.object(batch_ids, "check_start", check_start)
    )


@mutation("b: the ids of the sink are not compared when a run starts")
def _no_start_check() -> Iterator[Wrong]:
    yield from patched(patch.object(batch_ids, "check_start", lambda *_: None))


@mutation("c: data is removed before the commit that supersedes it")
def _data_before_manifests() -> Iterator[Wrong]:
    real = Checkpoint._append_commit

    def append_commit(self: Checkpoint, commit: Commit) -> None:
        staying = list(self._commits.values())[-self._kept + 1 :] if self._kept > 1 else []
        kept = frozenset[str]().union(commit.names, *(c.names for c in staying))
        known = frozenset[str]().union(*(c.names for c in self._commits.values()))
        self.storage.delete(*sorted(known - kept))
        real(self, commit)

    yield from patched(patch.object(Checkpoint, "_append_commit", append_commit))


@mutation("c: orphans are listed after the claim")
def _orphans_after_claim() -> Iterator[Wrong]:
    def remove_orphans(self: Checkpoint, found: list[str]) -> None:
        self._remove_entries()
        named = self._named_by(self._held().pointers.commits)
        leftovers = [name for name in found if name.endswith(".tmp")]
        self.storage.delete(*leftovers, *(name for name in self.storage.names(STATE) if name not in named))

    yield from patched(patch.object(Checkpoint, "_remove_orphans", remove_orphans))


@mutation("c: after each batch everything is removed that no commit names")
def _collect_by_listing() -> Iterator[Wrong]:
    real = Checkpoint.collect

    def collect(self: Checkpoint) -> tuple[str, ...]:
        gone = real(self)
        named = self._named_by(self._held().pointers.commits)
        self.storage.delete(*(name for name in self.storage.names(STATE) if name not in named))
        return gone

    yield from patched(patch.object(Checkpoint, "collect", collect))


@mutation("c: claims are removed like other entries")
def _claims_removed() -> Iterator[Wrong]:
    def remove_entries(self: Checkpoint) -> None:
        stale = [n for n in self._numbers if 0 < n < self._held().pointers.commits[0]]
        self.storage.delete(*map(entry_name, stale))
        self._numbers = [n for n in self._numbers if n not in stale]

    yield from patched(patch.object(Checkpoint, "_remove_entries", remove_entries))


@mutation("c: a claim counts wherever it lies")
def _claim_anywhere() -> Iterator[Wrong]:
    yield from patched(patch.object(Checkpoint, "_is_newest", lambda self: True))


@mutation("e: missing state is empty state")
def _missing_is_empty() -> Iterator[Wrong]:
    with patch.object(Checkpoint, "_check_files", lambda self, found: None):
        yield Wrong(missing_is_empty=True)


@mutation("e: missing files are not looked for when a run starts, and the size of a file is not checked")
def _no_checks() -> Iterator[Wrong]:
    yield from patched(
        patch.object(Checkpoint, "_check_files", lambda self, found: None),
        patch.object(local, "checked_size", lambda *_: None),
        patch.object(simulated_storage, "checked_size", lambda *_: None),
    )


@mutation("h: positions are those of the intent, and the first ones if it is gone")
def _positions_from_intent() -> Iterator[Wrong]:
    real = log.read_commit

    def read_commit(storage: Storage, sequence: int) -> Commit:
        commit = real(storage, sequence)
        for before in range(sequence - 1, 0, -1):
            try:
                entry = log.read_entry(storage, before)
            except MissingFileError:
                break
            if entry.kind == "intent":
                return replace(commit, positions=Intent.from_json(entry.content).end)
        return replace(commit, positions=log.read_genesis(storage).start)

    yield from patched(patch.object(log, "read_commit", read_commit))


@mutation("h: a pending intent without rows is ignored")
def _empty_intent_ignored() -> Iterator[Wrong]:
    real = log.read_intent

    def read_intent(storage: Storage, sequence: int) -> Intent | None:
        intent = real(storage, sequence)
        return None if intent.start == intent.end else intent

    yield from patched(patch.object(log, "read_intent", read_intent))


@mutation("h: a pending intent is decided again")
def _intent_decided_again() -> Iterator[Wrong]:
    yield from patched(patch.object(log, "read_intent", lambda storage, sequence: None))


@mutation("i: a batch ends where it happens to end")
def _early_end() -> Iterator[Wrong]:
    yield Wrong(ends_early=True)


@mutation("j: entries are created without the condition")
def _unconditional() -> Iterator[Wrong]:
    real = Bucket.__init__

    def bucket(self: Bucket) -> None:
        real(self)
        self.conditional = False

    yield from patched(patch.object(Bucket, "__init__", bucket))


@mutation("j: an entry of one's own is not known again")
def _own_entry_unknown() -> Iterator[Wrong]:
    def create(self: RetryingStorage, name: str, content: bytes) -> None:
        self._storage.create(name, content)

    yield from patched(patch.object(RetryingStorage, "_create", create))


@mutation("j: a conflict of two requests is taken for another run")
def _conflict_is_another_run() -> Iterator[Wrong]:
    def found(self: RetryingStorage, name: str) -> bytes | None:
        try:
            return self._storage.read(name)
        except MissingFileError:
            return None

    yield from patched(patch.object(RetryingStorage, "_found", found))


@mutation("j: an append is repeated as another entry")
def _append_repeated_anew() -> Iterator[Wrong]:
    real = Checkpoint._append

    def append(self: Checkpoint, kind: str, pointers: Any, content: Any) -> None:
        self._unanswered = None
        real(self, kind, pointers, content)

    yield from patched(patch.object(Checkpoint, "_append", append))


def _unsynced(what: str) -> Iterator[Wrong]:
    real = Machine.__init__

    def machine(self: Machine, world: Any) -> None:
        real(self, world)
        setattr(self, what, False)

    yield from patched(patch.object(Machine, "__init__", machine))


@mutation("j: files are not synced")
def _files_not_synced() -> Iterator[Wrong]:
    yield from _unsynced("syncs_files")


@mutation("j: directories are not synced")
def _directories_not_synced() -> Iterator[Wrong]:
    yield from _unsynced("syncs_directories")


@mutation("j: an entry is written under its final name")
def _written_in_place() -> Iterator[Wrong]:
    def link(self: SimulatedDisk, source: str, target: str) -> None:
        content = self._file(source).content
        try:
            self._file(target)
        except FileNotFoundError:
            self.write(target, content)
            self.created(target, content)
        else:
            raise FileExistsError(target)

    yield from patched(patch.object(SimulatedDisk, "link", link))


@mutation("k: a compaction drops tombstones above older runs")
def _tombstones_dropped() -> Iterator[Wrong]:
    real = compaction._Compaction

    def compacted(*facts: Any) -> Any:
        return replace(real(*facts), oldest=True)

    yield from patched(patch.object(compaction, "_Compaction", compacted))


@mutation("k: a compaction takes the place of runs that are gone")
def _swapped_anyway() -> Iterator[Wrong]:
    def swapped(runs: Sequence[RunFile], inputs: Sequence[RunFile], result: RunFile) -> list[RunFile]:
        return [result, *runs[len(inputs) :]]

    yield from patched(patch.object(compaction, "swapped", swapped))


@mutation("k: a compaction that comes too late is left where it is")
def _left_behind() -> Iterator[Wrong]:
    yield from patched(patch.object(Compactor, "_remove", lambda self, done: None))


@mutation("k: a rescale does not ask for a batch that is under way")
def _rescaled_in_between() -> Iterator[Wrong]:
    class Careless(Checkpoint):
        def claim(self, run: str) -> Recovered:
            found = super().claim(run)
            self._pending = None
            return replace(found, pending=None)

    yield from patched(patch.object(rescale, "Checkpoint", Careless))


@mutation("k: a rescale removes the old files before the new ones are the state")
def _removed_before_amended() -> Iterator[Wrong]:
    real = Checkpoint.amend

    def amend(self: Checkpoint, commit: Commit) -> None:
        self.storage.delete(*sorted(self.committed.names))
        real(self, commit)

    yield from patched(patch.object(Checkpoint, "amend", amend))
