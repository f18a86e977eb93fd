"""avro-confluent: messages of other writers' schemas as rows of the table, and messages that cannot be read."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, time
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema
from registered import MakeRegistered, record

pytestmark = pytest.mark.spark


def test_a_schema_evolves(registered_table: MakeRegistered) -> None:
    """Added, removed, reordered, widened, nullable and not: all in one topic, whatever the record is called."""
    own = registered_table("id BIGINT NOT NULL, name STRING, price DOUBLE, stock INT")
    messages = own.produced(record(("id", "int"), ("name", "string")), {"id": 1, "name": "axe"})
    messages += own.produced(
        record(("price", "float"), ("name", ["null", "string"]), ("id", "long"), ("colour", "string", "red"), name="B"),
        {"price": 1.5, "name": None, "id": 2, "colour": "blue"},
    )
    messages += own.produced(record(("stock", ["int", "null"]), ("id", ["null", "int"])), {"stock": 5, "id": 3})
    assert own.read(messages) == [[[1, "axe", None, None]], [[2, None, 1.5, None]], [[3, None, None, 5]]]
    assert own.read_as("elsewhere STRING, other ROW<x INT>").read(messages[:1]) == [[[None, None]]]
    [nothing] = own.produced(record(("stock", ["int", "null"]), ("id", ["null", "int"])), {"stock": 5, "id": None})
    [answer] = own.read([nothing])
    assert "Field 'id' has no value that the column can have" in answer["error"]


def test_a_schema_of_ones_own_fills_in_and_finds_what_was_renamed(registered_table: MakeRegistered) -> None:
    own = registered_table("id BIGINT NOT NULL, name STRING NOT NULL, tags ARRAY<STRING NOT NULL> NOT NULL")
    messages = own.produced(record(("id", "long"), ("label", "string")), {"id": 1, "label": "axe"})
    [answer] = own.read(messages)
    assert answer["error"].endswith("It has no field 'name', and that column is NOT NULL.")
    schema = json.loads(
        record(("id", "long"), ("name", "string", "?"), ("tags", {"type": "array", "items": "string"}, ["new"]))
    )
    plain = own.read_as(own.columns, schema=json.dumps(schema))
    assert plain.read(messages) == [[[1, "?", ["new"]]]]
    schema["fields"][1]["aliases"] = ["label"]
    assert own.read_as(own.columns, schema=json.dumps(schema)).read(messages) == [[[1, "axe", ["new"]]]]


def long(meaning: str) -> dict[str, str]:
    return {"type": "long", "connect.name" if "." in meaning else "logicalType": meaning}


def decimals(precision: int, scale: int, **kind: Any) -> dict[str, Any]:
    return {"type": "bytes", **kind, "logicalType": "decimal", "precision": precision, "scale": scale}


TIME = "io.debezium.time."
ZONED = {"type": "string", "connect.name": f"{TIME}ZonedTimestamp"}
POINT = json.loads(record(("x", "int"), ("y", "int"), name="Point"))
UUID = "123e4567-e89b-12d3-a456-426614174000"
at = datetime.fromisoformat

# Column, type in the writer's schema, what is written, what is read.
LOGICAL: list[tuple[str, Any, Any, Any]] = [
    ("TIMESTAMP(3)", long("timestamp-micros"), 1_000_000, at("1970-01-01T00:00:01")),
    ("TIMESTAMP(3)", long("local-timestamp-millis"), -1, at("1969-12-31T23:59:59.999")),
    ("TIMESTAMP_LTZ(3)", long("local-timestamp-micros"), 5, at("1970-01-01T00:00:00.000005")),
    ("TIMESTAMP(3)", "long", 1_000, at("1970-01-01T00:00:01")),
    ("TIMESTAMP(3)", long(f"{TIME}Timestamp"), 1_000, at("1970-01-01T00:00:01")),
    ("TIMESTAMP(6)", long(f"{TIME}MicroTimestamp"), 7, at("1970-01-01T00:00:00.000007")),
    ("TIMESTAMP(6)", long(f"{TIME}NanoTimestamp"), -1, at("1969-12-31T23:59:59.999999")),
    ("TIMESTAMP_LTZ(6)", ZONED, "2024-01-01T02:00:00.5+02:00", at("2024-01-01T00:00:00.500")),
    ("TIMESTAMP(3)", ZONED, "2024-01-01T00:00:00Z", at("2024-01-01T00:00:00")),
    ("BIGINT", long("timestamp-millis"), 12, 12),
    ("TIME(3)", long("time-micros"), 1_999, 1),
    ("TIME(3)", {"type": "int", "connect.name": f"{TIME}Time"}, 5, 5),
    ("DATE", {"type": "int", "connect.name": f"{TIME}Date"}, 1, "1970-01-02"),
    ("INT", {"type": "int", "logicalType": "date"}, 3, 3),
    ("DECIMAL(10, 2)", decimals(4, 1), b"\x00\x7b", "12.30"),
    ("DECIMAL(5, 1)", decimals(12, 4), b"\x30\x39", "1.2"),
    ("DECIMAL(4, 2)", decimals(4, 2, type="fixed", name="F", size=3), b"\xff\xff\xfe", "-0.02"),
    ("DECIMAL(4, 2)", "bytes", b"\x05", "0.05"),
    ("STRING", {"type": "string", "logicalType": "uuid"}, UUID, UUID),
    ("STRING", {"type": "enum", "name": "E", "symbols": ["RED", "BLUE"]}, "BLUE", "BLUE"),
    ("STRING", "bytes", b"abc", "abc"),
    ("BYTES", "string", "abc", "616263"),
    ("BYTES", {"type": "fixed", "name": "F", "size": 2}, b"\x01\x02", "0102"),
    ("DOUBLE", ["null", "int", "string"], 4, 4.0),
    ("STRING", ["null", "int", "string"], "four", "four"),
    ("ARRAY<BIGINT>", {"type": "array", "items": ["int", "null"]}, [1, None], [1, None]),
    ("ARRAY<TINYINT>", {"type": "array", "items": "int"}, [1, 2], [1, 2]),
    ("MULTISET<STRING>", {"type": "map", "values": "int"}, {"a": 2}, [["a", 2]]),
    ("MAP<STRING, SMALLINT>", {"type": "map", "values": "int"}, {"a": 2}, [["a", 2]]),
    ("ROW<y SMALLINT, x INT, w TIME(0)>", POINT, {"x": 1, "y": 2}, [2, 1, None]),
    (
        "DECIMAL(6, 3)",
        json.loads(record(("scale", "int"), ("value", "bytes"), name="io.debezium.data.VariableScaleDecimal")),
        {"scale": 2, "value": b"\xff\x38"},
        "-2.000",
    ),
]


def avro_plain(schema: Any) -> Any:
    """Without what makes Confluent's serializer expect other values than numbers."""
    if isinstance(schema, dict) and "logicalType" in schema:
        return {k: v for k, v in schema.items() if k not in {"logicalType", "precision", "scale"}}
    return schema


