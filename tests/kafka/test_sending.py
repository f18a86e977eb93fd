"""What the workers hand to the client in columns is what a row-by-row producer would send, in the same order."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from kafka_lab import Lab

from headwater.connectors.kafka import native, produce
from headwater.connectors.kafka.librdkafka import producer_settings
from headwater.connectors.kafka.produce import TransactionSender, Trouble
from headwater.testing.kafka import Record

PARTITIONS = 3


def messages(**columns: Sequence[Any]) -> pa.RecordBatch:
    types = {"partition": pa.int32(), "topic": pa.string()}
    names = list(columns)
    return pa.RecordBatch.from_arrays([pa.array(columns[n], types.get(n, pa.binary())) for n in names], names)


def sent(lab: Lab, topic: str, *batches: pa.RecordBatch, **properties: str) -> None:
    settings = {
        **producer_settings({"bootstrap.servers": lab.kafka.bootstrap_servers, **properties}),
        "error_cb": Trouble(),
    }
    producer = Producer({**settings, "transactional.id": uuid.uuid4().hex, "transaction.timeout.ms": 200_000})
    producer.init_transactions(30)
    producer.begin_transaction()
    sender = TransactionSender(producer, settings)
    for batch in batches:
        assert sender.send(topic, batch) == batch.num_rows
    producer.commit_transaction(30)
    sender.close()


def received(lab: Lab, topic: str) -> list[Record]:
    ends = {p: end for (_, p), end in lab.kafka.ends({topic: PARTITIONS}).items()}
    return lab.kafka.read(topic, {}, ends)


def test_columns_are_possible_here() -> None:
    listener = Trouble()
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, "error_cb": listener})
    assert native.is_available(producer, listener)
    assert not native.is_available(producer, Trouble())  # as if confluent-kafka kept something else there


def test_nothing_and_null_are_two_things(lab: Lab) -> None:
    topic = lab.topic("nulls", PARTITIONS)
    sent(lab, topic, messages(key=[b"k", None, b"", b"x"], value=[None, b"v", b"", b"y"], partition=[1] * 4))
    found = [(record.key, record.value, record.partition) for record in received(lab, topic)]
    assert found == [(b"k", None, 1), (None, b"v", 1), (b"", b"", 1), (b"x", b"y", 1)]


def test_nothing_but_empty_values(lab: Lab) -> None:
    topic = lab.topic("empty", PARTITIONS)
    sent(lab, topic, messages(value=[b"", b""], partition=[0, 0]), messages(value=[]))
    assert [record.value for record in received(lab, topic)] == [b"", b""]


def test_a_part_of_a_batch(lab: Lab) -> None:
    topic = lab.topic("slices", PARTITIONS)
    whole = messages(key=[b"a", None, b"c", b"d"], value=[b"1", b"2", None, b"4"], partition=[0, 1, 2, 0])
    sent(lab, topic, whole.slice(1, 2))
    found = {record.partition: (record.key, record.value) for record in received(lab, topic)}
    assert found == {1: (None, b"2"), 2: (b"c", None)}


def test_keys_lie_where_row_by_row_they_would(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [b"key-%d" % i for i in range(100)]
    found = []
    for in_columns in (True, False):
        monkeypatch.setattr(native, "is_available", lambda *_, in_columns=in_columns: in_columns)
        topic = lab.topic("keys", PARTITIONS)
        sent(lab, topic, messages(key=keys, value=keys))
        found.append({record.key: record.partition for record in received(lab, topic)})
    assert found[0] == found[1]
    assert set(found[0].values()) == {0, 1, 2}


def test_rows_that_name_their_topic(lab: Lab) -> None:
    topics = [lab.topic("a", PARTITIONS), lab.topic("b", PARTITIONS)]
    names = [topics[1], topics[0], topics[1], topics[0]]
    sent(lab, topics[0], messages(value=[b"1", b"2", b"3", b"4"], topic=names, partition=[0] * 4))
    assert [[record.value for record in received(lab, topic)] for topic in topics] == [[b"2", b"4"], [b"1", b"3"]]


@pytest.mark.parametrize("buffer", ["4096", "33554432"])
def test_order_stays_where_the_client_has_little_room(lab: Lab, monkeypatch: pytest.MonkeyPatch, buffer: str) -> None:
    monkeypatch.setattr(produce, "ROWS_AT_ONCE", 70)
    topic = lab.topic("order", PARTITIONS)
    numbers = [b"%d" % i * (400 if i == 150 else 1) for i in range(1000)]
    batches = [messages(value=numbers[i : i + 300], partition=[0] * len(numbers[i : i + 300])) for i in (0, 300, 600)]
    sent(lab, topic, *batches, messages(value=numbers[900:], partition=[0] * 100), **{"buffer.memory": buffer})
    assert [record.value for record in received(lab, topic)] == numbers


def test_what_the_client_refuses(lab: Lab) -> None:
    topic = lab.topic("refused", PARTITIONS)
    with pytest.raises(KafkaException, match="Unknown partition"):
        sent(lab, topic, messages(value=[b"x", b"a"], partition=[0, 7]))
    with pytest.raises(KafkaException) as large:
        sent(lab, topic, messages(value=[b"a", b"b" * 2000]), **{"max.request.size": "1000"})
    assert large.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
