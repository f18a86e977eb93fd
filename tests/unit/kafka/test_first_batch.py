"""The first batch to a partition fails while others are under way: no message may be missing for that.

librdkafka's mock broker takes batches of any sequence number, as Kafka does from a producer that it has no state of.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from headwater.connectors.kafka.clients.settings import producer_settings
from headwater.connectors.kafka.write.librdkafka import PRODUCER, library, new_client
from headwater.connectors.kafka.write.settings import transactional, writer_settings
from headwater.errors import KafkaUnavailableError
from headwater.testing import kafka
from headwater.testing.kafka import Kafka, Record

TOPIC = "t"
PRODUCE_REQUEST = 0
RTT_MILLIS = 50  # long enough for a second request to be sent before the first one fails
COUNT = 5


class MockCluster:
    """One broker inside librdkafka, with one topic of one partition."""

    def __init__(self) -> None:
        self._lib = library()
        self._client = new_client(PRODUCER, {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, 0)
        self._lib.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
        self._cluster = ctypes.c_void_p(self._lib.rd_kafka_mock_cluster_new(ctypes.c_void_p(self._client), 1))
        self._lib.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        self.servers = self._lib.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()
        self._lib.rd_kafka_mock_topic_create(self._cluster, TOPIC.encode(), 1, 1)
        self._lib.rd_kafka_mock_broker_set_rtt(self._cluster, 1, RTT_MILLIS)

    def fail_next_batch(self) -> None:
        errors = (ctypes.c_int * 1)(KafkaError.NOT_LEADER_FOR_PARTITION)
        self._lib.rd_kafka_mock_push_request_errors_array(
            self._cluster, ctypes.c_int16(PRODUCE_REQUEST), ctypes.c_size_t(1), errors
        )

    def values(self) -> list[bytes]:
        """All that the topic has."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "g", "enable.partition.eof": True})
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        found = []
        try:
            while (message := consumer.poll(10.0)) is not None and message.error() is None:
                found.append(message.value())
            assert message is not None
            return [value for value in found if isinstance(value, bytes)]
        finally:
            consumer.close()

    def close(self) -> None:
        self._lib.rd_kafka_mock_cluster_destroy(self._cluster)
        self._lib.rd_kafka_destroy(self._client)


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    made = MockCluster()
    yield made
    made.close()


@pytest.mark.parametrize("own", [{}, {"max.in.flight.requests.per.connection": "5"}])
@pytest.mark.parametrize("guarantee", ["", "at-least-once", "exactly-once"])
def test_writers_lose_no_message(cluster: MockCluster, guarantee: str, own: dict[str, str]) -> None:
    properties = {"bootstrap.servers": cluster.servers, **own}
    settings = writer_settings(properties, guarantee) if guarantee else producer_settings(properties)
    once = guarantee == "exactly-once"
    if once:
        settings = {**transactional(settings, 300_000), "transactional.id": "x"}
    producer = Producer({**settings, "batch.num.messages": 1})
    if once:
        producer.init_transactions(10)
        producer.begin_transaction()
    produced = [b"%d" % n for n in range(COUNT)]
    cluster.fail_next_batch()
    for value in produced:
        producer.produce(TOPIC, value, partition=0)
    assert producer.flush(20) == 0
    if once:
        producer.commit_transaction(10)
    assert cluster.values() == produced


def _client(cluster: MockCluster, monkeypatch: pytest.MonkeyPatch, **settings: int) -> Kafka:
    changed = {name.replace("_", "."): value for name, value in settings.items()}
    monkeypatch.setattr(kafka, "Producer", lambda own: Producer({**own, "batch.num.messages": 1, **changed}))
    return Kafka(cluster.servers)


def test_the_producer_of_tests_loses_no_message(cluster: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    client = _client(cluster, monkeypatch)
    cluster.fail_next_batch()
    client.produce(Record(TOPIC, None, b"%d" % n, 0) for n in range(COUNT))
    client.close()
    assert cluster.values() == [b"%d" % n for n in range(COUNT)]


def test_a_message_without_an_offset_is_not_taken_for_delivered(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several requests at a time librdkafka reports the lost message as delivered."""
    client = _client(cluster, monkeypatch, max_in_flight_requests_per_connection=5)
    cluster.fail_next_batch()
    with pytest.raises(KafkaUnavailableError) as caught:
        client.produce(Record(TOPIC, None, b"%d" % n, 0) for n in range(COUNT))
    assert caught.value.detail == "A message was reported as delivered without an offset."
    client.close()
