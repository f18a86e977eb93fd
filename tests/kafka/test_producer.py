"""librdkafka by its C interface: what is handed over in columns arrives as it is, in order, and no failure is missed.

This is also what notices if a new confluent-kafka or librdkafka no longer fits `write.library`.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kafka_lab import Lab

from headwater.connectors.kafka.clients.settings import producer_settings
from headwater.connectors.kafka.write import columns
from headwater.connectors.kafka.write.committed_offsets import NOTHING_COMMITTED, Committed, committed_offset
from headwater.connectors.kafka.write.librdkafka import FIELD, MESSAGE, library
from headwater.connectors.kafka.write.producer import Producer
from headwater.connectors.kafka.write.writer import open_producers, write_all
from headwater.errors import JobError
from headwater.testing.kafka import Record

PARTITIONS = 3
SECONDS = 30.0
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TYPES = {"partition": pa.int32(), "topic": pa.string(), "timestamp": pa.int64(), "headers": HEADERS}


def messages(**named: Sequence[Any]) -> pa.RecordBatch:
    names = list(named)
    return pa.RecordBatch.from_arrays([pa.array(named[n], TYPES.get(n, pa.binary())) for n in names], names)


def settings(lab: Lab, **properties: str) -> dict[str, Any]:
    return producer_settings({"bootstrap.servers": lab.kafka.bootstrap_servers, **properties})


@pytest.fixture(params=["plain", "transaction"])
def transactional(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "transaction")


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    yield
    open_producers.close_idle()


def sent(lab: Lab, topic: str, *batches: pa.RecordBatch, transactional: bool = False, **properties: str) -> None:
    more = {"transactional.id": uuid.uuid4().hex, "transaction.timeout.ms": 200_000} if transactional else {}
    producer = Producer({**settings(lab, **properties), **more})
    try:
        producer.connect(topic, SECONDS)
        if transactional:
            producer.init_transactions(SECONDS)
            producer.begin_transaction()
        for batch in batches:
            assert columns.send(producer, topic, batch) == batch.num_rows
        producer.flush(SECONDS)
        if transactional:
            producer.commit_transaction(SECONDS)
    finally:
        producer.close()


def received(lab: Lab, topic: str) -> list[Record]:
    ends = {p: end for (_, p), end in lab.kafka.ends({topic: PARTITIONS}).items()}
    return lab.kafka.read(topic, {}, ends)


def test_the_library_has_what_is_used_of_it() -> None:
    assert library() is library()
    assert (MESSAGE.itemsize, FIELD.itemsize) == (72, 72)  # rd_kafka_message_t, rd_kafka_vu_t on 64 bits


def test_nothing_and_null_are_two_things(lab: Lab, transactional: bool) -> None:
    topic = lab.topic("nulls", PARTITIONS)
    batch = messages(key=[b"k", None, b"", b"x"], value=[None, b"v", b"", b"y"], partition=[1] * 4)
    sent(lab, topic, batch, transactional=transactional)
    found = [(record.key, record.value, record.partition) for record in received(lab, topic)]
    assert found == [(b"k", None, 1), (None, b"v", 1), (b"", b"", 1), (b"x", b"y", 1)]


def test_nothing_but_empty_values(lab: Lab, transactional: bool) -> None:
    topic = lab.topic("empty", PARTITIONS)
    batches = messages(value=[b"", b""], partition=[0, 0]), messages(value=[])
    sent(lab, topic, *batches, transactional=transactional)
    assert [record.value for record in received(lab, topic)] == [b"", b""]


def test_a_part_of_a_batch(lab: Lab) -> None:
    topic = lab.topic("slices", PARTITIONS)
    whole = messages(key=[b"a", None, b"c", b"d"], value=[b"1", b"2", None, b"4"], partition=[0, 1, 2, 0])
    sent(lab, topic, whole.slice(1, 2))
    found = {record.partition: (record.key, record.value) for record in received(lab, topic)}
    assert found == {1: (None, b"2"), 2: (b"c", None)}


def test_keys_lie_where_other_clients_put_them(lab: Lab) -> None:
    keys = [b"key-%d" % i for i in range(100)]
    topics = [lab.topic("keys", PARTITIONS) for _ in range(3)]
    sent(lab, topics[0], messages(key=keys, value=keys))
    sent(lab, topics[1], messages(key=keys, value=keys, timestamp=[5] * 100))  # one by one
    lab.kafka.produce([Record(topics[2], key, key) for key in keys])
    found = [{record.key: record.partition for record in received(lab, topic)} for topic in topics]
    assert found[0] == found[1] == found[2]
    assert set(found[0].values()) == {0, 1, 2}


def test_headers_and_timestamps(lab: Lab, transactional: bool) -> None:
    topic = lab.topic("headers", PARTITIONS)
    headers = [
        [{"key": "a", "value": b"1"}, {"key": "b", "value": b""}, {"key": "a", "value": b"\0\xff"}],
        None,
        [],
        [{"key": "ä €", "value": b"x" * 1000}, {"key": "", "value": b"y"}],
    ]
    times = [1_700_000_000_000, 1_700_000_000_001, None, 1_700_000_000_003]
    whole = messages(
        key=[b"k", None, b"", b"l"], value=[b"v", None, b"", b"w"], partition=[2] * 4, headers=headers, timestamp=times
    )
    sent(lab, topic, whole, whole.slice(3, 1), transactional=transactional)
    found = received(lab, topic)
    assert [r.headers for r in found] == [
        (("a", b"1"), ("b", b""), ("a", b"\0\xff")),
        (),
        (),
        (("ä €", b"x" * 1000), ("", b"y")),
        (("ä €", b"x" * 1000), ("", b"y")),
    ]
    assert [(r.key, r.value) for r in found] == [(b"k", b"v"), (None, None), (b"", b""), (b"l", b"w"), (b"l", b"w")]
    assert [r.timestamp for r in found if r.value][0::2] == [times[0], times[3]]
    assert found[2].timestamp is not None
    assert found[2].timestamp > 1_700_000_000_003  # none was given: now


def test_rows_that_name_their_topic(lab: Lab) -> None:
    topics = [lab.topic("a", PARTITIONS), lab.topic("b", PARTITIONS)]
    names = [topics[1], topics[0], topics[1], topics[0]]
    sent(lab, topics[0], messages(value=[b"1", b"2", b"3", b"4"], topic=names, partition=[0] * 4))
    assert [[record.value for record in received(lab, topic)] for topic in topics] == [[b"2", b"4"], [b"1", b"3"]]


@pytest.mark.parametrize("extra", ["in columns", "one by one"])
@pytest.mark.parametrize("buffer", ["4096", "33554432"])
def test_order_stays_where_the_client_has_little_room(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, buffer: str, extra: str, transactional: bool
) -> None:
    monkeypatch.setattr(columns, "ROWS_AT_ONCE", 70)
    topic = lab.topic("order", PARTITIONS)
    numbers = [b"%d" % i * (400 if i == 150 else 1) for i in range(1000)]

    def part(start: int, end: int) -> pa.RecordBatch:
        more = {"timestamp": [1] * (end - start)} if extra == "one by one" else {}
        return messages(value=numbers[start:end], partition=[0] * (end - start), **more)

    batches = [part(0, 300), part(300, 600), part(600, 900), part(900, 1000)]
    sent(lab, topic, *batches, transactional=transactional, **{"buffer.memory": buffer})
    assert [record.value for record in received(lab, topic)] == numbers


def test_a_message_that_never_has_room(lab: Lab) -> None:
    topic = lab.topic("large", PARTITIONS)
    for more in ({}, {"timestamp": [1]}):
        with pytest.raises(KafkaException, match=r"larger than 'properties\.buffer\.memory'"):
            sent(lab, topic, messages(value=[b"x" * 5000], **more), **{"buffer.memory": "4096"})


def test_what_the_client_refuses(lab: Lab, transactional: bool) -> None:
    topic = lab.topic("refused", PARTITIONS)
    for more in ({}, {"timestamp": [1, 1]}):
        with pytest.raises(KafkaException, match="Unknown partition"):
            sent(lab, topic, messages(value=[b"x", b"a"], partition=[0, 7], **more), transactional=transactional)
        batch = messages(value=[b"a", b"b" * 2000], **more)
        with pytest.raises(KafkaException) as large:
            sent(lab, topic, batch, transactional=transactional, **{"max.request.size": "1000"})
        assert large.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_settings_that_the_client_does_not_know() -> None:
    with pytest.raises(KafkaException, match="No such configuration property"):
        Producer({"no.such.setting": 1})


def test_what_the_broker_refuses_later_is_noticed(lab: Lab, transactional: bool) -> None:
    topic = lab.topic("limited", PARTITIONS)
    limit_messages(lab, topic, 500)
    with pytest.raises(KafkaException) as large:
        sent(lab, topic, messages(value=[b"a", b"b" * 2000], partition=[0, 1]), transactional=transactional)
    assert large.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert "bbb" not in str(large.value)  # a message is data, which an error does not show


def test_what_was_fatal_is_the_reason_of_messages_that_fail_after_it(lab: Lab) -> None:
    """The client then drops what waits, and reports that it was dropped."""
    topic = lab.topic("fatal", PARTITIONS)
    producer = Producer({**settings(lab), "linger.ms": 60_000})  # they wait until they are flushed
    producer.connect(topic, SECONDS)
    columns.send(producer, topic, messages(value=[b"a"]))
    handle = ctypes.c_void_p(producer.handle)
    library().rd_kafka_test_fatal_error(handle, KafkaError._FENCED, b"the reason")
    library().rd_kafka_purge(handle, 0x1)  # what the client does by itself in a transaction
    with pytest.raises(KafkaException) as fatal:
        producer.flush(SECONDS)
    producer.close()
    assert fatal.value.args[0].code() == KafkaError._FENCED
    assert "the reason" in str(fatal.value)


def test_a_writer_goes_on_after_a_failure(lab: Lab) -> None:
    topic = lab.topic("failing", PARTITIONS)
    limit_messages(lab, topic, 500)
    client = settings(lab)
    with pytest.raises(JobError, match="Kafka does not take messages") as raised:
        write_all(client, topic, [messages(value=[b"b" * 2000])])
    assert "Raise 'properties.max.request.size' and the topic's 'max.message.bytes'." in str(raised.value)
    assert write_all(client, topic, [messages(value=[b"a"]), messages(value=[]), messages(value=[b"b"])]) == 2
    assert sorted(record.value or b"" for record in received(lab, topic)) == [b"a", b"b"]


def test_a_broker_that_is_not_there() -> None:
    client = {**producer_settings({"bootstrap.servers": "127.0.0.1:1"}), "message.timeout.ms": 500}
    producer = Producer(client)
    with pytest.raises(KafkaException) as raised:
        producer.connect("nowhere", 0.5)
    assert raised.value.args[0].code() in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN)
    producer.close()


def test_a_missing_topic(lab: Lab) -> None:
    client = {**settings(lab), "topic.metadata.propagation.max.ms": 500}
    with pytest.raises(JobError, match="Kafka does not take messages to topic 'no-such-topic'") as raised:
        write_all(client, "no-such-topic", [messages(value=[b"a"])])
    assert "Create the topic, or correct the table's 'topic' option." in str(raised.value)


def test_committed_offsets_have_metadata(lab: Lab) -> None:
    """When a transactional id is opened, what was committed or aborted under it before is decided, and seen."""
    topics, group = [lab.topic("committed"), lab.topic("committed")], uuid.uuid4().hex
    expected = NOTHING_COMMITTED
    wanted = [
        Committed(1, "abc"),
        Committed(2, "ä" * 100),
        Committed(7, ""),
        *(Committed(n, "d") for n in range(8, 20)),
    ]
    for committed in wanted:
        producer = Producer({**settings(lab), "transactional.id": group, "transaction.timeout.ms": 200_000})
        producer.connect(topics[0], SECONDS)
        producer.init_transactions(SECONDS)
        assert committed_offset(settings(lab), group, topics, SECONDS, "read_committed") == expected
        producer.begin_transaction()
        producer.commit_with_transaction(group, topics[0], Committed(100, "aborted"), SECONDS)
        producer.abort_transaction(SECONDS)
        producer.begin_transaction()
        producer.commit_with_transaction(group, topics[committed.offset % 2], committed, SECONDS)
        producer.commit_transaction(SECONDS)
        expected = committed
        producer.close()


def limit_messages(lab: Lab, topic: str, size: int) -> None:
    admin = AdminClient({"bootstrap.servers": lab.kafka.bootstrap_servers})
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)
