"""Registered records read in columns: whatever is accepted is read as the expressions do, message by message."""

from __future__ import annotations

import pyarrow as pa
import pytest
from column_reading import arrow_types, check_alike, mutated, reader_of
from confluent_kafka.schema_registry import Schema
from golden_rows import Golden
from pyspark.sql import SparkSession
from registered import Registered, record

from headwater.testing.registry import SchemaRegistry

pytestmark = pytest.mark.spark

COLUMNS = (
    "b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, s STRING, y BYTES, n DECIMAL(10, 2), day DATE, at TIMESTAMP(3), "
    "fine TIMESTAMP(6), z TIMESTAMP_LTZ(3), must INT NOT NULL"
)
MOMENT = "2024-01-01T01:02:03.004"
ROWS = [
    [True, 2, -3, 1.5, 2.5, "täxt", "0102", "1.25", "2024-01-02", MOMENT, f"{MOMENT}005", MOMENT, 7],
    [*[None] * 12, 8],
]
PIECES = (b"", b"\x00", b"\x02", b"\x04", b"\xff", b"a")


@pytest.fixture
def table(format_spark: SparkSession, schema_registry: SchemaRegistry) -> Registered:
    return Registered(format_spark, schema_registry.url, COLUMNS)


def checked(table: Registered, messages: list[bytes]) -> set[bytes]:
    """Those that were read in columns, which were read alike."""
    table.format.before_reading(table.options)
    table.format.learn(table.options, [message[:5] for message in messages])
    golden = Golden(table.format_name, "own", table.fields, table.options, [], [], [], [])
    return set(check_alike(table.spark, golden, messages)) if reader_of(golden) is not None else set()


def test_own_messages(table: Registered) -> None:
    messages = table.written(ROWS)
    assert set(messages) <= checked(table, [*messages, *(b"\0\0", b""), *mutated(messages, PIECES, 3, 200)])


def test_columns_that_the_writer_does_not_have_and_others_that_it_has(table: Registered) -> None:
    schema = record(
        ("extra", "string"), ("l", "int"), ("d", ["long", "null"]), ("must", "int"), ("s", ["null", "bytes"])
    )
    rows = [
        {"extra": "x", "l": 1, "d": 2, "must": 3, "s": b"4"},
        {"extra": "", "l": -1, "d": None, "must": 0, "s": None},
    ]
    messages = table.produced(schema, *rows)
    assert checked(table, messages) == set(messages)


def test_moments_of_all_units(table: Registered) -> None:
    moments = table.read_as("a TIMESTAMP(6), b TIMESTAMP_LTZ(6), c TIMESTAMP(3)")
    millis, micros = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
    messages = moments.produced(
        record(("a", micros), ("b", millis), ("c", "long")), {"a": 5, "b": 1704067200123, "c": -1}
    )
    assert checked(moments, messages) == set(messages)


@pytest.mark.parametrize(
    "field",
    [
        ("i", {"type": "enum", "name": "E", "symbols": ["A"]}),
        ("i", ["int", "string"]),
        ("extra", {"type": "array", "items": "int"}),
        ("n", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}),
        ("at", {"type": "long", "logicalType": "timestamp-nanos"}),
    ],
)
def test_what_is_more_than_plain_values_has_no_layout(table: Registered, field: tuple[str, object]) -> None:
    table.client.register_schema(f"{table.topic}-value", _avro(record(field, ("must", "int"))))
    table.format.before_reading(table.options)
    assert reader_of(Golden(table.format_name, "own", table.fields, table.options, [], [], [], [])) is None


def test_messages_of_two_schemas_are_left_to_the_expressions(table: Registered) -> None:
    (one,) = table.produced(record(("must", "int")), {"must": 1})
    (other,) = table.produced(record(("must", "int"), ("i", ["null", "int"], None)), {"must": 1, "i": 2})
    assert checked(table, [one, other]) == {one, other}
    reader = reader_of(Golden(table.format_name, "own", table.fields, table.options, [], [], [], []))
    assert reader is not None
    assert reader.read(pa.array([one, one]), arrow_types(reader)) is not None
    assert reader.read(pa.array([one, other]), arrow_types(reader)) is None


def _avro(schema: str) -> Schema:
    return Schema(schema, "AVRO")
