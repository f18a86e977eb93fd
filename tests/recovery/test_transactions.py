"""Transactions without Spark: what is written once stays written once, whoever comes along."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from confluent_kafka import KafkaException

from headwater.broker import Broker
from headwater.connectors.kafka.clients.settings import producer_settings
from headwater.connectors.kafka.write.committed_offsets import NOTHING_COMMITTED, Committed
from headwater.connectors.kafka.write.transactions import Fenced, OpenWriter, Transactions, open_writers, write_once
from headwater.errors import JobError, KafkaRefusedError, StaleCheckpointError
from headwater.protocol.batch_ids import BatchId
from headwater.testing.kafka import Kafka

MakeJob = Callable[..., Transactions]


@pytest.fixture
def kafka(broker: Broker) -> Iterator[Kafka]:
    client = Kafka(broker.bootstrap_servers)
    yield client
    client.close()


@pytest.fixture
def job(kafka: Kafka, unique_topic: Callable[[str], str]) -> Iterator[Transactions]:
    topic = unique_topic("once")
    kafka.create({topic: 2})
    settings = {
        **producer_settings({"bootstrap.servers": kafka.bootstrap_servers}),
        "transaction.timeout.ms": 60_000,
        "message.timeout.ms": 30_000,
    }
    yield Transactions(topic, "checkpoint-a", topic, settings)
    open_writers.close_idle()


def batch(number: int, digest: str = "") -> BatchId:
    return BatchId(number, digest or f"digest of {number}")


def rows(*values: str) -> list[pa.RecordBatch]:
    content = [value.encode() for value in values]
    return [pa.RecordBatch.from_pydict({"value": pa.array(content, pa.binary())})] if values else []


def committed(kafka: Kafka, job: Transactions) -> list[str]:
    topic = job.topic
    ends = {partition: end for (_, partition), end in kafka.ends({topic: 2}).items()}
    return sorted(record.value.decode() for record in kafka.read(topic, {}, ends) if record.value is not None)


def test_a_batch_that_is_written_again_is_not(kafka: Kafka, job: Transactions) -> None:
    assert write_once(job, 0, batch(1), rows("a", "b")) == 2
    assert write_once(job, 0, batch(1), rows("a", "b")) == 0
    open_writers.close_idle()  # as in a new process
    assert write_once(job, 0, batch(1), rows("a", "b")) == 0
    assert write_once(job, 1, batch(1), rows("c")) == 1  # another writer's share of the same batch
    assert write_once(job, 0, batch(2), rows()) == 0
    assert write_once(job, 0, batch(3), rows("d")) == 1
    assert committed(kafka, job) == ["a", "b", "c", "d"]


def test_a_zombie_is_fenced_and_what_it_sent_never_shows(kafka: Kafka, job: Transactions) -> None:
    zombie = OpenWriter(job, 0)
    zombie.begin(batch(1))
    zombie.send(rows("a")[0])
    assert write_once(job, 0, batch(1), rows("a")) == 1
    with pytest.raises(Fenced):
        zombie.commit(batch(1))
    zombie.close()
    assert write_once(job, 0, batch(2), rows("b")) == 1
    assert committed(kafka, job) == ["a", "b"]


def test_a_zombie_that_has_committed_has_done_the_work(kafka: Kafka, job: Transactions) -> None:
    zombie = OpenWriter(job, 0)
    zombie.begin(batch(1))
    zombie.send(rows("a")[0])
    zombie.commit(batch(1))
    assert write_once(job, 0, batch(1), rows("a")) == 0
    zombie.close()
    assert committed(kafka, job) == ["a"]


def test_a_writer_that_another_process_has_opened_meanwhile_is_opened_again(kafka: Kafka, job: Transactions) -> None:
    assert write_once(job, 0, batch(1), rows("a")) == 1
    other = OpenWriter(job, 0)
    other.begin(batch(2))
    other.send(rows("b")[0])
    other.commit(batch(2))
    assert write_once(job, 0, batch(2), rows("b")) == 0
    assert write_once(job, 0, batch(3), rows("c")) == 1
    other.close()
    assert committed(kafka, job) == ["a", "b", "c"]


def test_a_writer_that_was_fenced_leaves_nothing_behind(job: Transactions) -> None:
    """Spark gives the tasks of a writer to its Python workers in turn, so each of them is fenced in nearly every batch.
    What an exception keeps alive must go by itself: the collector did not find it in worker processes."""
    messages = rows("a")
    assert write_once(job, 0, batch(1), messages) == 1
    OpenWriter(job, 0).close()
    gc.collect()
    known = _exceptions()  # of other tests
    gc.disable()
    try:
        before = sys.getrefcount(messages)
        assert write_once(job, 0, batch(2), messages) == 1
        assert [one for one in _exceptions() if not any(one is other for other in known)] == []
        assert sys.getrefcount(messages) == before
    finally:
        gc.enable()


def _exceptions() -> list[KafkaException]:
    return [one for one in gc.get_objects() if isinstance(one, KafkaException)]


def test_what_is_aborted_leaves_the_committed_batch_as_it_was(kafka: Kafka, job: Transactions) -> None:
    def breaks() -> Iterator[pa.RecordBatch]:
        yield rows("a")[0]
        raise ZeroDivisionError

    assert write_once(job, 0, batch(1), rows("x")) == 1
    with pytest.raises(ZeroDivisionError):
        write_once(job, 0, batch(2), breaks())
    again = OpenWriter(job, 0)
    assert again.committed == Committed(1, "digest of 1")
    again.close()
    assert write_once(job, 0, batch(2), rows("a")) == 1
    assert committed(kafka, job) == ["a", "x"]


def test_batches_of_another_checkpoint_count_from_scratch(kafka: Kafka, job: Transactions) -> None:
    assert write_once(job, 0, batch(1), rows("a")) == 1
    new = Transactions(job.stem, "checkpoint-b", job.topic, job.client)
    assert write_once(new, 0, batch(1), rows("b")) == 1
    assert committed(kafka, job) == ["a", "b"]


@pytest.mark.parametrize("later", [BatchId(7, "digest of 7"), BatchId(3, "another digest")])
@pytest.mark.parametrize("reopened", [False, True])
def test_a_batch_that_the_checkpoint_does_not_know(
    kafka: Kafka, job: Transactions, later: BatchId, reopened: bool
) -> None:
    assert write_once(job, 0, later, rows("a")) == 1
    if reopened:
        open_writers.close_idle()
    with pytest.raises(StaleCheckpointError, match=f"older copy: the sink has a batch {later.number} that"):
        write_once(job, 0, batch(3), rows("b"))
    assert write_once(job, 0, batch(8), rows("c")) == 1
    assert committed(kafka, job) == ["a", "c"]


def test_a_writer_without_a_past_has_committed_nothing(job: Transactions) -> None:
    writer = OpenWriter(job, 1)
    assert writer.committed == NOTHING_COMMITTED
    writer.close()


def test_what_the_broker_does_not_allow_is_explained(job: Transactions) -> None:
    long = Transactions(job.stem, "c", job.topic, {**job.client, "transaction.timeout.ms": 3_600_000})
    with pytest.raises(JobError) as raised:
        write_once(long, 0, batch(1), rows("a"))
    assert not isinstance(raised.value, KafkaRefusedError)
    assert "Lower 'properties.transaction.timeout.ms'" in str(raised.value)


@pytest.mark.long
def test_a_transaction_that_was_open_for_too_long_is_an_error_that_says_so(kafka: Kafka, job: Transactions) -> None:
    """The broker ends it, which looks as if another writer had taken its place."""
    short = replace(job, client={**job.client, "transaction.timeout.ms": 5_000, "message.timeout.ms": 5_000})

    def slow() -> Iterator[pa.RecordBatch]:
        yield from rows("a")
        time.sleep(25)  # brokers look for such transactions every ten seconds
        yield from rows("b")

    with pytest.raises(JobError, match="takes longer than its transaction may be open, which is 5 s") as failed:
        write_once(short, 0, batch(1), slow())
    assert "transaction.timeout.ms" in failed.value.hint
    assert write_once(job, 0, batch(1), rows("a", "b")) == 2
    assert committed(kafka, job) == ["a", "b"]