def test_what_a_type_means_is_in_the_writers_schema(registered_table: MakeRegistered) -> None:
    """All in one message; its bytes are made without the meanings, which are not in them."""
    names = [f"c{i}" for i in range(len(LOGICAL))]
    own = registered_table(", ".join(f"{n} {kind}" for n, (kind, *_) in zip(names, LOGICAL, strict=True)))

    def named(schema: Any, label: str) -> Any:
        alike = isinstance(schema, dict) and schema.get("name", "") in {"E", "F"}
        return {**schema, "name": f"{schema['name']}_{label}"} if alike else schema

    members = [(n, named(schema, n)) for n, (_, schema, *_) in zip(names, LOGICAL, strict=True)]
    values = {n: value for n, (_, _, value, _) in zip(names, LOGICAL, strict=True)}
    [message] = own.produced(record(*((n, avro_plain(s)) for n, s in members)), values)
    meant = own.client.register_schema(f"{own.topic}-value", Schema(record(*members), "AVRO"))
    [answer] = own.read([b"\0" + meant.to_bytes(4, "big") + message[5:]])
    assert isinstance(answer, list), answer
    [row] = answer
    for (kind, schema, *_), got, wanted in zip(LOGICAL, row, [wanted for *_, wanted in LOGICAL], strict=True):
        assert got == wanted, f"{schema} as {kind}"


def test_what_does_not_fit_is_a_bad_message_that_says_why(registered_table: MakeRegistered) -> None:
    own = registered_table("n TINYINT, p DECIMAL(3, 2), t TIME(3), r ROW<x INT NOT NULL>")
    fits = {"n": 1, "p": None, "t": None, "r": None}
    types = {"n": "int", "p": decimals(9, 2), "t": long("time-micros")}
    nullable = [(name, ["null", kind]) for name, kind in types.items()]
    schema = record(*nullable, ("r", ["null", json.loads(record(("x", ["null", "int"]), name="R"))]))
    wrong = [{"n": 300}, {"p": Decimal("123.45")}, {"r": {"x": None}}]
    good, *bad = own.produced(schema, fits, *({**fits, **w} for w in wrong))
    answers = own.read([good, *bad])
    assert answers[0] == [[1, None, None, None]]
    assert [a["error"].split(" has ")[0] for a in answers[1:]] == ["Field 'n'", "Field 'p'", "Field 'r'"]
    for kind, theirs, said in [
        ("n INT", "string", "Field 'n' is a string there, and INT in the table."),
        ("n INT", "long", "Field 'n' is a long there, and INT in the table."),
        ("n BOOLEAN", ["null", "int"], "Field 'n' is a null or int there, and BOOLEAN in the table."),
        ("n DATE", {"type": "int", "logicalType": "time-millis"}, "is an int (time-millis) there, and DATE"),
        ("n ROW<x DATE>", json.loads(record(("x", "string"), name="R")), "Field 'n.x' is a string there, and DATE"),
    ]:
        other = registered_table(kind)
        value = {"x": "a"} if "ROW" in kind else "a" if theirs == "string" else time(1) if "DATE" in kind else 1
        [answer] = other.read(other.produced(record(("n", theirs)), {"n": value}))
        assert said in answer["error"]
        assert "does not fit the table" in answer["error"]


