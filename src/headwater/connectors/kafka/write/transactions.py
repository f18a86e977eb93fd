"""Exactly-once: one Kafka transaction per batch and writer, which also says which batch it was.

A writer is a number from 0 up. Which rows it gets is a function of the batch's intent, so a batch that is computed
again hands every writer the rows it had before. Each writer has

    a transactional id    '<stem>-<writer>': whoever opens it fences all earlier users of it, and ends what they left
    a committed batch id  the number of its last batch, as the committed offset of a consumer group that nobody joins;
                          the offset's metadata is the digest of the batch's intent

The id is committed in the same transaction as the messages. So it says: these messages are there, once.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from headwater.connectors.kafka.clients.client_errors import COORDINATOR_MOVES, translated
from headwater.connectors.kafka.write.columns import send
from headwater.connectors.kafka.write.committed_offsets import Committed, committed_offset
from headwater.connectors.kafka.write.pool import Pool
from headwater.connectors.kafka.write.producer import Producer
from headwater.errors import HeadwaterError, JobError, KafkaRefusedError, KafkaUnavailableError
from headwater.protocol.batch_ids import BatchId, is_written

__all__ = ["Fenced", "OpenWriter", "Transactions", "open_writers", "write_once"]

T = TypeVar("T")

CALL_SECONDS = 30.0
# Nothing is lost yet if it takes longer: then a new client is opened.
BEGIN_SECONDS = 5.0
ABORT_SECONDS = 5.0
ATTEMPTS = 5

_FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
    }
)
_TRANSIENT = COORDINATOR_MOVES | {KafkaError.CONCURRENT_TRANSACTIONS}


@dataclass(frozen=True)
class Transactions:
    """What all writers of a job share. `stem` names its transactions, `checkpoint` whose batches are counted, `topic`
    is where rows go that do not name theirs, `earlier_topic` where they went in the run before. `client` are
    librdkafka's settings."""

    stem: str
    checkpoint: str
    topic: str
    client: Mapping[str, Any]
    earlier_topic: str = ""

    @property
    def topics(self) -> tuple[str, ...]:
        """Under which committed batch ids may be found."""
        return tuple(dict.fromkeys(filter(None, (self.topic, self.earlier_topic))))

    def transactional_id(self, writer: int) -> str:
        return f"{self.stem}-{writer}"

    @property
    def where(self) -> str:
        return f"Committed batch ids are in groups '{self.stem}-{self.checkpoint}-…'."

    def group(self, writer: int) -> str:
        return f"{self.stem}-{self.checkpoint}-{writer}"


class Fenced(Exception):
    """Someone has opened the same transactional id later."""


class OpenWriter:
    """An open transactional id. Nobody else has written under it since `committed` was read, or this one is fenced."""

    def __init__(self, job: Transactions, number: int) -> None:
        self._job = job
        self._group = job.group(number)
        self._what = f"transactions of '{job.transactional_id(number)}'"
        self._began = 0.0
        try:
            self._producer = Producer({**job.client, "transactional.id": job.transactional_id(number)})
        except KafkaException as error:
            raise translated(error, self._what) from error
        try:
            # Connected first: librdkafka would spend the time limit of the transactional call below on looking for a
            # broker.
            self._call(lambda: self._producer.connect(job.topic, CALL_SECONDS), attempts=1)
            # From here on every earlier producer of this id is fenced, and its open transaction is aborted.
            self._call(lambda: self._producer.init_transactions(CALL_SECONDS))
            # Opening has ended what earlier users left: what is read only now is final.
            self.committed = committed_offset(job.client, self._group, job.topics, CALL_SECONDS, "read_committed")
        except BaseException:
            self._producer.close()
            raise

    def begin(self, batch: BatchId) -> None:
        """Open the transaction with the batch's id: whoever is fenced learns it before any row is sent."""
        new = Committed(batch.number, batch.digest)
        self._began = time.monotonic()
        # Nothing is sent yet: only the first request of the transaction meets the broker, and the batch's id is that
        # request.
        self._call(self._producer.begin_transaction)
        send_id = self._producer.commit_with_transaction
        # The offset of a group is where the id is kept because it is the one thing a transaction can carry besides
        # messages, and readers can ask for without a consumer of their own.
        self._call(lambda: send_id(self._group, self._job.topic, new, BEGIN_SECONDS), attempts=2)

    @property
    def has_expired(self) -> bool:
        """Whether the transaction is older than the broker lets it become: then the broker has ended it, and fenced the
        writer, by itself."""
        return time.monotonic() - self._began >= float(self._job.client["transaction.timeout.ms"]) / 1000

    def send(self, messages: pa.RecordBatch) -> int:
        return self._call(lambda: send(self._producer, self._job.topic, messages), attempts=1)

    def commit(self, batch: BatchId) -> None:
        # A message that failed would make the commit fail with a general error; flushing first names the real one.
        self._call(lambda: self._producer.flush(float(self._job.client["message.timeout.ms"]) / 1000), attempts=1)
        self._call(lambda: self._producer.commit_transaction(CALL_SECONDS))
        self.committed = Committed(batch.number, batch.digest)

    def close(self) -> None:
        """Without a transaction under way."""
        self._producer.close()

    def abort(self) -> None:
        """Give up the transaction, if there is still somebody to tell, and close."""
        # Either there is none, or whoever opens this id next aborts it.
        with contextlib.suppress(KafkaException):
            # Otherwise aborting waits until queued messages have timed out.
            self._producer.purge()
            self._producer.abort_transaction(ABORT_SECONDS)
        self._producer.close()

    def _call(self, action: Callable[[], T], attempts: int = ATTEMPTS) -> T:
        for attempt in range(attempts):
            try:
                return action()
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                if cause.code() in _FENCED:
                    raise Fenced(str(cause)) from error
                self._producer.serve(0)  # lets the client tell its last error
                if attempt + 1 == attempts or not (cause.retriable() or cause.code() in _TRANSIENT):
                    raise translated(error, self._what, self._producer.last_error) from error
                time.sleep(0.05 * 2**attempt)
        raise AssertionError("the last attempt returns or raises")


