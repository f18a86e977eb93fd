"""What can be known before Spark starts is checked before: the checkpoint, who holds it, brokers and topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timezone

from headwater.catalog.connector import JobStart
from headwater.control.registry import read_run_file
from headwater.errors import CheckpointTakenError
from headwater.plan.fingerprint import Fingerprint, check_compatible
from headwater.plan.nodes import Node, Scan, Write, walk
from headwater.protocol.checkpoint import Checkpoint
from headwater.protocol.directories import is_locked
from headwater.protocol.locations import join, shown
from headwater.protocol.storage import open_storage
from headwater.session.definitions import JobPlan

__all__ = ["check_sources", "check_start"]


def check_start(job: JobPlan, beside: Iterable[Write]) -> None:
    """Raises what the job would fail with when it starts, as far as that can be known. `beside` are the plans of all
    jobs of the script, or of the session: a topic that one of them makes need not be there yet."""
    start: JobStart = "new"
    location = join(job.root, job.name) if job.root else ""
    if location:
        if is_locked(job.root, job.name):
            raise _held(job, location)
        genesis = Checkpoint(open_storage(location)).genesis()
        if genesis is not None:
            start = "continued"
            check_compatible(Fingerprint.from_json(genesis.facts), job.fingerprint, shown(location))
    # A script may read what it writes itself; such topics need not be there before it has started.
    written = {topic for plan in beside for topic in plan.table.connector.topics(plan.table)}
    job.plan.table.connector.check_sink(job.plan.table)
    check_sources(job.plan, written, start)
    if location:
        _check_usable(location)


def check_sources(plan: Node, made: Collection[str] = (), start: JobStart = "new") -> None:
    """Raises if what a plan reads is not there. `made` are topics that will be."""
    for table in {id(node.table): node.table for node in walk(plan) if isinstance(node, Scan)}.values():
        table.connector.check_source(table, start, made)


def _check_usable(location: str) -> None:
    """Makes the directory, as the job will: whether that is possible is not known before. It comes last, so that a job
    that fails for another reason leaves none."""
    storage = open_storage(location)
    storage.lock()
    storage.unlock()


def _held(job: JobPlan, location: str) -> CheckpointTakenError:
    run = read_run_file(location)
    who, hint = "", "Stop that job first, or give this one a directory of its own with --checkpoint."
    if run is not None:
        since = datetime.fromtimestamp(run.started / 1000, timezone.utc)
        who = f"Process {run.process} on {run.host} runs it since {since:%Y-%m-%d %H:%M:%S} UTC.\n"
        hint = f"'headwater stop {job.name}' stops it; --checkpoint gives this one a directory of its own."
    return CheckpointTakenError(
        "Another running job holds this checkpoint.", detail=f"{who}Checkpoint: {shown(location)}", hint=hint
    )
