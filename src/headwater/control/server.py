"""The socket of a process that runs jobs: one line of JSON is a question, one line is the answer.

{"ask": "status"}                     → {"ok": {…}}, a RunStatus
{"ask": "stop", "job": "totals"}      → {"ok": true}, when the job was asked to end after its current batch
                                      → {"error": "…"}
"""

from __future__ import annotations

import json
import os
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from headwater.control.monitor import Monitor
from headwater.control.registry import Registration, register
from headwater.control.status import ENDED
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.execution.job import Job, Progress

__all__ = ["JobServer", "registered"]

_LONGEST = 1 << 16
_STOP_SECONDS = 0.05  # how often it looks whether it shall end: at the end of a run, someone waits for that


class _Handler(socketserver.StreamRequestHandler):
    timeout = 10

    def handle(self) -> None:
        with suppress(OSError, ValueError):
            # Bounded in length and by the timeout above: a client that sends nothing must not keep a thread for good.
            question = json.loads(self.rfile.readline(_LONGEST))
            answer = _answer(self.server.monitor, question)  # type: ignore[attr-defined]
            self.wfile.write(json.dumps(answer).encode() + b"\n")


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    monitor: Monitor


def _answer(monitor: Monitor, question: Any) -> dict[str, Any]:
    match question:
        case {"ask": "status"}:
            return {"ok": monitor.status().to_json()}
        case {"ask": "stop", "job": str(name)}:
            return {"ok": True} if monitor.stop(name) else {"error": f"Job '{name}' is not of this process."}
    return {"error": "The question is not understood."}


@contextmanager
def registered(title: str) -> Iterator[Monitor]:
    """Jobs that the monitor knows can be seen and stopped from elsewhere, if this machine lets it."""
    monitor = Monitor(title)
    server = None
    with suppress(HeadwaterError, OSError):
        server = JobServer(monitor)
    try:
        yield monitor
    finally:
        if server is not None:
            server.close()


class JobServer:
    """Makes the jobs of this process known and listens, until it is closed."""

    def __init__(self, monitor: Monitor) -> None:
        """Raises SetupError or OSError if this machine does not let it."""
        self.registration: Registration = register(monitor.started)
        try:
            self._server = _Server(self.registration.socket, _Handler)
        except OSError:
            self.registration.remove()
            raise
        os.chmod(self.registration.socket, 0o600)  # noqa: PTH101 - a socket; nobody else can enter its directory anyway
        self._server.monitor = monitor
        self._entered: set[str] = set()
        monitor.on_progress = self._saw
        serve = partial(self._server.serve_forever, _STOP_SECONDS)
        threading.Thread(target=serve, name="headwater-control", daemon=True).start()

    def _saw(self, job: Job, progress: Progress) -> None:
        """A job that is running holds its checkpoint; one that has ended does not. Neither may fail because of this."""
        with suppress(HeadwaterError, OSError):
            if progress.status in ENDED and job.name in self._entered:
                self._entered.discard(job.name)
                self.registration.leave(job.location)
            elif progress.status == "running" and job.name not in self._entered:
                self._entered.add(job.name)
                self.registration.enter(job.location)

    def close(self) -> None:
        # The registration goes last: until then a client may still find the socket, and gets an answer or a refused
        # connection, both of which it understands.
        self._server.shutdown()
        self._server.server_close()
        self.registration.remove()