open_writers: Pool[OpenWriter] = Pool()


def write_once(job: Transactions, number: int, batch: BatchId, messages: Iterable[pa.RecordBatch]) -> int:
    """Write a batch's messages of one writer unless they are there already; answers how many were written.

    1. Without messages there is nothing to write and nothing to note.
    2. Take the writer that this process has open, or open it: that fences all others and reads the committed batch id.
    3. If that is this batch, it is written. Any other that is not before this batch is an error.
    4. Begin, with the new id. If meanwhile another process has opened the writer, go back to 2.
    5. Send the messages.
    6. Commit: messages and id appear together or not at all.
    """
    # Looking for the first message before anything is opened: most tasks of a small batch have none, and a transaction
    # costs several round trips.
    filled = (part for part in messages if part.num_rows)
    first = next(filled, None)  # 1
    if first is None:
        return 0
    # Settings are part of the key: after a change of them, an open producer with the old ones must not be found.
    key = (job.transactional_id(number), job.group(number), tuple(sorted(job.client.items())))
    writer = _with_transaction(job, number, batch, key)
    if writer is None:
        return 0
    try:
        written = sum(writer.send(part) for part in chain([first], filled))  # 5
        writer.commit(batch)  # 6
    except Fenced as fenced:
        expired = writer.has_expired
        writer.abort()
        raise (_expired(job, fenced) if expired else _taken_over(job, number, fenced)) from fenced
    except BaseException:
        writer.abort()
        raise
    open_writers.give_back(key, writer)
    return written


def _with_transaction(job: Transactions, number: int, batch: BatchId, key: object) -> OpenWriter | None:
    """Nothing has been sent yet, so whatever became of a writer since it was opened, a new one may do."""
    failure: HeadwaterError | None = None
    # A writer from the pool may have been fenced, or lost its connection, since it was given back: another attempt
    # opens a new one.
    for attempt in range(ATTEMPTS):
        # The first one at once: Spark gives a writer's tasks to its Python workers in turn, so being fenced is common.
        time.sleep(0.1 * max(0, attempt - 1))
        writer = open_writers.take(key, lambda: OpenWriter(job, number))  # 2
        try:
            if is_written(writer.committed.id, batch, job.where):  # 3
                open_writers.give_back(key, writer)
                return None
            writer.begin(batch)  # 4
            return writer
        except Fenced as fenced:
            failure = _taken_over(job, number, fenced)
        # A rejection (login, ACL) is not transient: trying again would only hide it for a while.
        except KafkaRefusedError:
            writer.abort()
            raise
        except KafkaUnavailableError as error:
            failure = error
        except BaseException:
            writer.abort()
            raise
        writer.abort()
    assert failure is not None
    raise failure


def _expired(job: Transactions, fenced: Fenced) -> JobError:
    seconds = float(job.client["transaction.timeout.ms"]) / 1000
    return JobError(
        f"A batch takes longer than its transaction may be open, which is {seconds:g} s.",
        detail=str(fenced),
        hint="Raise 'properties.transaction.timeout.ms' of the sink, up to the broker's 'transaction.max.timeout.ms', "
        "and start the job again: it repeats the batch. A lower 'headwater.batch.max-rows' makes later ones shorter.",
    )


def _taken_over(job: Transactions, number: int, fenced: Fenced) -> JobError:
    return JobError(
        f"Another process writes under transactional id '{job.transactional_id(number)}'.",
        detail=str(fenced),
        hint="Stop the other run of this job, or give each job its own 'sink.transactional-id-prefix'.",
    )
