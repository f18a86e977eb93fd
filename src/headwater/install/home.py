"""Where Headwater keeps fetched jars and the embedded broker's data: $HEADWATER_HOME, else ~/.cache/headwater."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.errors import SetupError

__all__ = ["exclusive", "headwater_home", "writable_directory"]


def headwater_home() -> Path:
    """The directory, made absolute; it need not exist yet."""
    configured = os.environ.get("HEADWATER_HOME", "")
    return Path(configured).expanduser().absolute() if configured else Path.home() / ".cache" / "headwater"


def writable_directory(path: Path, mode: int = 0o777) -> Path:
    """`path`, created if missing; a `SetupError` where this user may not write there. A new directory gets `mode` less
    the umask: 0o700 for one that holds data."""
    try:
        path.mkdir(mode, parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(path, error.strerror or str(error)) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise _not_writable(path, "Permission denied")
    return path


def _not_writable(path: Path, reason: str) -> SetupError:
    below = path.is_relative_to(headwater_home())
    hint = "Set HEADWATER_HOME to a directory of your own." if below else "Choose a directory of your own."
    return SetupError(f"Cannot write to '{path}'.", detail=f"{reason}.", hint=hint)


@contextmanager
def exclusive(lock_file: Path) -> Iterator[None]:
    """One process at a time: waits for `lock_file`, and the operating system frees it should the holder die."""
    # The lock is on the open file, not on its existence: a file that is left behind blocks nobody.
    descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
