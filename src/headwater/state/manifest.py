"""What a commit says about state, and what state needs of the storage a checkpoint lies in. Plain data only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

__all__ = ["PartitionFiles", "RunFile", "RunStorage"]


@dataclass(frozen=True)
class RunFile:
    """A sorted run in a file: its name below the checkpoint, its rows, its size, and a digest of its content."""

    name: str
    rows: int
    bytes: int
    digest: str

    def to_json(self) -> list[Any]:
        return [self.name, self.rows, self.bytes, self.digest]

    @staticmethod
    def from_json(content: Sequence[Any]) -> RunFile:
        name, rows, size, digest = content
        return RunFile(name, rows, size, digest)


PartitionFiles = Mapping[str, Sequence[RunFile]]
"""The state of one partition of an operator: for each table its runs, oldest first. Complete, never incremental."""


class RunStorage(Protocol):
    """The storage of a checkpoint; names are relative to it. Storages travel to workers with every task: `location` is
    what tells one checkpoint from another."""

    @property
    def location(self) -> str: ...

    def staging(self, name: str) -> Path:
        """A local path, new and private to the caller, to write the file `name` at."""

    def publish(self, name: str, path: Path, /) -> None:
        """Make the complete local file, written at the path that `staging` gave, durable under `name`."""

    def local(self, name: str, size: int, digest: str) -> Path:
        """A local path of the published file, fetched if need be. Raises if it is missing or of another size."""

    def forget(self, names: Iterable[str]) -> None:
        """This process does not use the local copies of these remote files any more. The published files stay."""
