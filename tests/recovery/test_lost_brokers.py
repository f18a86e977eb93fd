"""A client that is told of no brokers, as by one that is shutting down, never finds them again: what it was doing ends
soon after the broker is back, and a new client finishes it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import KafkaException
from second_broker import SecondBroker

from headwater.connectors.kafka.write.columns import send
from headwater.connectors.kafka.write.producer import Producer
from headwater.connectors.kafka.write.settings import transactional, usable_settings
from headwater.connectors.kafka.write.transactions import OpenWriter, Transactions, open_writers, write_once
from headwater.errors import KafkaUnavailableError
from headwater.protocol.batch_ids import BatchId
from headwater.testing.kafka import Kafka

TOPIC = "once"
TRANSACTION_MILLIS = 600_000
OUTAGES = 3  # of which one should hit the moment
NOTICED_SECONDS = 30.0
FIRST, SECOND = BatchId(1, "digest of 1"), BatchId(2, "digest of 2")


@pytest.fixture
def broker_of_sink(tmp_path: Path) -> Iterator[SecondBroker]:
    with SecondBroker(tmp_path / "sink-broker") as running:
        yield running


@pytest.fixture
def kafka(broker_of_sink: SecondBroker) -> Iterator[Kafka]:
    client = Kafka(broker_of_sink.bootstrap_servers)
    client.create({TOPIC: 1})
    yield client
    client.close()


@pytest.fixture
def job(kafka: Kafka) -> Iterator[Transactions]:
    settings = usable_settings({"bootstrap.servers": kafka.bootstrap_servers}, "exactly-once")
    yield Transactions("writers", "checkpoint", TOPIC, transactional(settings, TRANSACTION_MILLIS))
    open_writers.close_idle()


def rows(*values: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array([value.encode() for value in values], pa.binary())})


def written(kafka: Kafka) -> list[str]:
    ends = {partition: end for (_, partition), end in kafka.ends({TOPIC: 1}).items()}
    return sorted((record.value or b"").decode() for record in kafka.read(TOPIC, {}, ends))


def answers(producer: Producer) -> bool:
    try:
        producer.connect(TOPIC, 2.0)
    except KafkaException:
        return False
    return True


def lose_brokers(producer: Producer, broker: SecondBroker) -> None:
    """The broker is stopped and comes back, and the client asks for its brokers all the while."""
    for _ in range(OUTAGES):
        stopped = threading.Event()

        def ask(stopped: threading.Event = stopped) -> None:
            while not stopped.is_set():
                answers(producer)

        asking = threading.Thread(target=ask)
        asking.start()
        broker.stop()
        stopped.set()
        asking.join()
        broker.start()
        if not answers(producer):
            return
    pytest.fail("A client finds its brokers again: librdkafka no longer needs what `Producer` does about it.")


def opened(job: Transactions) -> OpenWriter:
    """A broker that was just started may not be ready for transactions."""
    for _ in range(20):
        try:
            return OpenWriter(job, 0)
        except KafkaUnavailableError:
            time.sleep(0.5)
    return OpenWriter(job, 0)


def seconds_until_given_up(action: Callable[[], object]) -> float:
    began = time.monotonic()
    with pytest.raises((KafkaUnavailableError, KafkaException)):
        action()
    return time.monotonic() - began


@pytest.mark.timeout(180)
def test_beginning_a_transaction(broker_of_sink: SecondBroker, kafka: Kafka, job: Transactions) -> None:
    """librdkafka does not return from the call that begins it, whatever its time limit."""
    writer = opened(job)
    writer.begin(FIRST)
    writer.send(rows("a"))
    writer.commit(FIRST)
    lose_brokers(writer._producer, broker_of_sink)
    assert seconds_until_given_up(lambda: writer.begin(SECOND)) < NOTICED_SECONDS
    writer.abort()
    assert write_once(job, 0, FIRST, [rows("a")]) == 0
    assert write_once(job, 0, SECOND, [rows("b")]) == 1
    assert written(kafka) == ["a", "b"]


@pytest.mark.long
@pytest.mark.timeout(180)
def test_committing_a_transaction(broker_of_sink: SecondBroker, kafka: Kafka, job: Transactions) -> None:
    writer = opened(job)
    writer.begin(FIRST)
    writer.send(rows("a"))
    writer._producer.flush(30)
    lose_brokers(writer._producer, broker_of_sink)
    assert seconds_until_given_up(lambda: writer.commit(FIRST)) < NOTICED_SECONDS
    writer.abort()
    assert write_once(job, 0, FIRST, [rows("a")]) == 1
    assert written(kafka) == ["a"]


@pytest.mark.long
@pytest.mark.timeout(180)
def test_messages_without_a_transaction(broker_of_sink: SecondBroker, kafka: Kafka) -> None:
    producer = Producer(usable_settings({"bootstrap.servers": kafka.bootstrap_servers}, "at-least-once"))
    producer.connect(TOPIC, 30)
    lose_brokers(producer, broker_of_sink)
    send(producer, TOPIC, rows("a"))
    assert seconds_until_given_up(lambda: producer.flush(150)) < NOTICED_SECONDS
    producer.close()


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_question_for_partitions(broker_of_sink: SecondBroker, kafka: Kafka) -> None:
    producer = Producer(usable_settings({"bootstrap.servers": kafka.bootstrap_servers}, "at-least-once"))
    producer.connect(TOPIC, 30)
    lose_brokers(producer, broker_of_sink)
    assert seconds_until_given_up(lambda: producer.connect(TOPIC, 150)) < NOTICED_SECONDS
    producer.close()
