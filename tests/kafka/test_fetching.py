"""What workers fetch is what the splits hold, in their order, whatever lies in them and behind them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from kafka_lab import Lab

from headwater.connectors.kafka.read import consumer
from headwater.connectors.kafka.read.fetch import Fetch, _chunks, client_settings
from headwater.connectors.kafka.read.progress import OnDataLoss
from headwater.connectors.kafka.read.splits import KafkaSplit
from headwater.errors import DataLossError, KafkaRefusedError, KafkaUnavailableError
from headwater.testing.kafka import Record

SCHEMA = pa.schema([("value", pa.binary()), ("partition", pa.int32()), ("offset", pa.int64())])
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batches(
    lab: Lab,
    splits: Sequence[KafkaSplit],
    schema: pa.Schema = SCHEMA,
    *,
    on_loss: OnDataLoss = "fail",
    chunk_rows: int = 7,
    chunk_bytes: int = 1 << 20,
    **properties: str,
) -> list[pa.RecordBatch]:
    client = client_settings({"bootstrap.servers": lab.kafka.bootstrap_servers, **properties})
    assert client is not None
    return list(Fetch(client, on_loss, chunk_rows, chunk_bytes)(splits, schema))


def places(found: list[pa.RecordBatch]) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for batch in found for row in batch.to_pylist()]


def offsets(found: list[pa.RecordBatch]) -> list[int]:
    return [offset for _, offset in places(found)]


def test_splits_come_one_after_the_other(lab: Lab) -> None:
    topic = lab.topic("splits", 4)
    for partition in range(4):
        lab.produce(topic, [{"n": n} for n in range(50)], partition)
    splits = [
        KafkaSplit(topic, 0, 10, 31),  # more than a chunk: alone
        KafkaSplit(topic, 1, 45, 48),  # these three together
        KafkaSplit(topic, 2, 0, 1),
        KafkaSplit(topic, 3, 7, 9),
        KafkaSplit(topic, 0, 31, 32),  # the same partition once more
    ]
    wanted = [(s.partition, offset) for s in splits for offset in range(s.first, s.end)]
    for chunk_rows in (1, 7, 1000):
        found = batches(lab, splits, chunk_rows=chunk_rows)
        assert places(found) == wanted
        assert [batch.num_rows for batch in found[:-1]] == [chunk_rows] * (len(found) - 1)
    assert found[0].column("value")[0].as_py() == b'{"n": 10}'


def test_large_messages_are_cut_alike_each_time(lab: Lab) -> None:
    topic = lab.topic("large", 3)
    for partition in range(3):
        lab.kafka.produce(Record(topic, None, b"x" * (n * 37 % 400), partition) for n in range(100))
    splits = [KafkaSplit(topic, p, 5, 95) for p in range(3)]
    first = batches(lab, splits, chunk_rows=300, chunk_bytes=1000)
    assert len(first) > 40
    assert places(first) == [(p, offset) for p in range(3) for offset in range(5, 95)]
    small = {"max.partition.fetch.bytes": "1500"}
    for wait in ("1", "100"):
        assert batches(lab, splits, chunk_rows=300, chunk_bytes=1000, **{"fetch.max.wait.ms": wait, **small}) == first


@pytest.mark.parametrize(("rows", "size"), [(7, 1 << 20), (300, 1000), (7, 1000)])
def test_where_chunks_end_does_not_depend_on_what_arrives_together(rows: int, size: int) -> None:
    values = [b"x" * (n * 37 % 400) for n in range(100)]
    whole = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary()), "offset": range(100)})
    wanted = list(_chunks([whole], rows, size))
    assert len(wanted) > 10
    for together in (1, 3, 10, 64):
        arrivals = [whole.slice(start, together) for start in range(0, 100, together)]
        assert list(_chunks(arrivals, rows, size)) == wanted


def test_offsets_without_messages(lab: Lab) -> None:
    topic = lab.topic("transactions")
    lab.produce(topic, [{"n": 0}])
    lab.transaction(topic, [{"n": 1}, {"n": 2}], commit=False)
    lab.transaction(topic, [{"n": 4}], commit=True)
    end = 6  # a mark ends each transaction
    assert offsets(batches(lab, [KafkaSplit(topic, 0, 0, end)])) == [0, 1, 2, 4]
    committed = {"isolation.level": "read_committed"}
    assert offsets(batches(lab, [KafkaSplit(topic, 0, 0, end)], **committed)) == [0, 4]
    assert offsets(batches(lab, [KafkaSplit(topic, 0, 1, 4)], **committed)) == []
    assert offsets(batches(lab, [KafkaSplit(topic, 0, 5, 6)], **committed)) == []


def test_all_that_a_message_has(lab: Lab) -> None:
    topic = lab.topic("whole")
    headers = (("a", b"1"), ("b", None), ("a", b""))
    lab.kafka.produce([Record(topic, b"", None, 0, 1704067200120, headers), Record(topic, None, b"v", 0, 5)])
    schema = pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("timestamp", pa.timestamp("us", "UTC")),
            ("timestampType", pa.int32()),
            ("headers", HEADERS),
        ]
    )
    [batch] = batches(lab, [KafkaSplit(topic, 0, 0, 2)], schema)
    first, second = batch.to_pylist()
    assert [first["key"], first["value"], first["topic"], first["partition"]] == [b"", None, topic, 0]
    assert [str(first["timestamp"]), first["timestampType"]] == ["2024-01-01 00:00:00.120000+00:00", 0]
    assert first["headers"] == [{"key": k, "value": v} for k, v in headers]
    assert [second["key"], second["value"], second["headers"]] == [None, b"v", None]


def test_messages_that_are_gone(lab: Lab) -> None:
    topic = lab.topic("gone", 2)
    for partition in (0, 1):
        lab.produce(topic, [{"n": n} for n in range(10)], partition)
    admin = AdminClient({"bootstrap.servers": lab.kafka.bootstrap_servers})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 5)]).values():
        deleted.result()
    with pytest.raises(DataLossError, match=f"topic '{topic}', partition 0, offsets 2 to 9"):
        batches(lab, [KafkaSplit(topic, 0, 2, 10)])
    assert offsets(batches(lab, [KafkaSplit(topic, 0, 5, 10)])) == [5, 6, 7, 8, 9]
    both = [KafkaSplit(topic, 0, 2, 7), KafkaSplit(topic, 1, 8, 10)]
    for chunk_rows in (1, 100):
        left = places(batches(lab, both, on_loss="continue", chunk_rows=chunk_rows))
        assert left == [(0, 5), (0, 6), (1, 8), (1, 9)]
    assert batches(lab, [KafkaSplit(topic, 0, 1, 3)], on_loss="continue") == []
    assert batches(lab, [KafkaSplit(topic, 0, 20, 30)], on_loss="continue") == []  # of a topic that was longer
    assert batches(lab, [KafkaSplit(f"{topic}-deleted", 0, 0, 3)], on_loss="continue") == []


def test_who_is_given_up_in_the_middle_disturbs_nobody(lab: Lab) -> None:
    topic = lab.topic("given-up")
    lab.produce(topic, [{"n": n} for n in range(50)])
    client = client_settings({"bootstrap.servers": lab.kafka.bootstrap_servers})
    assert client is not None
    reading = Fetch(client, chunk_rows=7)
    for _ in range(3):
        given_up = reading([KafkaSplit(topic, 0, 0, 50)], SCHEMA)
        next(given_up)
        given_up.close()
        assert offsets(list(reading([KafkaSplit(topic, 0, 20, 40)], SCHEMA))) == list(range(20, 40))


def test_no_topic_and_no_broker(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "SILENCE_SECONDS", 1.0)
    with pytest.raises((KafkaRefusedError, KafkaUnavailableError), match="no-such-topic"):
        batches(lab, [KafkaSplit("no-such-topic", 0, 0, 10)])
    with pytest.raises(KafkaUnavailableError, match="does not answer"):
        batches(lab, [KafkaSplit("any", 0, 0, 10)], **{"bootstrap.servers": "127.0.0.1:1"})


def test_properties_that_the_client_does_not_know_leave_it_to_spark() -> None:
    servers = {"bootstrap.servers": "127.0.0.1:1"}
    assert client_settings(servers) is not None
    assert client_settings({**servers, "interceptor.classes": "com.example.Audit"}) is None
    assert client_settings({**servers, "fetch.min.bytes": "many"}) is None
