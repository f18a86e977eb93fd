"""Checkpoints that no job of a script uses. Somebody may have renamed a job, which would then read its input again.

<root>/<job>/      the checkpoint of a job
<root>/1-<table>/  that of an earlier release, which numbered jobs by their place in the script
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from headwater.errors import IncompatibleCheckpointError
from headwater.plan.fingerprint import Fingerprint, differences
from headwater.protocol.checkpoint import Checkpoint
from headwater.protocol.directories import directories, is_locked
from headwater.protocol.locations import join, parse_location
from headwater.protocol.storage import open_storage
from headwater.session.definitions import JobPlan

__all__ = ["StoredCheckpoint", "check_unused", "stored_checkpoints"]

_NUMBERED = re.compile(r"\d+-(?P<table>.+)|(?P<pipeline>.+)-\d+")
_IGNORE = "headwater.checkpoint.ignore-orphaned"


@dataclass(frozen=True)
class StoredCheckpoint:
    """One directory. `fingerprint` is None where it is of another release and cannot be continued."""

    name: str
    fingerprint: Fingerprint | None


def stored_checkpoints(root: str) -> list[StoredCheckpoint]:
    """All below `root`, by name. Directories that hold no checkpoint are not looked at."""
    found = []
    for name in directories(root):
        try:
            genesis = Checkpoint(open_storage(join(root, name))).genesis()
            if genesis is not None:
                found.append(StoredCheckpoint(name, Fingerprint.from_json(genesis.facts)))
        except IncompatibleCheckpointError:
            found.append(StoredCheckpoint(name, None))
    return found


def check_unused(jobs: Sequence[JobPlan], others: Collection[str]) -> tuple[str, ...]:
    """`jobs` are all of a script, `others` the names of jobs that are known not to be orphaned. A warning for every
    checkpoint beside theirs that is not used.

    Raises IncompatibleCheckpointError if a job would start from scratch beside an unused checkpoint that was written by
    the same query under another name, or by an earlier release under its old name."""
    warnings: list[str] = []
    for root in dict.fromkeys(job.root for job in jobs if job.root):
        here = [job for job in jobs if job.root == root]
        stored = stored_checkpoints(root)
        names = {checkpoint.name for checkpoint in stored}
        used = {job.name for job in here} | set(others)
        # A locked one belongs to a job that runs in another process.
        unused = [c for c in stored if c.name not in used and not is_locked(root, c.name)]
        for job in here:
            if job.name not in names and not job.settings[_IGNORE]:
                _refuse_silent_restart(job, unused)
        warnings += _warnings(root, unused)
    return tuple(warnings)


def _refuse_silent_restart(job: JobPlan, unused: Sequence[StoredCheckpoint]) -> None:
    for checkpoint in unused:
        if checkpoint.fingerprint is None and _was_named(checkpoint.name, job):
            raise _of_earlier_release(job, checkpoint)
        if checkpoint.fingerprint is not None and _is_same_query(checkpoint.fingerprint, job.fingerprint):
            raise _renamed(job, checkpoint)


def _is_same_query(stored: Fingerprint, current: Fingerprint) -> bool:
    """A job with state is recognized by it. One without has only its sources, which many queries read; there the rows
    must be the same as well."""
    return not differences(stored, current) and (bool(stored.operators) or stored.rows == current.rows)


def _was_named(directory: str, job: JobPlan) -> bool:
    numbered = _NUMBERED.fullmatch(directory)
    return numbered is not None and (numbered["table"] == job.insert.target or numbered["pipeline"] == job.name)


def _renamed(job: JobPlan, checkpoint: StoredCheckpoint) -> IncompatibleCheckpointError:
    old, new = _shown(job.root, checkpoint.name), _shown(job.root, job.name)
    return IncompatibleCheckpointError(
        f"Job '{job.name}' would start from scratch, but checkpoint '{checkpoint.name}' is of the same query and not "
        "used by any INSERT of this script.",
        detail=f"If the job was renamed, it would read its input a second time. Unused checkpoint: {old}",
        hint=f"Rename that directory to '{new}', or SET 'pipeline.name' = '{checkpoint.name}' before the INSERT. If "
        f"these are two jobs, SET '{_IGNORE}' = 'true', or remove the unused checkpoint.",
    )


def _of_earlier_release(job: JobPlan, checkpoint: StoredCheckpoint) -> IncompatibleCheckpointError:
    return IncompatibleCheckpointError(
        f"Job '{job.name}' would start from scratch: its checkpoint '{checkpoint.name}' was written by an earlier "
        "release of Headwater.",
        detail="That release numbered jobs by their place in the script, and its state has another format, which "
        f"cannot be continued. Checkpoint: {_shown(job.root, checkpoint.name)}",
        hint="Run that release, or read the input again: with a new --checkpoint directory, or with "
        f"SET '{_IGNORE}' = 'true'.",
    )


def _warnings(root: str, unused: Sequence[StoredCheckpoint]) -> Iterator[str]:
    for checkpoint in unused:
        location = _shown(root, checkpoint.name)
        what = "If the job was renamed, rename the directory or SET 'pipeline.name'; if it is gone, remove it."
        if checkpoint.fingerprint is None:
            what = "It was written by an earlier release of Headwater and cannot be continued; remove it."
        yield f"Checkpoint '{checkpoint.name}' is not used by any INSERT of this script: {location}. {what}"


def _shown(root: str, name: str) -> str:
    """Without the settings of a URI, which may hold credentials."""
    return str(parse_location(join(root, name)))
