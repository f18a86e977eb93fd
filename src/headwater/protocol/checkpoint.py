"""The log of a checkpoint: who holds it, what was done last, what is under way, and what is garbage.

    log/00000000000000000042.json               entries, each created on the condition that there is none of its number
    state/<operator>/<partition>/….arrow        files of the state, named by commits
    lock                                        held by the running process, on local disks

Entry 0 is the genesis, which is also the commit of batch 0. The newest entry points at the kept commits and at the
intent that is under way. A run first appends a claim. An older run that is still alive then finds the number of its
next entry taken, and stops; that number stays taken, because claims are not removed like other entries are.

Checkpoints of the first versions of Headwater (job.json) had no log and are refused.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from headwater.errors import (
    CheckpointTakenError,
    HeadwaterError,
    IncompatibleCheckpointError,
    JobError,
    MissingFileError,
)
from headwater.protocol.batch_ids import BatchId
from headwater.protocol.entries import LOG, Entry, Pointers, entry_name, entry_numbers
from headwater.protocol.log import read_entry, read_genesis, read_log
from headwater.protocol.records import Claim, Commit, Genesis, Intent, Json
from headwater.protocol.storage import AlreadyExistsError, Storage

__all__ = ["KEPT_COMMITS", "LEGACY", "STATE", "Checkpoint", "Recovered"]

KEPT_COMMITS = 3
KEPT_CLAIMS = 200
"""One small file per start of the job. A paused driver would have to sleep through so many restarts to do harm."""
STATE = "state/"
LEGACY = "job.json"
_CLAIM_ATTEMPTS = 100


@dataclass(frozen=True)
class Recovered:
    """Where a run goes on: after `committed`, with `pending` if an earlier run left a batch uncommitted."""

    genesis: Genesis
    committed: Commit
    pending: Intent | None

    @property
    def pending_id(self) -> BatchId | None:
        return self.pending.id if self.pending is not None else None


class Checkpoint:
    """One job's checkpoint. `begin` or `genesis` first, then `claim`, then batches: intend, commit, collect."""

    def __init__(self, storage: Storage, kept: int = KEPT_COMMITS) -> None:
        self.storage = storage
        self.run = ""
        self._kept = kept
        self._head: Entry | None = None  # the newest entry, as far as this run knows
        self._commits: dict[int, Commit] = {}  # the kept ones by sequence number, oldest first
        self._pending: Intent | None = None
        self._numbers: list[int] = []  # of all entries that are there
        self._unanswered: Entry | None = None  # an append that may or may not have been done

    @property
    def committed(self) -> Commit:
        return self._commits[self._held().pointers.commits[-1]]

    @property
    def pending(self) -> Intent | None:
        return self._pending

    def exists(self) -> bool:
        return self.genesis() is not None

    def genesis(self) -> Genesis | None:
        """What the checkpoint stands for; None if there is none yet."""
        try:
            return read_genesis(self.storage)
        except MissingFileError:
            self._refuse_leftovers()
            return None

    def begin(self, genesis: Genesis) -> Genesis:
        """Start a new checkpoint, unless somebody else is quicker: answers the genesis that is in force."""
        self.storage.lock()
        self._refuse_leftovers()
        entry = Entry("genesis", 0, genesis.identity, Pointers((0,)), genesis.to_json())
        # Two first starts at once: the conditional write lets one of them win, and both go on with its genesis.
        with suppress(AlreadyExistsError):
            self.storage.create(entry.name, entry.to_bytes())
        return read_genesis(self.storage)

    def claim(self, run: str) -> Recovered:
        """Take the checkpoint over.

        1. Keep other processes of this machine out, where possible.
        2. List all files. What is listed now and named by no commit at 4 belongs to runs before this one.
        3. Read the newest entry and follow its pointers. Whatever is missing is an error that names the file.
        4. Append the claim. If somebody else has appended meanwhile, go back to 2: also if the number is free, because
           another run has come past it and removed the entry.
        5. Every file that the newest commit names must be there.
        6. Remove orphans: from now on no run before this one can commit them. Files of a run *after* this one are never
           among them, because they were not there at 2.
        """
        self.storage.lock()  # 1
        self.run = run
        for _ in range(_CLAIM_ATTEMPTS):
            logged, found = self.storage.names(LOG), self.storage.names(STATE)  # 2
            genesis = self._follow_newest()  # 3
            claim = Claim(run, socket.gethostname(), os.getpid(), int(time.time() * 1000))
            # An entry can be appended under a number that garbage collection of a newer run has freed; only the
            # greatest number is in force.
            if self._append_claim(claim) and self._is_newest():  # 4
                self._check_files(set(found))  # 5
                self._remove_orphans([*logged, *found])  # 6
                return Recovered(genesis, self.committed, self._pending)
        raise CheckpointTakenError(
            "The checkpoint is written to by another run all the time.",
            detail=f"Checkpoint: {self.storage}",
            hint="Stop the other run of this job.",
        )

    def intend(self, intent: Intent) -> None:
        """Batch `intent.batch` is going to read this, whatever happens."""
        if self._pending is not None or intent.batch != self.committed.batch + 1:
            raise JobError(f"Batch {intent.batch} cannot begin after batch {self.committed.batch}: a bug in Headwater.")
        head = self._held()
        pointers = replace(head.pointers, pending=head.sequence + 1)
        self._append("intent", pointers, intent.to_json())
        self._pending = intent

    def commit(self, commit: Commit) -> None:
        """The single point at which a batch becomes done. It must be the one under way, to its very end."""
        intent = self._pending
        # Between intent and commit lie the executor and its retries: this catches a commit that belongs to something
        # else.
        promised = None if intent is None else (intent.batch, intent.digest, intent.end)
        if promised != (commit.batch, commit.intent, commit.positions):
            raise JobError(f"The commit of batch {commit.batch} does not follow from its intent: a bug in Headwater.")
        self._append_commit(commit)

    def amend(self, commit: Commit) -> None:
        """Replace the newest commit by one of the same batch and positions, between batches: state that was rewritten
        (for another number of partitions)."""
        before = self.committed
        if self._pending is not None or (commit.batch, commit.positions) != (before.batch, before.positions):
            raise JobError("Only state can be rewritten, and only between two batches: a bug in Headwater.")
        self._append_commit(commit)

    def collect(self) -> tuple[str, ...]:
        """Remove what the newest commit has made superfluous; answers the files of the state that are gone.

        1. Entries of the log, so that no entry names a file that is gone.
        2. Files that a removed commit named and no kept one does. (Not: all that no commit names. A run that has been
           overtaken without knowing it must not remove what the newer one is writing.)
        """
        kept = self._held().pointers.commits
        stale = {number: commit for number, commit in self._commits.items() if number not in kept}
        # In this order: a crash in between leaves files that nobody names, never an entry that names a file which is
        # gone.
        self._remove_entries()  # 1
        names = frozenset[str]().union(*(commit.names for commit in stale.values()))
        gone = tuple(sorted(names - self._named_by(kept)))
        self.storage.delete(*gone)  # 2
        for number in stale:
            del self._commits[number]
        return gone

    def collect_attempts(self, attempts: Iterable[str]) -> None:
        """Remove what given attempts of this run have left behind and no kept commit names. None may be under way."""
        prefixes = tuple(f"{attempt}-" for attempt in attempts)
        if not prefixes:
            return
        named = self._named_by(self._held().pointers.commits)
        found = [name for name in self.storage.names(STATE) if name.rpartition("/")[2].startswith(prefixes)]
        # Only given attempts: other tasks of this run may be writing files that no commit names yet.
        self.storage.delete(*(name for name in found if name not in named))

    def refuse_if_overtaken(self) -> None:
        """CheckpointTakenError if a newer run has claimed the checkpoint."""
        if self._head is not None:
            newest = read_log(self.storage).head
            if newest.sequence > self._head.sequence and newest.run != self.run:
                raise self._taken(newest.pointers.claims[-1])

    def release(self) -> None:
        self.storage.unlock()

    def _held(self) -> Entry:
        if self._head is None:
            raise JobError("The checkpoint has not been claimed: a bug in Headwater.")
        return self._head

    def _follow_newest(self) -> Genesis:
        view = read_log(self.storage)
        self._head, self._commits, self._pending = view.head, view.commits, view.pending
        self._numbers, self._unanswered = view.numbers, None
        return view.genesis

    def _append_claim(self, claim: Claim) -> bool:
        head = self._held()
        number = head.sequence + 1
        pointers = replace(head.pointers, claims=(*head.pointers.claims, number)[-KEPT_CLAIMS:])
        try:
            self._append("claim", pointers, claim.to_json())
        except CheckpointTakenError:
            return False
        return True

    def _is_newest(self) -> bool:
        return entry_numbers(self.storage.names(LOG))[-1:] == [self._held().sequence]

    def _append_commit(self, commit: Commit) -> None:
        head = self._held()
        kept = (*head.pointers.commits, head.sequence + 1)[-self._kept :]
        self._append("commit", replace(head.pointers, commits=kept, pending=None), commit.to_json())
        self._commits[head.sequence + 1] = commit
        self._pending = None

    def _append(self, kind: str, pointers: Pointers, content: Json) -> None:
        """An append that failed may have been done, so it is repeated as the same entry, with the same id."""
        entry = Entry(kind, self._held().sequence + 1, self.run, pointers, content)
        # An object store may have done what it did not answer. A different entry under the same number would be taken
        # for another run's.
        if self._unanswered is not None:
            if (kind, content) != (self._unanswered.kind, self._unanswered.content):
                raise JobError(f"Entry {entry.sequence} may be in the log already with other content: claim it again.")
            entry = self._unanswered
        self._unanswered = entry
        try:
            self.storage.create(entry.name, entry.to_bytes())
        except AlreadyExistsError:
            raise self._taken(entry.sequence) from None
        self._head, self._unanswered = entry, None
        self._numbers.append(entry.sequence)

    def _taken(self, sequence: int) -> CheckpointTakenError:
        return CheckpointTakenError(
            "Another run of this job has taken the checkpoint over.",
            detail="\n".join([f"Checkpoint: {self.storage}", *self._taken_by(sequence)]),
            hint="Only one run of a job can write to a checkpoint. The newer one continues; this one has stopped.",
        )

    def _taken_by(self, sequence: int) -> Iterator[str]:
        with suppress(HeadwaterError):
            entry = read_entry(self.storage, sequence)
            if entry.kind == "claim":
                claim = Claim.from_json(entry.content)
                yield f"By: process {claim.process} on {claim.host}"

    def _named_by(self, commits: Iterable[int]) -> frozenset[str]:
        return frozenset[str]().union(*(self._commits[number].names for number in commits))

    def _check_files(self, found: set[str]) -> None:
        for name in sorted(self.committed.names - found):
            if self.storage.size(name) is None:  # those written since the listing are there
                raise MissingFileError(name, str(self.storage))

    def _remove_orphans(self, found: list[str]) -> None:
        """Entries first, as in `collect`."""
        self._remove_entries()
        named = self._named_by(self._held().pointers.commits) | set(map(entry_name, self._numbers))
        self.storage.delete(*(name for name in found if name not in named))

    def _remove_entries(self) -> None:
        """Those before the oldest kept commit. The genesis stays; so do claims, for their numbers."""
        pointers = self._held().pointers
        stale = [n for n in self._numbers if 0 < n < pointers.commits[0] and n not in pointers.claims]
        self.storage.delete(*map(entry_name, stale))
        self._numbers = [n for n in self._numbers if n not in stale]

    def _refuse_leftovers(self) -> None:
        """A log without its first entry, or state without a log, is not a new checkpoint.

        The state is listed before the log: if another run begins just now, its genesis is there before its state is.
        """
        # Whoever restores a checkpoint may leave its log behind; starting from scratch beside that state would hide
        # the loss.
        state, numbers = self.storage.names(STATE), entry_numbers(self.storage.names(LOG))
        if (state or numbers) and 0 not in numbers:
            raise MissingFileError(entry_name(0), str(self.storage))
        if self.storage.size(LEGACY) is not None:
            raise IncompatibleCheckpointError(
                "The checkpoint was written by an older version of Headwater.",
                detail=f"Checkpoint: {self.storage}",
                hint="Start with a new --checkpoint directory (the job then reads its input again).",
            )
