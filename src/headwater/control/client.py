"""Jobs of other processes of this user, on this machine: found by their registrations, asked by their sockets."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from headwater.control.registry import Registration, read_run_file, registrations
from headwater.control.status import JobStatus, RunStatus
from headwater.errors import JobError
from headwater.options.closest import did_you_mean

__all__ = ["Found", "find_job", "running_jobs", "runs", "stop_job"]

_ANSWER_SECONDS = 10.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Found:
    """A job, and the process that runs it."""

    job: JobStatus
    run: RunStatus
    registration: Registration


def runs() -> list[tuple[Registration, RunStatus]]:
    """All processes that answer. What is left of those that were killed is removed."""
    found = []
    for registration in registrations():
        try:
            status = _status(registration)
        except JobError:
            status = RunStatus(registration.process, answers=False)
        if status is not None:
            found.append((registration, status))
    return found


def running_jobs() -> list[Found]:
    return [Found(job, run, registration) for registration, run in runs() for job in run.jobs]


def find_job(name: str, process: int | None = None, location: str = "") -> Found:
    """The job of this name: the one that runs, if there is just one; of those in `process`, or the one whose checkpoint
    is `location`."""
    found = _at(location) if location else running_jobs()
    named = [f for f in found if f.job.name == name and process in (None, f.run.process)]
    # A process keeps showing jobs that have ended, and a job may have been started again elsewhere since.
    wanted = [f for f in named if f.job.is_running] or named[-1:]
    if len(wanted) > 1:
        raise JobError(
            f"{len(wanted)} processes run a job '{name}'.",
            detail="\n".join(f"Process {f.run.process}: {f.run.title}, {f.job.checkpoint}" for f in wanted),
            hint=f"Choose one, as in --process {wanted[0].run.process}.",
        )
    if not wanted:
        raise JobError(
            f"No job '{name}' is running.", hint=_hint(name, (f.job.name for f in found if f.job.is_running))
        )
    return wanted[0]


def stop_job(found: Found, seconds: float) -> JobStatus | None:
    """Ask it to end after its current batch, and wait; None if it has not ended in that time. A process that ends with
    its last job takes the status with it: then the last one that was seen is answered, as stopped."""
    deadline = time.monotonic() + seconds
    answer = _ask(found.registration, {"ask": "stop", "job": found.job.name})
    if answer is not None and "error" in answer:
        raise JobError(answer["error"])
    last = found.job
    while True:
        status = _status(found.registration)
        if status is None:
            return replace(last, status="stopped") if last.is_running else last
        last = next((job for job in status.jobs if job.name == found.job.name), last)
        if not last.is_running:
            return last
        if time.monotonic() > deadline:
            return None
        time.sleep(_POLL_SECONDS)


def _at(location: str) -> list[Found]:
    registration = read_run_file(location)
    if registration is None or registration.host != socket.gethostname():
        return []
    status = _status(registration)
    return [] if status is None else [Found(job, status, registration) for job in status.jobs]


def _hint(name: str, running: Iterable[str]) -> str:
    names = sorted(set(running))
    if not names:
        return "`headwater run` starts jobs; only those of this user on this machine are seen."
    return did_you_mean(name, names) or f"Running: {', '.join(names)}."


def _status(registration: Registration) -> RunStatus | None:
    answer = _ask(registration, {"ask": "status"})
    return None if answer is None else RunStatus.from_json(answer["ok"])


def _ask(registration: Registration, question: dict[str, Any]) -> dict[str, Any] | None:
    """None if nobody is there any more."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_ANSWER_SECONDS)
            connection.connect(registration.socket)
            connection.sendall(json.dumps(question).encode() + b"\n")
            with connection.makefile("rb") as answer:
                line = answer.readline()
    # Nobody listens: the process was killed and could not remove its registration. A timeout proves nothing of that
    # kind.
    except (ConnectionRefusedError, FileNotFoundError):
        registration.remove()
        return None
    except ConnectionError:  # it ends just now
        return None
    except OSError as error:
        raise JobError(f"Process {registration.process} does not answer.", detail=str(error)) from None
    answered: dict[str, Any] | None = json.loads(line) if line else None
    return answered
