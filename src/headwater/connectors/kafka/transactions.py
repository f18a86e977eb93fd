"""Exactly-once: one Kafka transaction per batch and writer, which also says that the batch is written.

A writer is a number from 0 up. Which rows it gets is a function of the rows alone, so a batch that is computed again
hands every writer the rows it had before. Each writer has

    a transactional id   '<stem>-<writer>': whoever opens it fences all earlier users of it, and settles what they left
    a mark               the number of its last batch, as the committed offset of a consumer group that nobody joins

The mark is committed in the same transaction as the messages. So a mark says: these messages are there, once.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from headwater.connectors.kafka.produce import TransactionSender, Trouble, translated
from headwater.errors import JobError

__all__ = ["Transactions", "Writer", "write_once"]

T = TypeVar("T")

CALL_SECONDS = 30.0
ATTEMPTS = 5
NEVER = -1

_FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
    }
)


@dataclass(frozen=True)
class Transactions:
    """What all writers of a job share. `stem` names its transactions, `checkpoint` whose batches are counted, `topics`
    are all that may be written; rows that do not name theirs go to the first. `client` are librdkafka's settings."""

    stem: str
    checkpoint: str
    topics: tuple[str, ...]
    client: Mapping[str, Any]

    def transactional_id(self, writer: int) -> str:
        return f"{self.stem}-{writer}"

    def group(self, writer: int) -> str:
        return f"{self.stem}-{self.checkpoint}-{writer}"


class Fenced(Exception):
    """Someone has opened the same transactional id later."""


class Writer:
    """An open transactional id. Nobody else has written under it since `done` was read, or this one is fenced."""

    def __init__(self, job: Transactions, number: int) -> None:
        self._job = job
        self._what = f"transactions of '{job.transactional_id(number)}'"
        self._trouble = Trouble()
        common = {**job.client, "error_cb": self._trouble}
        self._producer = Producer({**common, "transactional.id": job.transactional_id(number)})
        self._sender = TransactionSender(self._producer, common)
        reader = {k: v for k, v in common.items() if k not in _PRODUCER_ONLY}
        self._marks = Consumer(
            {**reader, "group.id": job.group(number), "isolation.level": "read_committed", "enable.auto.commit": False}
        )
        self._call(lambda: self._producer.list_topics(job.topics[0], timeout=CALL_SECONDS))  # connects: quicker below
        self._call(lambda: self._producer.init_transactions(CALL_SECONDS))
        self.done = self._read_mark()

    def _read_mark(self) -> int:
        wanted = [TopicPartition(topic, 0) for topic in self._job.topics]
        found: Sequence[TopicPartition] = self._call(lambda: self._marks.committed(wanted, timeout=CALL_SECONDS))
        return max((mark.offset for mark in found if mark.offset >= 0), default=NEVER)

    def begin(self, batch: int) -> None:
        """Open the transaction with the mark: whoever is fenced learns it before any row is sent."""
        mark = [TopicPartition(self._job.topics[0], 0, batch)]
        self._call(self._producer.begin_transaction)
        members = self._marks.consumer_group_metadata()
        self._call(lambda: self._producer.send_offsets_to_transaction(mark, members, CALL_SECONDS))

    def send(self, batch: pa.RecordBatch) -> int:
        return self._call(lambda: self._sender.send(self._job.topics[0], batch), attempts=1)

    def commit(self, batch: int) -> None:
        self._call(lambda: self._producer.commit_transaction(CALL_SECONDS))
        self.done = batch

    def close(self) -> None:
        """Give up what is open, if there is still somebody to tell."""
        with contextlib.suppress(KafkaException):  # there was none, or the next one to open this id settles it
            self._producer.purge()
            self._producer.abort_transaction(CALL_SECONDS)
        self._sender.close()
        self._marks.close()

    def _call(self, action: Callable[[], T], attempts: int = ATTEMPTS) -> T:
        for attempt in range(attempts):
            try:
                return action()
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                if cause.code() in _FENCED:
                    raise Fenced(str(cause)) from error
                with contextlib.suppress(KafkaException):  # the same once more, if it is fatal
                    self._producer.poll(0)  # lets the client tell its trouble
                if attempt + 1 == attempts or not (cause.retriable() or cause.code() in _PASSING):
                    raise translated(error, self._what, self._trouble) from error
                time.sleep(0.05 * 2**attempt)
        raise AssertionError("the last attempt returns or raises")


_PASSING = frozenset(
    {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS}
)
_PRODUCER_ONLY = frozenset(
    {
        "acks",
        "batch.num.messages",
        "batch.size",
        "compression.type",
        "delivery.report.only.error",
        "enable.idempotence",
        "linger.ms",
        "message.timeout.ms",
        "partitioner",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "transaction.timeout.ms",
    }
)

_open: dict[tuple[str, str], Writer] = {}
_open_lock = threading.Lock()


def write_once(job: Transactions, number: int, batch: int, rows: Iterable[pa.RecordBatch]) -> int:
    """Write a batch's rows of one writer unless they are there already; answers how many were written.

    1. Without rows there is nothing to write and nothing to note.
    2. Take the writer that this process has open, or open it: that fences all others and reads the mark.
    3. If the mark says that the batch is written, it is.
    4. Begin, with the new mark. If meanwhile another process has opened the id, go back to 2.
    5. Send the rows.
    6. Commit: rows and mark appear together or not at all.
    """
    filled = (part for part in rows if part.num_rows)
    first = next(filled, None)  # 1
    if first is None:
        return 0
    writer = _begun(job, number, batch)
    if writer is None:
        return 0
    try:
        written = sum(writer.send(part) for part in chain([first], filled))  # 5
        writer.commit(batch)  # 6
    except Fenced as fenced:
        _forget(job, number)
        raise _taken_over(job, number, fenced) from fenced
    except BaseException:
        _forget(job, number)
        raise
    return written


def _begun(job: Transactions, number: int, batch: int) -> Writer | None:
    fenced: Fenced | None = None
    for attempt in range(ATTEMPTS):
        try:
            writer = _writer(job, number)  # 2
            _check_mark(job, writer.done, batch)
            if writer.done == batch:  # 3
                return None
            writer.begin(batch)  # 4
            return writer
        except Fenced as error:
            fenced = error
            _forget(job, number)
            time.sleep(0.1 * attempt)
        except BaseException:
            _forget(job, number)
            raise
    assert fenced is not None
    raise _taken_over(job, number, fenced)


def _check_mark(job: Transactions, done: int, batch: int) -> None:
    if done > batch:
        raise JobError(
            f"Batch {batch} is to be written, but the sink already has batch {done} of this checkpoint.",
            detail=f"Progress is noted in consumer groups '{job.stem}-{job.checkpoint}-…'.",
            hint="The checkpoint is an older copy, or another process runs the same job. Stop that one, or start with "
            "a new checkpoint.",
        )


def _taken_over(job: Transactions, number: int, fenced: Fenced) -> JobError:
    return JobError(
        f"Another process writes under transactional id '{job.transactional_id(number)}'.",
        detail=str(fenced),
        hint="Stop the other run of this job, or give each job its own 'sink.transactional-id-prefix'.",
    )


def _writer(job: Transactions, number: int) -> Writer:
    with _open_lock:
        key = (job.transactional_id(number), job.group(number))
        if key not in _open:
            _open[key] = Writer(job, number)
        return _open[key]


def _forget(job: Transactions, number: int) -> None:
    with _open_lock:
        writer = _open.pop((job.transactional_id(number), job.group(number)), None)
    if writer is not None:
        writer.close()
