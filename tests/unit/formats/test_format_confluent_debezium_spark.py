"""debezium-avro-confluent: changes in Debezium's envelope, as Flink and as Debezium write them."""

from __future__ import annotations

import json

import pytest
from registered import MakeRegistered, record

pytestmark = pytest.mark.spark


def test_changes(registered_table: MakeRegistered) -> None:
    """A nullable record around the rows, as Flink registers it; updates are a delete and an insert, or one message."""
    own = registered_table("id INT NOT NULL, name STRING", "debezium-avro-confluent")
    inserted, deleted = own.changes((None, [1, "a"]), ([1, "a"], None))
    assert inserted[5:] == bytes.fromhex("0200020202026102") + b"\x02c"
    assert own.consumed(inserted) == {"before": None, "after": {"id": 1, "name": "a"}, "op": "c"}
    assert own.consumed(deleted) == {"before": {"id": 1, "name": "a"}, "after": None, "op": "d"}
    names = [own.latest()[1]["fields"][i]["type"][1]["name"] for i in (0, 1)]
    assert names == ["record_before", "record_after"]
    [updated] = own.changes(([1, "a"], [1, "b"]))
    assert own.consumed(updated)["op"] == "u"
    assert own.read([inserted, updated, deleted, b""]) == [
        [["+I", [1, "a"]]],
        [["-U", [1, "a"]], ["+U", [1, "b"]]],
        [["-D", [1, "a"]]],
        [],
    ]


def debezium_schema() -> str:
    """As Debezium's connectors write it: one record type for both rows, and much more beside them."""
    row = json.loads(record(("id", "int"), ("name", ["null", "string"]), name="db.shop.items.Value"))
    source = json.loads(record(("db", "string"), ("table", "string"), name="io.debezium.Source"))
    return record(
        ("before", ["null", row], None), ("after", ["null", "db.shop.items.Value"], None), ("source", source),
        ("op", "string"), ("ts_ms", ["null", "long"], None), name="db.shop.items.Envelope",
    )  # fmt: skip


def test_what_debezium_writes(registered_table: MakeRegistered) -> None:
    own = registered_table("id INT NOT NULL, name STRING", "debezium-avro-confluent")
    old, new = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
    source = {"source": {"db": "shop", "table": "items"}, "ts_ms": 1}
    told = [("r", None, old), ("u", old, new), ("d", new, None), ("u", None, new), ("c", None, None), ("t", None, None)]
    messages = own.produced(debezium_schema(), *({"op": o, "before": b, "after": a, **source} for o, b, a in told))
    answers = own.read(messages)
    assert answers[:3] == [[["+I", [1, "a"]]], [["-U", [1, "a"]], ["+U", [1, "b"]]], [["-D", [1, "b"]]]]
    said = ["REPLICA IDENTITY", '"after" field is null', 'Unknown "op" value "t"']
    assert all(words in answer["error"] for answer, words in zip(answers[3:], said, strict=True))
