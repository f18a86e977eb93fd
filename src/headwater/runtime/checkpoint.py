"""What a job has promised and what it has done, in small files.

    job.json              who writes here: the signature of the plan, the number of state partitions, an identity, and
                          where it starts and ends
    sink.json             what the sink wants to remember from one run to the next
    intents/000042.json   batch 42 reads from here to there (written before it starts, and again if it ended earlier; a
                          replay reads exactly the same)
    commits/000042.json   batch 42 is in the sink and its state is saved: the single point at which it becomes done
    state/<operator>/     see `layers`

A batch is done if and only if its commit file is there. After a crash the job finds the last commit, drops state of
later batches, and runs the next intent again if there is one.
"""

from __future__ import annotations

import fcntl
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pyarrow.fs as pafs

from headwater.connectors.io import Position
from headwater.errors import IncompatibleCheckpointError
from headwater.runtime.files import filesystem, list_names, read_json, write_json
from headwater.runtime.layers import drop_versions_above

__all__ = ["Checkpoint", "Intent"]

KEPT_BATCHES = 50


@dataclass(frozen=True)
class Intent:
    """Per source: where the batch starts and ends, and the bound of the whole job (None: unbounded)."""

    start: list[Position]
    end: list[Position]
    bounds: list[Position | None]

    def to_json(self) -> dict[str, Any]:
        return {"start": self.start, "end": self.end, "bounds": self.bounds}

    @staticmethod
    def from_json(content: dict[str, Any]) -> Intent:
        return Intent(content["start"], content["end"], content["bounds"])


@dataclass
class Checkpoint:
    """One job's directory, held by one process at a time."""

    location: str
    _lock: IO[str] | None = field(default=None, repr=False)

    def acquire(self) -> None:
        """Refuse to share a checkpoint with another running job (on local disks, where it can be known)."""
        fs, path = filesystem(self.location)
        fs.create_dir(path, recursive=True)
        if not isinstance(fs, pafs.LocalFileSystem):
            return
        self._lock = (Path(path) / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            raise IncompatibleCheckpointError(
                "Another running job holds this checkpoint.",
                detail=f"Checkpoint: {self.location}",
                hint="Stop that job first, or give this one a directory of its own with --checkpoint.",
            ) from error

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def job(self) -> dict[str, Any] | None:
        content: dict[str, Any] | None = read_json(f"{self.location}/job.json")
        return content

    def create(self, job: dict[str, Any]) -> dict[str, Any]:
        """The identity tells this checkpoint from any other that was or will be in the same place."""
        content = {**job, "identity": uuid.uuid4().hex[:16]}
        write_json(f"{self.location}/job.json", content)
        return content

    def sink(self) -> dict[str, Any]:
        content: dict[str, Any] | None = read_json(f"{self.location}/sink.json")
        return content or {}

    def remember_sink(self, facts: dict[str, Any]) -> None:
        if facts != self.sink():
            write_json(f"{self.location}/sink.json", facts)

    def last_commit(self) -> int:
        """The number of the last batch that is done; 0 for none."""
        return max(self._numbers("commits"), default=0)

    def intent(self, batch: int) -> Intent | None:
        content = read_json(self._file("intents", batch))
        return Intent.from_json(content) if content is not None else None

    def intend(self, batch: int, intent: Intent) -> None:
        write_json(self._file("intents", batch), intent.to_json())

    def commit(self, batch: int, facts: dict[str, Any]) -> None:
        write_json(self._file("commits", batch), facts)
        if batch % KEPT_BATCHES == 0:
            self._forget_before(batch - KEPT_BATCHES)

    def state_location(self, operator: str) -> str:
        return f"{self.location}/state/{operator}"

    def drop_uncommitted_state(self) -> None:
        done = self.last_commit()
        for operator in list_names(f"{self.location}/state"):
            drop_versions_above(self.state_location(operator), done)

    def _file(self, kind: str, batch: int) -> str:
        return f"{self.location}/{kind}/{batch:012d}.json"

    def _numbers(self, kind: str) -> list[int]:
        names = list_names(f"{self.location}/{kind}")
        return [int(name[:-5]) for name in names if name.endswith(".json")]

    def _forget_before(self, batch: int) -> None:
        fs, _ = filesystem(self.location)
        for kind in ("intents", "commits"):
            for number in self._numbers(kind):
                if number < batch:
                    fs.delete_file(filesystem(self._file(kind, number))[1])
