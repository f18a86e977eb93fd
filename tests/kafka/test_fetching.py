"""What workers fetch themselves is what the range holds, whatever lies in it and behind it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from kafka_lab import Lab

from headwater.connectors.kafka import consume
from headwater.connectors.kafka.consume import Range, client_settings, fetching, split_evenly
from headwater.errors import DataLossError, KafkaRefusedError, KafkaUnavailableError
from headwater.testing.kafka import Record

SCHEMA = pa.schema([("value", pa.binary()), ("offset", pa.int64())])
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def fetched(lab: Lab, *ranges: Range, schema: pa.Schema = SCHEMA, **properties: str) -> list[dict[str, object]]:
    client = client_settings({"bootstrap.servers": lab.kafka.bootstrap_servers, **properties})
    assert client is not None
    places = pa.RecordBatch.from_pydict({"id": list(range(len(ranges)))})
    batches = fetching(ranges, client, schema)([places])
    return [row for batch in batches for row in batch.to_pylist()]


def offsets(rows: list[dict[str, object]]) -> list[object]:
    return [row["offset"] for row in rows]


def test_a_range_ends_where_it_ends(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consume, "AT_ONCE", 7)
    topic = lab.topic("ranges", 2)
    for partition in (0, 1):
        lab.produce(topic, [{"n": n} for n in range(50)], partition)
    rows = fetched(lab, Range(topic, 0, 10, 31), Range(topic, 1, 45, 50), Range(topic, 0, 31, 32))
    assert offsets(rows) == [*range(10, 31), *range(45, 50), 31]
    assert rows[0]["value"] == b'{"n": 10}'


def test_offsets_without_messages(lab: Lab) -> None:
    topic = lab.topic("transactions")
    lab.produce(topic, [{"n": 0}])
    lab.transaction(topic, [{"n": 1}, {"n": 2}], commit=False)
    lab.transaction(topic, [{"n": 4}], commit=True)
    end = 6  # a mark ends each transaction
    assert offsets(fetched(lab, Range(topic, 0, 0, end))) == [0, 1, 2, 4]
    committed = {"isolation.level": "read_committed"}
    assert offsets(fetched(lab, Range(topic, 0, 0, end), **committed)) == [0, 4]
    assert offsets(fetched(lab, Range(topic, 0, 1, 4), **committed)) == []
    assert offsets(fetched(lab, Range(topic, 0, 5, 6), **committed)) == []


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
    first, second = fetched(lab, Range(topic, 0, 0, 2), schema=schema)
    assert [first["key"], first["value"], first["topic"], first["partition"]] == [b"", None, topic, 0]
    assert [str(first["timestamp"]), first["timestampType"]] == ["2024-01-01 00:00:00.120000+00:00", 0]
    assert first["headers"] == [{"key": k, "value": v} for k, v in headers]
    assert [second["key"], second["value"], second["headers"]] == [None, b"v", None]


def test_messages_that_are_gone(lab: Lab) -> None:
    topic = lab.topic("gone")
    lab.produce(topic, [{"n": n} for n in range(10)])
    admin = AdminClient({"bootstrap.servers": lab.kafka.bootstrap_servers})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 5)]).values():
        deleted.result()
    with pytest.raises(DataLossError, match=f"topic '{topic}', partition 0, offsets 2 to 9"):
        fetched(lab, Range(topic, 0, 2, 10))
    assert offsets(fetched(lab, Range(topic, 0, 5, 10))) == [5, 6, 7, 8, 9]


def test_no_topic_and_no_broker(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consume, "SILENCE_SECONDS", 1.0)
    with pytest.raises((KafkaRefusedError, KafkaUnavailableError), match="no-such-topic"):
        fetched(lab, Range("no-such-topic", 0, 0, 10))
    with pytest.raises(KafkaUnavailableError, match="does not answer"):
        fetched(lab, Range("any", 0, 0, 10), **{"bootstrap.servers": "127.0.0.1:1"})


def test_properties_that_the_client_does_not_know_leave_it_to_spark() -> None:
    servers = {"bootstrap.servers": "127.0.0.1:1"}
    assert client_settings(servers) is not None
    assert client_settings({**servers, "interceptor.classes": "com.example.Audit"}) is None
    assert client_settings({**servers, "fetch.min.bytes": "many"}) is None


@pytest.mark.parametrize("count", [1, 2, 3, 7, 1000])
def test_ranges_split_evenly_hold_the_same(count: int) -> None:
    ranges = [Range("t", 0, 5, 105), Range("t", 1, 0, 3), Range("u", 0, 7, 7)]
    parts = split_evenly(ranges, count)
    assert len(parts) <= count + len(ranges)
    held = {(p.topic, p.partition, o) for p in parts for o in range(p.begin, p.end)}
    assert held == {(r.topic, r.partition, o) for r in ranges for o in range(r.begin, r.end)}
    assert sum(p.end - p.begin for p in parts) == len(held)
