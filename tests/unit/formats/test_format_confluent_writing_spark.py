"""avro-confluent: what is written, against Flink's bytes and schema and Confluent's own client."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema
from golden_rows import golden_cases
from registered import MakeRegistered, record

pytestmark = pytest.mark.spark

at = datetime.fromisoformat


FLINKS = [case for case in golden_cases("avro") if case.options["timestamp_mapping.legacy"] and case.name[:4] != "json"]


@pytest.mark.parametrize("case", FLINKS, ids=lambda case: case.name)
def test_the_bytes_behind_the_header_are_flinks(registered_table: MakeRegistered, case: Any) -> None:
    own = registered_table(", ".join(f"`{f.name}` {f.type}" for f in case.fields))
    messages = own.written(case.encode)
    assert len({message[:5] for message in messages}) == 1
    assert [message[5:] for message in messages] == case.encoded


COLUMNS = (
    "b BOOLEAN, t TINYINT, i INT, l BIGINT, f FLOAT, d DOUBLE, s STRING, y BYTES, n DECIMAL(10, 2), day DATE, "
    "clock TIME(3), at TIMESTAMP(3), fine TIMESTAMP(6), z TIMESTAMP_LTZ(3), a ARRAY<INT>, m MAP<STRING, BIGINT>, "
    "r ROW<x INT, y ROW<z STRING>>, must INT NOT NULL"
)
ROW = [True, 1, 2, 3, 1.5, 2.5, "täxt", "0102", "1.25", "2024-01-02", 3661001, "2024-01-01T01:02:03.004"]
ROW += ["2024-01-01T01:02:03.004005", "2024-01-01T01:02:03.004", [1, None], [["k", 5]], [1, ["z"]], 7]


def test_what_is_written_another_program_reads(registered_table: MakeRegistered) -> None:
    own = registered_table(COLUMNS)
    message, nulls = own.written([ROW, [None] * 17 + [8]])
    moment = datetime(2024, 1, 1, 1, 2, 3, 4000, timezone.utc)
    assert own.consumed(message) == {
        "b": True,
        "t": 1,
        "i": 2,
        "l": 3,
        "f": 1.5,
        "d": 2.5,
        "s": "täxt",
        "y": b"\x01\x02",
        "n": Decimal("1.25"),
        "day": date(2024, 1, 2),
        "clock": time(1, 1, 1, 1000),
        "at": moment,
        "fine": moment.replace(microsecond=4005),
        "z": moment,
        "a": [1, None],
        "m": {"k": 5},
        "r": {"x": 1, "y": {"z": "z"}},
        "must": 7,
    }
    assert set(own.consumed(nulls).values()) == {None, 8}
    answers = own.read([message, nulls])
    local = at("2024-01-01T01:02:03.004")
    assert answers[0] == [[*ROW[:11], local, local.replace(microsecond=4005), local, *ROW[14:]]]
    assert answers[1] == [[None] * 17 + [8]]


def test_the_schema_is_the_one_that_flink_registers(registered_table: MakeRegistered) -> None:
    own = registered_table("id BIGINT NOT NULL, r ROW<x INT NOT NULL>, at TIMESTAMP(3), clock TIME(0)")
    own.written([[1, [1], None, None]])
    assert json.dumps(own.latest(), separators=(",", ":")) == (
        '{"type":"record","name":"record","namespace":"org.apache.flink.avro.generated","fields":['
        '{"name":"id","type":"long"},'
        '{"name":"r","type":["null",{"type":"record","name":"record_r","fields":[{"name":"x","type":"int"}]}],'
        '"default":null},'
        '{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-millis"}],"default":null},'
        '{"name":"clock","type":["null",{"type":"int","logicalType":"time-millis"}],"default":null}]}'
    )


def test_writing_with_a_schema_of_ones_own(registered_table: MakeRegistered) -> None:
    """Its order, its names, its enums and fixed ones; a symbol that it has not stops the job with a sentence."""
    enum = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}
    schema = record(
        ("colour", [enum, "null"]),
        ("id", "long"),
        ("hash", {"type": "fixed", "name": "Hash", "size": 2}),
        ("fine", {"type": "long", "logicalType": "local-timestamp-micros"}),
        ("clock", {"type": "long", "logicalType": "time-micros"}),
        ("colours", {"type": "array", "items": "Colour"}),
    )
    columns = "id BIGINT NOT NULL, colour STRING, hash BINARY(2) NOT NULL, fine TIMESTAMP(6) NOT NULL, "
    own = registered_table(f"{columns}clock TIME(3) NOT NULL, colours ARRAY<STRING NOT NULL> NOT NULL", schema=schema)
    row = [1, "BLUE", "0102", "2024-01-01T00:00:00.000001", 5, ["RED"]]
    [message] = own.written([row])
    assert own.latest() == json.loads(schema)
    theirs = own.consumed(message)
    assert (theirs["colour"], theirs["hash"], theirs["colours"]) == ("BLUE", b"\x01\x02", ["RED"])
    assert (theirs["fine"], theirs["clock"]) == (at(row[3]), time(0, 0, 0, 5000))
    assert own.read([message])[0][0] == [*row[:3], at(row[3]), 5, ["RED"]]
    wrong = [(1, "GREEN", "GREEN is none of the symbols RED, BLUE"), (2, "010203", "it has 3 bytes")]
    for place, value, said in wrong:
        with pytest.raises(Exception, match=said):
            own.written([[*row[:place], value, *row[place + 1 :]]])


def test_a_value_that_is_no_record(registered_table: MakeRegistered) -> None:
    """As keys often are: it is the only column."""
    own = registered_table("id STRING")
    messages = own.produced('{"type": "string"}', "a")
    union = own.client.register_schema(f"{own.topic}-value", Schema('["null", "string"]', "AVRO"))
    messages.append(b"\0" + union.to_bytes(4, "big") + b"\0")
    assert own.read(messages) == [[["a"]], [[None]]]
    other = registered_table("id BIGINT NOT NULL", schema='"long"')
    [message] = other.written([[5]])
    assert other.consumed(message) == 5
    [answer] = own.read_as("id STRING, more INT").read(messages[:1])
    assert "It is a string, not a record." in answer["error"]
