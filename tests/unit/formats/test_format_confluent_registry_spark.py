"""avro-confluent: subjects, references, and schemas that the registry has, lacks or refuses."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from confluent_kafka.schema_registry import Schema
from confluent_kafka.schema_registry.common.schema_registry_client import SchemaReference
from registered import MakeRegistered, record

from headwater.errors import RegistryRefusedError, ValidationError

pytestmark = pytest.mark.spark


def test_a_schema_that_refers_to_others(registered_table: MakeRegistered) -> None:
    own = registered_table("r ROW<x INT>, q ROW<x INT>")
    part, whole = f"part-{uuid.uuid4().hex[:8]}", f"{own.topic}-value"
    own.client.register_schema(part, Schema(record(("x", "int"), name="a.Part"), "AVRO"))
    schema = Schema(
        record(("r", "a.Part"), ("q", "a.Part"), name="b.Whole"), "AVRO", [SchemaReference("a.Part", part, 1)]
    )
    number = own.client.register_schema(whole, schema)
    assert own.read([b"\0" + number.to_bytes(4, "big") + b"\x02\x04"]) == [[[[1], [2]]]]


def test_a_schema_that_is_not_avro(registered_table: MakeRegistered) -> None:
    own = registered_table("i INT")
    theirs = '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}'
    number = own.client.register_schema(f"{own.topic}-value", Schema(theirs, "JSON"))
    [answer] = own.read([b"\0" + number.to_bytes(4, "big") + b"\x02"])
    assert answer["error"] == f"Schema {number} of the registry is JSON, not Avro."


def test_auto_register_off(registered_table: MakeRegistered) -> None:
    own = registered_table("i INT", auto_register="false")
    with pytest.raises(ValidationError, match="is not registered under the subject") as caught:
        own.written([[1]])
    assert "auto-register" in str(caught.value)
    [message] = own.read_as("i INT").written([[1]])
    assert own.written([[1]]) == [message]


def test_a_schema_that_the_registry_does_not_accept(registered_table: MakeRegistered) -> None:
    own = registered_table("i INT NOT NULL")
    own.written([[1]])
    own.client.set_compatibility(subject_name=f"{own.topic}-value", level="BACKWARD")
    with pytest.raises(RegistryRefusedError, match="not compatible") as caught:
        own.read_as("i INT NOT NULL, more STRING NOT NULL").written([[1, "x"]])
    assert "more" in caught.value.detail


@pytest.mark.parametrize(
    ("naming", "subject"), [("topic", "{}-value"), ("record", "n.{}"), ("topic-record", "{0}-n.{0}")]
)
def test_subjects(registered_table: MakeRegistered, naming: str, subject: str) -> None:
    name = f"R{uuid.uuid4().hex[:8]}"
    own = replace(
        registered_table("i INT NOT NULL", schema=record(("i", "int"), name=f"n.{name}"), subject_naming=naming),
        topic=name,
    )
    [message] = own.written([[1]])
    assert own.client.get_latest_version(subject.format(name)).schema_id == int.from_bytes(message[1:5], "big")
    named = replace(own, given={**own.given, "subject": f"{name}-mine"})
    named.written([[1]])
    assert own.client.get_versions(f"{name}-mine") == [1]