def test_broken_messages(registered_table: MakeRegistered) -> None:
    own = registered_table("i INT, s STRING")
    [good] = own.written([[1, "text"]])
    broken = [b"", b"\x01\x00\x00\x00\x01", b'{"i": 1}', b"\x00\x00", good[:7], b"\x00\x7f\xff\xff\xff\x00", good[:5]]
    said = ["empty", "first byte is 01", "first byte is 7B", "cut off", "no record of schema"]
    said += ["The registry has no schema with the id 2147483647.", "no record of schema"]
    answers = own.read([good, *broken])
    assert answers[0] == [[1, "text"]]
    for answer, words in zip(answers[1:], said, strict=True):
        assert words in answer["error"]


def test_no_bytes_break_the_decoders(registered_table: MakeRegistered) -> None:
    """Mutated messages: a row is only what another reader of the same bytes finds too."""
    for format_name in ("avro-confluent", "debezium-avro-confluent"):
        own = registered_table("i INT, s STRING", format_name)
        if format_name == "avro-confluent":
            seeds = own.written([[1234, "text"], [None, None]])
        else:
            seeds = own.changes((None, [1, "a"]), ([1, "a"], None))
        dice = Random(format_name)
        messages = [bytes(dice.randrange(256) for _ in range(dice.randrange(1, 30))) for _ in range(50)]
        for _ in range(250):
            message = bytearray(dice.choice(seeds))
            for _ in range(dice.choice([1, 1, 2, 4])):
                place = dice.randrange(len(message) + 1) if dice.random() < 0.1 else dice.randrange(5, len(message) + 6)
                message[place : place + dice.randrange(2)] = bytes(
                    dice.randrange(256) for _ in range(dice.randrange(3))
                )
            messages.append(bytes(message) or b"\0")
        answers = own.read(messages)
        assert any(isinstance(a, dict) for a in answers)
        assert any(not isinstance(a, dict) for a in answers)
        for message, answer in zip(messages, answers, strict=True):
            if not isinstance(answer, dict) and format_name == "avro-confluent":
                [[number, text]] = answer
                with suppress(UnicodeDecodeError):  # bytes that are no text are of no interest here
                    assert own.consumed(message) == {"i": number, "s": text}


def test_numbers_that_are_no_times(registered_table: MakeRegistered) -> None:
    """They once stopped the job, whatever its table said of bad records."""
    own = registered_table("t TIME(3), n TIMESTAMP(6)")
    types = {"t": long("time-micros"), "n": long(f"{TIME}NanoTimestamp")}
    values = [{"t": 2**62, "n": 0}, {"t": -(2**63), "n": 0}, {"t": 0, "n": -(2**63)}]
    messages = own.produced(record(*((name, avro_plain(kind)) for name, kind in types.items())), *values)
    meant = own.client.register_schema(f"{own.topic}-value", Schema(record(*types.items()), "AVRO"))
    large, small, least = own.read([b"\0" + meant.to_bytes(4, "big") + message[5:] for message in messages])
    assert "Field 't' has no value" in large["error"]
    assert "Field 't' has no value" in small["error"]
    assert least == [[0, at("1677-09-21T00:12:43.145224")]]


@pytest.mark.parametrize("format_name", ["avro-confluent", "debezium-avro-confluent"])
def test_a_string_that_is_no_utf8_is_replaced_as_in_java(registered_table: MakeRegistered, format_name: str) -> None:
    own = registered_table("s STRING", format_name)
    [message] = own.written([["ab"]]) if format_name == "avro-confluent" else own.changes((None, ["ab"]))
    [answer] = own.read([message.replace(b"ab", b"a\xff")])
    assert answer == ([["a\ufffd"]] if format_name == "avro-confluent" else [["+I", ["a\ufffd"]]])
