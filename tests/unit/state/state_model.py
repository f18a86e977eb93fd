"""What the tests of state share: a storage in a plain directory, and hashes that collide as often as wanted."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_numbers = itertools.count()


@dataclass(frozen=True)
class DirectoryStorage:
    """A checkpoint in a local directory. Records what was forgotten."""

    root: Path
    forgotten: list[str] = field(default_factory=list)

    @property
    def location(self) -> str:
        return str(self.root)

    def staging(self, name: str) -> Path:
        path = self.root / f"staging-{next(_numbers)}"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def publish(self, name: str, path: Path) -> None:
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        assert not target.exists(), f"{name} was written twice"
        path.rename(target)

    def local(self, name: str, size: int, digest: str) -> Path:
        return self.root / name

    def forget(self, names: Iterable[str]) -> None:
        self.forgotten.extend(names)


def small_hash(value: Any, spread: int) -> int:
    """The same for equal values, with as many collisions as wanted, also negative."""
    return (sum(repr(value).encode()) % spread) - spread // 2
