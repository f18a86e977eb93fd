"""Where a process says that it runs jobs.

    $HEADWATER_RUNTIME_DIR/<process>-<random>.json   where its socket is; default: $HEADWATER_HOME/run
    <checkpoint>/<job>/run.json                      the same, beside what the job keeps
    <process>-<random>.sock                          the socket, in the same directory

Directories are 0700 and files 0600: who can reach the socket may stop jobs and read their messages, which is for the
owner alone. A process that is killed leaves its files behind; whoever finds that its socket does not answer removes
them.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headwater.errors import HeadwaterError, MissingFileError, SetupError
from headwater.install.home import headwater_home, writable_directory
from headwater.protocol.storage import AlreadyExistsError, open_storage

__all__ = ["RUN_FILE", "Registration", "read_run_file", "register", "registrations", "runtime_directory"]

RUN_FILE = "run.json"
_LONGEST_SOCKET = 100  # the operating systems take 104 to 108 bytes


@dataclass(frozen=True)
class Registration:
    """A process that runs jobs, `started` in milliseconds since 1970."""

    process: int
    host: str
    socket: str
    started: int
    file: str = ""

    def to_bytes(self) -> bytes:
        return json.dumps({k: v for k, v in asdict(self).items() if k != "file"}).encode()

    def remove(self) -> None:
        for path in filter(None, (self.file, self.socket)):
            with suppress(OSError):
                Path(path).unlink()
        if self.socket and Path(self.socket).parent.name.startswith("headwater-socket-"):
            with suppress(OSError):
                Path(self.socket).parent.rmdir()

    def enter(self, location: str) -> None:
        """Say in a checkpoint that this process runs its job, which must hold it already."""
        storage = open_storage(location)
        # Two tries: between removing the file of a killed run and writing this one, another process may come first.
        for _ in range(2):
            storage.delete(RUN_FILE)  # of a run that was killed
            with suppress(AlreadyExistsError):
                return storage.create(RUN_FILE, self.to_bytes())
        return None

    def leave(self, location: str) -> None:
        """Unless another run has entered it meanwhile."""
        found = read_run_file(location)
        if found is not None and (found.process, found.host, found.started) == (self.process, self.host, self.started):
            open_storage(location).delete(RUN_FILE)


def runtime_directory() -> Path:
    configured = os.environ.get("HEADWATER_RUNTIME_DIR", "")
    return Path(configured).expanduser().absolute() if configured else headwater_home() / "run"


def register(started: int) -> Registration:
    """A name for this process's socket, which is not there yet, and the file that leads to it. Raises SetupError."""
    directory = writable_directory(runtime_directory(), 0o700)
    # Whoever owns the directory could put a socket of his own there, and be asked to stop jobs.
    if directory.stat().st_uid != os.getuid():
        raise SetupError(f"'{directory}' belongs to another user.", hint="Set HEADWATER_RUNTIME_DIR.")
    stem = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    path = directory / f"{stem}.sock"
    # The kernel limits the path of a Unix socket to about 100 bytes; a home directory may be deeper.
    if len(os.fsencode(path)) > _LONGEST_SOCKET:
        path = Path(tempfile.mkdtemp(prefix="headwater-socket-")) / f"{stem}.sock"
    made = Registration(os.getpid(), socket.gethostname(), str(path), started, str(directory / f"{stem}.json"))
    # Created with its final mode: opened first and restricted later, it would be readable in between.
    descriptor = os.open(made.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(made.to_bytes())
    return made


def registrations() -> list[Registration]:
    """Those of this machine, oldest first. Whether they still run is for the client to find out."""
    directory = runtime_directory()
    found = []
    for path in sorted(directory.glob("*.json")) if directory.is_dir() else ():
        with suppress(OSError, ValueError, TypeError, KeyError):  # it has just ended
            found.append(_parsed(json.loads(path.read_bytes()), str(path)))
    return sorted((r for r in found if r.host == socket.gethostname()), key=lambda r: r.started)


def read_run_file(location: str) -> Registration | None:
    """Who runs the job of this checkpoint, or did when it was killed; None if nobody does."""
    try:
        return _parsed(json.loads(open_storage(location).read(RUN_FILE)))
    except (MissingFileError, ValueError, TypeError, KeyError):
        return None
    except HeadwaterError:
        return None


def _parsed(content: Mapping[str, Any], file: str = "") -> Registration:
    return Registration(
        int(content["process"]), str(content["host"]), str(content["socket"]), int(content["started"]), file
    )
