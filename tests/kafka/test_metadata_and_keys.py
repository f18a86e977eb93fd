"""Metadata as the declared types, and what keys do: whichever columns a query uses."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from kafka_lab import Lab

from headwater.testing.kafka import Record

EARLIEST = {"scan__startup__mode": "earliest-offset"}


def test_metadata_is_cast_to_the_declared_type(lab: Lab) -> None:
    topic = lab.topic("metadata")
    headers = (("a", b"1"), ("b", b"2"), ("a", b"3"))
    lab.kafka.produce([Record(topic, None, b'{"n":1}', 0, 1704067200120, headers)])
    columns = {
        "topic VARCHAR(4) METADATA VIRTUAL": topic[:4],
        "p STRING METADATA FROM 'partition' VIRTUAL": "0",
        "o DECIMAL(10, 2) METADATA FROM 'offset' VIRTUAL": Decimal("0.00"),
        "t STRING METADATA FROM 'timestamp' VIRTUAL": "2024-01-01 00:00:00.120",
        "ts TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL": dt.datetime.fromisoformat("2024-01-01 00:00:00.120"),
        "d DATE METADATA FROM 'timestamp' VIRTUAL": dt.date(2024, 1, 1),
        "h MAP<STRING, STRING> METADATA FROM 'headers' VIRTUAL": {"a": "3", "b": "2"},
        "l ARRAY<ROW<k STRING, v STRING>> METADATA FROM 'header-list' VIRTUAL": [("a", "1"), ("b", "2"), ("a", "3")],
        "e INT METADATA FROM 'leader-epoch' VIRTUAL": None,
        "kind STRING METADATA FROM 'timestamp-type' VIRTUAL": "CreateTime",
    }
    [row] = lab.table(", ".join(["n INT", *columns]), topic=topic, **EARLIEST)
    assert list(row) == [1, *columns.values()]


def test_keys_and_values_that_are_not_there_give_no_row_whatever_is_selected(lab: Lab) -> None:
    topic = lab.topic("keys")
    full = Record(topic, b'{"a":1,"b":2}', b'{"a":9,"v":3}', 0)
    lab.kafka.produce([full, Record(topic, None, b'{"v":4}', 0), Record(topic, b'{"a":5,"b":6}', None, 0)])
    session = lab.session()
    options = {"topic": topic, "key__format": "json", "key__fields": "b; a", **EARLIEST}
    session.sql(lab.ddl("t", "a INT, b INT, v INT, o BIGINT METADATA FROM 'offset' VIRTUAL", **options))
    # The value has the last word about 'a', which is in both.
    assert [tuple(row) for row in session.table("t").collect()] == [(9, None, 3, 0)]
    session.sql(
        lab.ddl(
            "u", "a INT, b INT, v INT, PRIMARY KEY (b, a) NOT ENFORCED", connector="upsert-kafka", topic=topic
        ).replace("'raw'", "'json'")
    )
    assert sorted(tuple(row) for row in session.table("u").collect()) == [(1, 2, 3)]
    sinks = {"values_only": ("v", "v INT"), "keys_only": ("b", "b INT"), "places_only": ("o", "o BIGINT")}
    for name, (column, declared) in sinks.items():
        sink = lab.topic(name.replace("_", "-"))
        bounded = lab.session()
        options |= {"value__fields_include": "EXCEPT_KEY", "scan__bounded__mode": "latest-offset"}
        bounded.sql(lab.ddl("t", "a INT, b INT, v INT, o BIGINT METADATA FROM 'offset' VIRTUAL", **options))
        bounded.sql(lab.ddl("s", declared, topic=sink) + f"INSERT INTO s SELECT {column} FROM t")
        bounded.wait()
        assert lab.values(sink) == [{column: {"v": 3, "b": 2, "o": 0}[column]}]
