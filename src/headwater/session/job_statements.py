"""SHOW JOBS and STOP JOB: the jobs of a session, and those that other processes of this user run on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headwater.control.client import Found, find_job, running_jobs
from headwater.control.client import stop_job as stop_elsewhere
from headwater.errors import JobError
from headwater.session.show import Shown
from headwater.sql import statements as s

if TYPE_CHECKING:
    from headwater.execution.job import Job

__all__ = ["jobs_shown", "stop_job"]

_HEADER = ("job name", "status", "rows in", "rows out", "lag", "batch", "process")
_STOP_SECONDS = 300.0


def jobs_shown(jobs: Sequence[Job]) -> Shown:
    own = [(p.name, p.status, p.rows_in, p.rows_out, p.lag, p.batch) for p in (job.progress() for job in jobs)]
    rows = [(*facts, os.getpid()) for facts in own]
    for found in _elsewhere():
        job = found.job
        rows.append((job.name, job.status, job.rows_in, job.rows_out, job.lag, job.batch, found.run.process))
    return Shown(_HEADER, tuple(tuple("" if fact is None else str(fact) for fact in row) for row in rows))


def _elsewhere() -> list[Found]:
    return [found for found in running_jobs() if found.run.process != os.getpid()]


def stop_job(jobs: Sequence[Job], statement: s.StopJob) -> None:
    """Returns when it has ended. A job of the session goes before one of the same name elsewhere."""
    # Its own first: a name is unique in a session, but another terminal may run a job of the same name.
    own = next((job for job in jobs if job.name == statement.name and job.running), None)
    if own is not None:
        own.stop()
        return
    try:
        found = find_job(statement.name)
        ended = stop_elsewhere(found, _STOP_SECONDS) if found.job.is_running else found.job
    except JobError as error:
        raise statement.error(error.fact, detail=error.detail, hint=error.hint) from None
    if ended is None:
        raise statement.error(f"Job '{statement.name}' has not stopped within {_STOP_SECONDS:g} s.")
