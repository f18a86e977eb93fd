"""Waiting for jobs without sleeping blindly: all that was produced has been read, computed, written and committed."""

from __future__ import annotations

import time
from collections.abc import Mapping

from headwater.testing.engine import Engine, EngineJob
from headwater.testing.kafka import Kafka, Offsets

__all__ = ["NotCaughtUp", "await_caught_up", "await_failure"]

_LOOK_SECONDS = 0.01


class NotCaughtUp(Exception):
    """The jobs did not get there: one failed, or the time is up. The text says which and why."""


def await_caught_up(
    engine: Engine, kafka: Kafka | None, partitions: Mapping[str, int], seconds: float
) -> list[EngineJob]:
    """Returns when all live jobs have committed everything there is, with the jobs as they are then.

    1. See where the topics end. 2. See that every job has committed up to there. 3. See that the topics still end
    there: then no job was about to write to a topic that another job reads. Jobs that crashed on demand are left alone.
    """
    deadline = time.monotonic() + seconds
    while True:
        ends = kafka.ends(partitions) if kafka else {}  # 1
        jobs, behind = _read_to(ends, engine, deadline)  # 2
        if not behind and (kafka is None or kafka.ends(partitions) == ends):  # 3
            return jobs
        if time.monotonic() > deadline:
            raise NotCaughtUp(f"After {seconds:.0f} s {_lateness(behind, ends)}")


def _read_to(ends: Offsets, engine: Engine, deadline: float) -> tuple[list[EngineJob], list[EngineJob]]:
    """All jobs, and those that have not come as far as `ends` when the time is up. Only jobs are looked at: to ask the
    broker again and again would take the time that they need."""
    batches = -1
    while True:
        jobs = engine.jobs()
        failed = next((job for job in jobs if job.error and not job.crashed), None)
        if failed is not None:
            raise NotCaughtUp(f"Job '{failed.name}' failed:\n{failed.error}")
        # Committed positions, not those of a batch under way: only what is committed survives the crash that may
        # follow.
        behind = [job for job in jobs if not _has_read(job, ends)]
        if not behind or time.monotonic() > deadline:
            return jobs, behind
        if sum(job.batches for job in jobs) != batches:  # what one has written, another may read
            batches = sum(job.batches for job in jobs)
            engine.wake()
        time.sleep(_LOOK_SECONDS)


def await_failure(engine: Engine, seconds: float) -> EngineJob:
    """The first job that fails."""
    deadline = time.monotonic() + seconds
    while True:
        jobs = engine.jobs()
        failed = next((job for job in jobs if job.error), None)
        if failed is not None:
            return failed
        if not any(job.live for job in jobs):
            raise NotCaughtUp("All jobs have ended, and none of them failed.")
        if time.monotonic() > deadline:
            raise NotCaughtUp(f"No job failed in {seconds:.0f} s.")
        time.sleep(_LOOK_SECONDS)


def _has_read(job: EngineJob, ends: Offsets) -> bool:
    if not job.live:
        return True
    # A job whose time has moved has a batch to do, although it has read everything.
    if job.state == "starting" or job.due:
        return False
    by_name = {f"{topic}:{partition}": end for (topic, partition), end in ends.items()}
    from_topics = job.positions.keys() & by_name.keys()
    if not from_topics:
        # It reads rows of its own (VALUES, datagen) and has not finished.
        return False
    only_topics = from_topics == job.positions.keys()
    return all(job.positions[key] >= by_name[key] for key in from_topics) and (only_topics or job.batches > 0)


def _lateness(behind: list[EngineJob], ends: Offsets) -> str:
    if not behind:
        return f"topics still grow: they end at {ends}."
    where = "; ".join(f"'{job.name}' ({job.state}) stands at {dict(job.positions)}" for job in behind)
    return f"not everything is read: {where}; topics end at {ends}."
