"""The state of a stopped job, rewritten for another number of state partitions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from headwater.errors import IncompatibleCheckpointError
from headwater.protocol.checkpoint import Checkpoint
from headwater.protocol.storage import Storage, open_storage
from headwater.state.files import spec_of
from headwater.state.manifest import RunFile
from headwater.state.rescale import rescale
from headwater.state.table import TableSpec

__all__ = ["Rescaled", "rescale_checkpoint"]

Tables = Mapping[str, Sequence[RunFile]]


@dataclass(frozen=True)
class Rescaled:
    """What was done: the numbers of partitions before and after, and the entries of the state."""

    before: int
    after: int
    rows: int


def rescale_checkpoint(location: str, partitions: int) -> Rescaled:
    """In four steps:

    1. Take the checkpoint over, as a run of the job would: it must not be running.
    2. A pending batch must be finished first: its route names the old partitions.
    3. Write new files, operator by operator.
    4. One new entry of the log makes them the state; the old ones are garbage from then on.
    """
    checkpoint = Checkpoint(open_storage(location))
    try:
        recovered = checkpoint.claim(f"rescale-{uuid.uuid4().hex}")  # 1
        committed = recovered.committed
        if recovered.pending is not None:  # 2
            raise IncompatibleCheckpointError(
                f"Batch {recovered.pending.batch} of this checkpoint is not finished.",
                detail=f"Checkpoint: {checkpoint.storage}",
                hint="Start the job, let it finish the batch, stop it in order, and rescale then.",
            )
        state = {  # 3
            operator: _rescaled(checkpoint.storage, operator, list(old.values()), partitions)
            for operator, old in committed.state.items()
        }
        after = replace(committed, state=state, partitions=partitions)
        checkpoint.amend(after)  # 4
        checkpoint.collect()
        rows = sum(
            run.rows for t in state.values() for tables in t.values() for runs in tables.values() for run in runs
        )
        return Rescaled(committed.partitions, partitions, rows)
    except IncompatibleCheckpointError:
        # In an object store no lock keeps the job from being started meanwhile. What is missing then is no damage: it
        # has become garbage.
        checkpoint.refuse_if_overtaken()
        raise
    finally:
        checkpoint.release()


def _rescaled(
    storage: Storage, operator: str, old: Sequence[Tables], partitions: int
) -> dict[int, dict[str, tuple[RunFile, ...]]]:
    specs = _specs(storage, old)
    # A name of its own: files of an attempt that was interrupted must never be taken for those of this one.
    prefix = partial(_prefix, operator, uuid.uuid4().hex)
    new = rescale(storage, specs, old, partitions, prefix)
    return {number: {name: tuple(runs) for name, runs in tables.items()} for number, tables in enumerate(new)}


def _prefix(operator: str, unique: str, partition: int) -> str:
    return f"state/{operator}/{partition}/rescale-{unique}"


def _specs(storage: Storage, old: Sequence[Tables]) -> list[TableSpec]:
    """Read from any run of each table."""
    found: dict[str, TableSpec] = {}
    for tables in old:
        for name, runs in tables.items():
            if runs and name not in found:
                # The schema lies in the files: neither the SQL of the job nor Spark is needed to rescale it.
                found[name] = spec_of(storage, name, runs[0])
    return list(found.values())
