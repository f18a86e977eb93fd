"""A large batch takes another way through Python; the rows are the same, also where only some messages can go it."""

from __future__ import annotations

import pytest
from kafka_lab import Lab

from headwater.connectors.kafka import source
from headwater.testing.kafka import Record

COLUMNS = "s STRING, n BIGINT, d DECIMAL(6, 2), at TIMESTAMP(3), o BIGINT METADATA FROM 'offset' VIRTUAL"
ORDINARY = 9  # so many in the first partition; behind them unusual ones, and bad ones, in the second
MESSAGES = {
    "json": [
        *(b'{"s":"a%d","n":%d,"d":1.5,"at":"2024-01-01 00:00:0%d"}' % (i, i, i) for i in range(ORDINARY)),
        *(b'{"s":"q","n":"7"}', b'[{"s":"x","n":1},{"s":"y","n":2}]', b"[]", b"{}", b'{"n":"seven"}', b"nothing"),
    ],
    "csv": [
        *(b'a%d,%d,1.5,"2024-01-01 00:00:0%d"' % (i, i, i) for i in range(ORDINARY)),
        *(b'"a""b",1,2,2024-01-01 00:00:00', b"q,7", b"q,7,x,", b"nothing", b"a,b,c,d,e,f"),
    ],
    "avro": [
        *(b"\x02\x02a\x02%c\x02\x04\x00\x96\x02\x80\x00" % (2 * i) for i in range(ORDINARY)),
        *(b"\x00\x00\x00\x00", b"\x02\x02\xff\x00\x00\x00", b"\x00\x00\x00\x00\x00", b"\x02", b"\x04\x00\x00\x00"),
    ],
}


@pytest.mark.parametrize("name", MESSAGES)
def test_rows_are_the_same(lab: Lab, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    topic = lab.topic("in", 2)
    lab.kafka.produce(Record(topic, None, value, min(1, i // ORDINARY)) for i, value in enumerate(MESSAGES[name]))
    options = {"topic": topic, "format": name, "scan__startup__mode": "earliest-offset", "scan__bad_records": "skip"}
    session = lab.session()
    session.sql(lab.ddl("t", COLUMNS, **options))
    small = sorted(map(str, session.table("t").collect()))
    monkeypatch.setattr(source, "MANY_MESSAGES", 1)
    assert sorted(map(str, session.table("t").collect())) == small
    assert len(small) > ORDINARY
