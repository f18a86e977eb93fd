"""avro-confluent and debezium-avro-confluent against a real registry, Confluent's own client and Flink's bytes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, time, timezone
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema
from confluent_kafka.schema_registry.common.schema_registry_client import SchemaReference
from golden_rows import golden_cases
from pyspark.sql import SparkSession
from registered import Registered, record

from headwater.errors import RegistryRefusedError, ValidationError
from headwater.testing.registry import SchemaRegistry

pytestmark = pytest.mark.spark

Make = Callable[..., Registered]


@pytest.fixture
def table(format_spark: SparkSession, schema_registry: SchemaRegistry) -> Make:
    """A table with a topic of its own; '-' in options is written as '_'."""

    def make(columns: str, format_name: str = "avro-confluent", **given: str) -> Registered:
        options = {key.replace("_", "-"): value for key, value in given.items()}
        return Registered(format_spark, schema_registry.url, columns, format_name, options)

    return make


FLINKS = [case for case in golden_cases("avro") if case.options["timestamp_mapping.legacy"] and case.name[:4] != "json"]


@pytest.mark.parametrize("case", FLINKS, ids=lambda case: case.name)
def test_the_bytes_behind_the_header_are_flinks(table: Make, case: Any) -> None:
    own = table(", ".join(f"`{f.name}` {f.type}" for f in case.fields))
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


def test_what_is_written_another_program_reads(table: Make) -> None:
    own = table(COLUMNS)
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


def test_the_schema_is_the_one_that_flink_registers(table: Make) -> None:
    own = table("id BIGINT NOT NULL, r ROW<x INT NOT NULL>, at TIMESTAMP(3), clock TIME(0)")
    own.written([[1, [1], None, None]])
    assert json.dumps(own.latest(), separators=(",", ":")) == (
        '{"type":"record","name":"record","namespace":"org.apache.flink.avro.generated","fields":['
        '{"name":"id","type":"long"},'
        '{"name":"r","type":["null",{"type":"record","name":"record_r","fields":[{"name":"x","type":"int"}]}],'
        '"default":null},'
        '{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-millis"}],"default":null},'
        '{"name":"clock","type":["null",{"type":"int","logicalType":"time-millis"}],"default":null}]}'
    )


def test_a_schema_evolves(table: Make) -> None:
    """Added, removed, reordered, widened, nullable and not: all in one topic, whatever the record is called."""
    own = table("id BIGINT NOT NULL, name STRING, price DOUBLE, stock INT")
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


def test_a_schema_of_ones_own_fills_in_and_finds_what_was_renamed(table: Make) -> None:
    own = table("id BIGINT NOT NULL, name STRING NOT NULL, tags ARRAY<STRING NOT NULL> NOT NULL")
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


def test_what_a_type_means_is_in_the_writers_schema(table: Make) -> None:
    """All in one message; its bytes are made without the meanings, which are not in them."""
    names = [f"c{i}" for i in range(len(LOGICAL))]
    own = table(", ".join(f"{n} {kind}" for n, (kind, *_) in zip(names, LOGICAL, strict=True)))

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


def test_what_does_not_fit_is_a_bad_message_that_says_why(table: Make) -> None:
    own = table("n TINYINT, p DECIMAL(3, 2), t TIME(3), r ROW<x INT NOT NULL>")
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
        other = table(kind)
        value = {"x": "a"} if "ROW" in kind else "a" if theirs == "string" else time(1) if "DATE" in kind else 1
        [answer] = other.read(other.produced(record(("n", theirs)), {"n": value}))
        assert said in answer["error"]
        assert "does not fit the table" in answer["error"]


def test_broken_messages(table: Make) -> None:
    own = table("i INT, s STRING")
    [good] = own.written([[1, "text"]])
    broken = [b"", b"\x01\x00\x00\x00\x01", b'{"i": 1}', b"\x00\x00", good[:7], b"\x00\x7f\xff\xff\xff\x00", good[:5]]
    said = ["empty", "first byte is 01", "first byte is 7B", "cut off", "no record of schema"]
    said += ["The registry has no schema with the id 2147483647.", "no record of schema"]
    answers = own.read([good, *broken])
    assert answers[0] == [[1, "text"]]
    for answer, words in zip(answers[1:], said, strict=True):
        assert words in answer["error"]


def test_no_bytes_break_the_decoders(table: Make) -> None:
    """Mutated messages: a row is only what another reader of the same bytes finds too."""
    for format_name in ("avro-confluent", "debezium-avro-confluent"):
        own = table("i INT, s STRING", format_name)
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


def test_a_schema_that_refers_to_others(table: Make) -> None:
    own = table("r ROW<x INT>, q ROW<x INT>")
    part, whole = f"part-{uuid.uuid4().hex[:8]}", f"{own.topic}-value"
    own.client.register_schema(part, Schema(record(("x", "int"), name="a.Part"), "AVRO"))
    schema = Schema(
        record(("r", "a.Part"), ("q", "a.Part"), name="b.Whole"), "AVRO", [SchemaReference("a.Part", part, 1)]
    )
    number = own.client.register_schema(whole, schema)
    assert own.read([b"\0" + number.to_bytes(4, "big") + b"\x02\x04"]) == [[[[1], [2]]]]


def test_a_schema_that_is_not_avro(table: Make) -> None:
    own = table("i INT")
    theirs = '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}'
    number = own.client.register_schema(f"{own.topic}-value", Schema(theirs, "JSON"))
    [answer] = own.read([b"\0" + number.to_bytes(4, "big") + b"\x02"])
    assert answer["error"] == f"Schema {number} of the registry is JSON, not Avro."


def test_writing_with_a_schema_of_ones_own(table: Make) -> None:
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
    own = table(f"{columns}clock TIME(3) NOT NULL, colours ARRAY<STRING NOT NULL> NOT NULL", schema=schema)
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


def test_a_value_that_is_no_record(table: Make) -> None:
    """As keys often are: it is the only column."""
    own = table("id STRING")
    messages = own.produced('{"type": "string"}', "a")
    union = own.client.register_schema(f"{own.topic}-value", Schema('["null", "string"]', "AVRO"))
    messages.append(b"\0" + union.to_bytes(4, "big") + b"\0")
    assert own.read(messages) == [[["a"]], [[None]]]
    other = table("id BIGINT NOT NULL", schema='"long"')
    [message] = other.written([[5]])
    assert other.consumed(message) == 5
    [answer] = own.read_as("id STRING, more INT").read(messages[:1])
    assert "It is a string, not a record." in answer["error"]


def test_auto_register_off(table: Make) -> None:
    own = table("i INT", auto_register="false")
    with pytest.raises(ValidationError, match="is not registered under the subject") as caught:
        own.written([[1]])
    assert "auto-register" in str(caught.value)
    [message] = own.read_as("i INT").written([[1]])
    assert own.written([[1]]) == [message]


def test_a_schema_that_the_registry_does_not_accept(table: Make) -> None:
    own = table("i INT NOT NULL")
    own.written([[1]])
    own.client.set_compatibility(subject_name=f"{own.topic}-value", level="BACKWARD")
    with pytest.raises(RegistryRefusedError, match="not compatible") as caught:
        own.read_as("i INT NOT NULL, more STRING NOT NULL").written([[1, "x"]])
    assert "more" in caught.value.detail


@pytest.mark.parametrize(
    ("naming", "subject"), [("topic", "{}-value"), ("record", "n.{}"), ("topic-record", "{0}-n.{0}")]
)
def test_subjects(table: Make, naming: str, subject: str) -> None:
    name = f"R{uuid.uuid4().hex[:8]}"
    own = replace(
        table("i INT NOT NULL", schema=record(("i", "int"), name=f"n.{name}"), subject_naming=naming), topic=name
    )
    [message] = own.written([[1]])
    assert own.client.get_latest_version(subject.format(name)).schema_id == int.from_bytes(message[1:5], "big")
    named = replace(own, given={**own.given, "subject": f"{name}-mine"})
    named.written([[1]])
    assert own.client.get_versions(f"{name}-mine") == [1]


def test_changes(table: Make) -> None:
    """A nullable record around the rows, as Flink registers it; updates are a delete and an insert, or one message."""
    own = table("id INT NOT NULL, name STRING", "debezium-avro-confluent")
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


def test_what_debezium_writes(table: Make) -> None:
    own = table("id INT NOT NULL, name STRING", "debezium-avro-confluent")
    old, new = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
    source = {"source": {"db": "shop", "table": "items"}, "ts_ms": 1}
    told = [("r", None, old), ("u", old, new), ("d", new, None), ("u", None, new), ("c", None, None), ("t", None, None)]
    messages = own.produced(debezium_schema(), *({"op": o, "before": b, "after": a, **source} for o, b, a in told))
    answers = own.read(messages)
    assert answers[:3] == [[["+I", [1, "a"]]], [["-U", [1, "a"]], ["+U", [1, "b"]]], [["-D", [1, "b"]]]]
    said = ["REPLICA IDENTITY", '"after" field is null', 'Unknown "op" value "t"']
    assert all(words in answer["error"] for answer, words in zip(answers[3:], said, strict=True))
