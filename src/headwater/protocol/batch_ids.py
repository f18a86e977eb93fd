"""What an exactly-once sink remembers of its last batch, and when that forbids to continue.

A writer of such a sink commits, together with a batch's rows, the batch's id: its number and the digest of its intent.
The number alone would not do: an older copy of a checkpoint comes to the same number again with other rows.

    1. When a run starts, before anything is written, the driver reads the ids of *all* writers: `check_start`. (A batch
       need not have rows for every writer, so one of them alone may know nothing of it.)
    2. Before a writer writes, it opens its transactions, which fences all earlier ones, reads its id: `is_written`.

The sinks of connectors and the simulated ones call these same two functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headwater.errors import StaleCheckpointError

__all__ = ["BatchId", "check_start", "is_written"]


@dataclass(frozen=True)
class BatchId:
    """`digest` stands for the intent: what is read, and how rows reach the writers. `str` and `parse` are how a sink
    may store it."""

    number: int
    digest: str

    def __str__(self) -> str:
        return f"{self.number}:{self.digest}"

    @staticmethod
    def parse(text: str) -> BatchId:
        number, _, digest = text.partition(":")
        return BatchId(int(number), digest)


def check_start(found: Iterable[BatchId], committed: BatchId, pending: BatchId | None, where: str = "") -> None:
    """Refuse a checkpoint that is behind its sink. `committed` is its last batch, `pending` the one that was intended
    after it, if any; `found` are the last ids of all writers, and `where` says where they are kept."""
    for last in found:
        if last.number >= committed.number and last not in (committed, pending):
            raise _stale(last, f"The checkpoint ends with batch {committed.number}.", where)


def is_written(found: BatchId | None, batch: BatchId, where: str = "") -> bool:
    """Whether a writer, whose last id is `found`, has already written `batch`."""
    if found is None or found.number < batch.number:
        return False
    if found != batch:
        raise _stale(found, f"The checkpoint comes to batch {batch.number} only now.", where)
    return True


def _stale(found: BatchId, known: str, where: str) -> StaleCheckpointError:
    return StaleCheckpointError(
        f"The checkpoint is an older copy: the sink has a batch {found.number} that it knows nothing of.",
        detail=f"{known} {where}".strip(),
        hint="Continue with the newest checkpoint, and stop any other run of this job. To start over, use a new "
        "checkpoint: the job then reads its input again, and writes it again.",
    )
