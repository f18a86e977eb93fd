"""The checkpoints that lie in one place: a directory of them, or a prefix of an object store."""

from __future__ import annotations

import fcntl
from pathlib import Path

from headwater.protocol.local import unusable
from headwater.protocol.locations import join, parse_location

__all__ = ["directories", "is_locked"]


def directories(root: str) -> list[str]:
    """Names of what lies directly below `root`, sorted; most of it is checkpoints. Empty if there is no such place."""
    parsed = parse_location(root)
    if parsed.scheme == "file":
        place = Path(parsed.path)
        try:
            return sorted(entry.name for entry in place.iterdir() if entry.is_dir()) if place.is_dir() else []
        except OSError as error:
            raise unusable(parsed.path, error, "listing it") from None
    from headwater.protocol.objects import open_object_storage

    return sorted(open_object_storage(root, parsed).directories())


def is_locked(root: str, name: str) -> bool:
    """Whether a process runs the job of this checkpoint, where that can be known: on a local disk."""
    parsed = parse_location(join(root, name))
    if parsed.scheme != "file":
        return False
    try:
        file = (Path(parsed.path) / "lock").open("rb")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise unusable(parsed.path, error, "lock") from None
    with file:
        try:
            # A shared lock, given back at once: it is refused only while a job holds its exclusive one.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False
