"""Messages of 10 MB: read like any other, and shown in part where they are bad."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_lab import Lab

from headwater.errors import BadRecordError

SIZE = 10_000_000
GOOD = b'{"s":"' + b"x" * SIZE + b'"}'
LIMIT = str(2 * SIZE)


@pytest.fixture
def topic(lab: Lab) -> str:
    name = lab.topic("large", create=False)
    servers = {"bootstrap.servers": lab.kafka.bootstrap_servers}
    admin = AdminClient(servers)
    for made in admin.create_topics([NewTopic(name, 1, 1, config={"max.message.bytes": LIMIT})]).values():
        made.result()
    producer = Producer({**servers, "message.max.bytes": LIMIT})
    for value in (GOOD, GOOD[:-2], b'{"s":"small"}'):  # one is truncated
        producer.produce(name, value)
        producer.flush(30)
    return name


def test_large_messages(lab: Lab, topic: str) -> None:
    options = {"topic": topic, "scan__startup__mode": "earliest-offset", "scan__bounded__mode": "latest-offset"}
    session = lab.session()
    sink = lab.topic("lengths")
    session.sql(lab.ddl("t", "s STRING", **options, scan__bad_records="skip") + lab.ddl("u", "n INT", topic=sink))
    session.sql("INSERT INTO u SELECT CHAR_LENGTH(s) FROM t")
    session.wait()
    assert lab.values(sink) == [{"n": SIZE}, {"n": 5}]
    assert session.jobs[0].progress().bad_records == 1
    strict = lab.session()
    strict.sql(lab.ddl("t", "s STRING", **options) + lab.ddl("u", "n INT", topic=sink))
    strict.sql("INSERT INTO u SELECT CHAR_LENGTH(s) FROM t")
    with pytest.raises(BadRecordError, match=f"topic '{topic}', partition 0, offset 1") as raised:
        strict.wait()
    assert len(str(raised.value)) < 2000
