"""What the writers of a job have committed, asked on the driver before the first batch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from headwater.connectors.kafka.write.committed_offsets import Committed, committed_offset
from headwater.connectors.kafka.write.transactions import CALL_SECONDS, OpenWriter, Transactions
from headwater.connectors.runtime import SinkStart
from headwater.errors import IncompatibleCheckpointError
from headwater.protocol.batch_ids import check_start

__all__ = ["check_batches"]

_AT_A_TIME = 8


def check_batches(job: Transactions, writers: int, start: SinkStart) -> None:
    """Raise if any writer has committed a batch that the checkpoint knows nothing of.

    Without a pending batch nobody can be writing: what groups have committed is all there is. With one, a task of the
    run before may still be at work. Opening the transactional ids ends that: afterwards the answer is final, and what
    killed writers left open hides nothing from readers any more.
    """
    found = [one.id for one in (_ended(job, writers) if start.pending is not None else _committed(job, writers))]
    check_start(found, start.committed, start.pending, job.where)
    if start.rerouted and start.pending in found:
        raise IncompatibleCheckpointError(
            f"Batch {start.pending.number} was written in part by another query.",
            detail="'exactly-once' can finish it only with the very SQL and table options it was started with.",
            hint="Undo the change, run the job until that batch is done, stop it, and then change it.",
        )


def _ended(job: Transactions, writers: int) -> list[Committed]:
    """Of every writer, after all transactions of earlier runs have been committed or aborted."""
    # At the same time: opening a transactional id takes several round trips, and a job may have dozens of writers.
    with ThreadPoolExecutor(min(_AT_A_TIME, writers)) as threads:
        return list(threads.map(lambda number: _opened(job, number), range(writers)))


def _opened(job: Transactions, number: int) -> Committed:
    writer = OpenWriter(job, number)
    try:
        return writer.committed
    finally:
        writer.close()


def _committed(job: Transactions, writers: int) -> list[Committed]:
    """Without opening anything."""
    asked = (job.group(number) for number in range(writers))
    return [committed_offset(job.client, group, job.topics, CALL_SECONDS, "read_uncommitted") for group in asked]
