"""Transactions without Spark: what is written once stays written once, whoever comes along."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from headwater.broker import Broker
from headwater.connectors.kafka import transactions
from headwater.connectors.kafka.librdkafka import producer_settings
from headwater.connectors.kafka.transactions import NEVER, Fenced, Transactions, Writer, write_once
from headwater.errors import JobError, KafkaRefusedError
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
    yield Transactions(topic, "checkpoint-a", (topic,), settings)
    for number in (0, 1):
        transactions._forget(Transactions(topic, "checkpoint-a", (topic,), settings), number)


def rows(*values: str) -> list[pa.RecordBatch]:
    content = [value.encode() for value in values]
    return [pa.RecordBatch.from_pydict({"value": pa.array(content, pa.binary())})] if values else []


def committed(kafka: Kafka, job: Transactions) -> list[str]:
    topic = job.topics[0]
    ends = {partition: end for (_, partition), end in kafka.ends({topic: 2}).items()}
    return sorted(record.value.decode() for record in kafka.read(topic, {}, ends) if record.value is not None)


def test_a_batch_that_is_written_again_is_not(kafka: Kafka, job: Transactions) -> None:
    assert write_once(job, 0, 1, rows("a", "b")) == 2
    assert write_once(job, 0, 1, rows("a", "b")) == 0
    transactions._forget(job, 0)  # as in a new process
    assert write_once(job, 0, 1, rows("a", "b")) == 0
    assert write_once(job, 1, 1, rows("c")) == 1  # another writer's share of the same batch
    assert write_once(job, 0, 2, rows()) == 0
    assert write_once(job, 0, 3, rows("d")) == 1
    assert committed(kafka, job) == ["a", "b", "c", "d"]


def test_a_zombie_is_fenced_and_what_it_sent_never_shows(kafka: Kafka, job: Transactions) -> None:
    zombie = Writer(job, 0)
    zombie.begin(1)
    zombie.send(rows("a")[0])
    assert write_once(job, 0, 1, rows("a")) == 1
    with pytest.raises(Fenced):
        zombie.commit(1)
    zombie.close()
    assert write_once(job, 0, 2, rows("b")) == 1
    assert committed(kafka, job) == ["a", "b"]


def test_a_zombie_that_has_committed_has_done_the_work(kafka: Kafka, job: Transactions) -> None:
    zombie = Writer(job, 0)
    zombie.begin(1)
    zombie.send(rows("a")[0])
    zombie.commit(1)
    assert write_once(job, 0, 1, rows("a")) == 0
    zombie.close()
    assert committed(kafka, job) == ["a"]


def test_a_writer_that_another_process_has_opened_meanwhile_is_opened_again(kafka: Kafka, job: Transactions) -> None:
    assert write_once(job, 0, 1, rows("a")) == 1
    other = Writer(job, 0)
    other.begin(2)
    other.send(rows("b")[0])
    other.commit(2)
    assert write_once(job, 0, 2, rows("b")) == 0
    assert write_once(job, 0, 3, rows("c")) == 1
    other.close()
    assert committed(kafka, job) == ["a", "b", "c"]


def test_what_is_aborted_leaves_the_mark_as_it_was(kafka: Kafka, job: Transactions) -> None:
    def breaks() -> Iterator[pa.RecordBatch]:
        yield rows("a")[0]
        raise ZeroDivisionError

    assert write_once(job, 0, 1, rows("x")) == 1
    with pytest.raises(ZeroDivisionError):
        write_once(job, 0, 2, breaks())
    again = Writer(job, 0)
    assert again.done == 1
    again.close()
    assert write_once(job, 0, 2, rows("a")) == 1
    assert committed(kafka, job) == ["a", "x"]


def test_batches_of_another_checkpoint_count_anew(kafka: Kafka, job: Transactions) -> None:
    assert write_once(job, 0, 1, rows("a")) == 1
    new = Transactions(job.stem, "checkpoint-b", job.topics, job.client)
    assert write_once(new, 0, 1, rows("b")) == 1
    transactions._forget(new, 0)
    assert committed(kafka, job) == ["a", "b"]


def test_a_mark_that_is_ahead_is_an_error(job: Transactions) -> None:
    assert write_once(job, 0, 7, rows("a")) == 1
    with pytest.raises(JobError, match="Batch 3 is to be written, but the sink already has batch 7"):
        write_once(job, 0, 3, rows("a"))


def test_a_writer_without_a_past_has_no_mark(job: Transactions) -> None:
    writer = Writer(job, 1)
    assert writer.done == NEVER
    writer.close()


def test_what_the_broker_does_not_allow_is_explained(job: Transactions) -> None:
    long = Transactions(job.stem, "c", job.topics, {**job.client, "transaction.timeout.ms": 3_600_000})
    with pytest.raises(JobError) as raised:
        write_once(long, 0, 1, rows("a"))
    assert not isinstance(raised.value, KafkaRefusedError)
    assert "Lower 'properties.transaction.timeout.ms'" in str(raised.value)
