"""Changelog formats against Flink's own bytes and rows, and what is Headwater's own."""

from __future__ import annotations

from base64 import b64decode
from datetime import datetime
from typing import Any

import pytest
from golden_changes import Changes, flinks, golden_changes, read, table, written
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FORMATS = ("debezium-json", "canal-json", "maxwell-json", "ogg-json")
CASES = [case for name in FORMATS for case in golden_changes(name)]

_A, _B = [1, "a", "1.50", 10], [2, "b", "2.25", 11]
_MORNING = datetime(2024, 1, 2, 3, 4, 5, 678000)  # noqa: DTZ001 - a timestamp without time zone
_MILLIS = 1704164645678

# Where Headwater reads otherwise than Flink 2.2, and why.
DIFFERS: dict[tuple[str, str], dict[str, Any]] = {
    ("debezium-json", "operations"): {"[]": []},  # an empty array holds no message
    # 'source.table' is the collection where there is one
    ("debezium-json", "metadata"): {
        '"collection":"docs"': [["+I", [*_A, None, None, None, None, None, "docs", [["collection", "docs"]]]]]
    },
    ("debezium-json", "schema included"): {'{"payload":null}': []},  # what Kafka Connect makes of a tombstone
    # Flink looks for a column in the old values of all rows, where each row has its own
    ("canal-json", "operations"): {
        '[{"name":"z"},{"price":"9"}]': [
            ["-U", [1, "z", "1.50", 10]],
            ["+U", _A],
            ["-U", [2, "b", "9.00", 11]],
            ["+U", _B],
        ],
        '[{"qty":"5"},{"name":"y"}]': [
            ["-U", [1, "a", "1.50", 5]],
            ["+U", _A],
            ["-U", [3, "y", "3.00", None]],
            ["+U", [3, "c", "3.00", None]],
        ],
    },
}


def _name(case: Changes) -> str:
    return f"{case.format} {case.name}"


@pytest.mark.parametrize("case", [c for c in CASES if c.encode], ids=_name)
def test_writes_what_flink_writes(format_spark: SparkSession, case: Changes) -> None:
    assert written(format_spark, case, case.encode) == list(case.encoded)


@pytest.mark.parametrize("case", [c for c in CASES if c.decode], ids=_name)
def test_reads_what_flink_reads(format_spark: SparkSession, case: Changes) -> None:
    differs = DIFFERS.get((case.format, case.name), {})
    ours = read(format_spark, case, [m.encode() for m in case.decode])
    used = set()
    for message, flink, own in zip(case.decode, flinks(case), ours, strict=True):
        found = next((key for key in differs if key in message), None)
        used.add(found)
        wanted = flink if found is None else differs[found]
        if isinstance(wanted, dict):
            assert isinstance(own, dict), f"{message}: {own}"
        else:
            assert own == wanted, message
    assert used >= set(differs)


def _created(row: str) -> bytes:
    return f'{{"op":"c","after":{row}}}'.encode()


@pytest.mark.parametrize(
    ("column", "options", "value", "wanted"),
    [
        ("DATE", {}, "19724", "2024-01-02"),
        ("DATE", {}, "-1", "1969-12-31"),
        ("DATE", {}, '"2024-01-02"', "2024-01-02"),
        ("TIMESTAMP(3)", {}, _MILLIS, _MORNING),
        ("TIMESTAMP(6)", {}, _MILLIS * 1000 + 7, _MORNING.replace(microsecond=678007)),
        ("TIMESTAMP(6)", {"time__precision__mode": "connect"}, _MILLIS, _MORNING),
        ("TIMESTAMP(3)", {"time__precision__mode": "microseconds"}, _MILLIS * 1000, _MORNING),
        ("TIMESTAMP(3)", {"time__precision__mode": "nanoseconds"}, _MILLIS * 1_000_000, _MORNING),
        ("TIMESTAMP(3)", {"time__precision__mode": "isostring"}, '"2024-01-02T03:04:05.678Z"', _MORNING),
        ("TIMESTAMP(3)", {}, '"2024-01-02 03:04:05.678"', _MORNING),
        ("TIMESTAMP_LTZ(3)", {}, '"2024-01-02T03:04:05.678Z"', _MORNING),
        ("TIMESTAMP_LTZ(6)", {}, '"2024-01-02T05:04:05.678+02:00"', _MORNING),
        ("TIMESTAMP_LTZ(6)", {}, _MILLIS * 1000, _MORNING),
        ("TIME(3)", {}, "11045678", 11045678),
        ("TIME(3)", {"time__precision__mode": "adaptive_time_microseconds"}, "11045678000", 11045678),
        ("DECIMAL(10, 2)", {}, '"12.34"', "12.34"),
        ("DECIMAL(10, 2)", {}, "12.34", "12.34"),
        ("DECIMAL(10, 2)", {"decimal__handling__mode": "precise"}, '"BNI="', "12.34"),
        ("DECIMAL(10, 2)", {"decimal__handling__mode": "precise"}, '"+y4="', "-12.34"),
        ("DECIMAL(10, 2)", {"decimal__handling__mode": "precise"}, '{"scale": 3, "value": "MEg="}', "12.36"),
        ("DECIMAL(10, 2)", {"decimal__handling__mode": "precise"}, '{"value": "+w==", "scale": -2}', "-500.00"),
        ("DECIMAL(38, 0)", {"decimal__handling__mode": "precise"}, '"Sztmh6v8zQtHxL0KGg=="', None),
    ],
)
def test_values_as_debezium_encodes_them(
    format_spark: SparkSession, column: str, options: dict[str, str], value: Any, wanted: Any
) -> None:
    case = table("debezium-json", f"x {column}", **options)
    [answer] = read(format_spark, case, [_created(f'{{"x":{value}}}')])
    if wanted is None:  # what bytes of such a length stand for is known to Python
        raw = b64decode(str(value).strip('"'))
        wanted = str(int.from_bytes(raw, "big", signed=True))
    assert answer == [["+I", [wanted]]]


@pytest.mark.parametrize(
    ("column", "options", "value"),
    [
        ("DECIMAL(10, 2)", {}, '"BNI="'),
        ("DECIMAL(3, 2)", {"decimal__handling__mode": "precise"}, '"BNI="'),  # 12.34 has four digits
        ("DECIMAL(10, 2)", {"decimal__handling__mode": "precise"}, '"12.34"'),
        ("DECIMAL(10, 2)", {"decimal__handling__mode": "precise"}, '{"scale": 3}'),
        ("DECIMAL(10, 2)", {"decimal__handling__mode": "precise"}, '{"scale": -2147483648, "value": "BNI="}'),
        ("DECIMAL(3, 2)", {"decimal__handling__mode": "precise"}, '{"scale": 2, "value": "BNI="}'),
        ("DECIMAL(38, 0)", {"decimal__handling__mode": "precise"}, '"Sztmh8jnpMZZsB8R///8GA=="'),  # 39 digits
        ("DATE", {}, '"Tuesday"'),
        ("DATE", {}, '"19724\\u2028"'),
        ("TIME(3)", {}, "86400000"),
        ("TIMESTAMP(3)", {}, '"19724"x'),
        ("TIMESTAMP_LTZ(3)", {}, '"2024-01-02T03:04:05"'),
    ],
)
def test_values_that_are_no_such_thing(
    format_spark: SparkSession, column: str, options: dict[str, str], value: str
) -> None:
    [answer] = read(format_spark, table("debezium-json", f"x {column}", **options), [_created(f'{{"x":{value}}}')])
    assert isinstance(answer, dict)


def test_an_error_names_the_very_field(format_spark: SparkSession) -> None:
    case = table("debezium-json", "id INT, pos ROW<x INT, y INT>")
    [answer] = read(format_spark, case, [_created('{"id":1,"pos":{"x":1,"y":"north"}}')])
    assert answer == {"error": "Fail to deserialize at field: after.pos.y. north is not INT."}


def test_only_wanted_fields_are_read(format_spark: SparkSession) -> None:
    case = table("debezium-json", "id INT, a INT, b STRING")
    [answer] = read(format_spark, case, [_created('{"id":1,"a":"no number","b":"x"}')], ["id", "b"])
    assert answer == [["+I", [1, "x"]]]


def test_a_message_without_payload_is_no_tombstone(format_spark: SparkSession) -> None:
    case = table("debezium-json", "id INT", schema_include="true")
    assert read(format_spark, case, [b'{"op":"c"}', b'{"schema":null,"payload":null}'])[1] == []
    [answer] = read(format_spark, case, [b'{"op":"c","after":{"id":1}}'])
    assert isinstance(answer, dict)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("debezium-json", '{"before":{"id":1,"n":"a"},"after":{"id":1,"n":"b"},"op":"u"}'),
        ("ogg-json", '{"before":{"id":1,"n":"a"},"after":{"id":1,"n":"b"},"op_type":"U"}'),
        ("maxwell-json", '{"data":{"id":1,"n":"b"},"old":{"id":1,"n":"a"},"type":"update"}'),
        ("canal-json", '{"data":[{"id":1,"n":"b"}],"old":[{"id":1,"n":"a"}],"type":"UPDATE"}'),
    ],
)
def test_an_update_in_one_message_is_read_as_it_was_written(format_spark: SparkSession, name: str, wanted: str) -> None:
    case = table(name, "id INT, n STRING", encode__update_as_one_message="true")
    assert case.reader.writes_updates(case.options)
    [message] = written(format_spark, case, [[[1, "a"], [1, "b"]]])
    assert message == wanted
    assert read(format_spark, case, [message.encode()]) == [[["-U", [1, "a"]], ["+U", [1, "b"]]]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("maxwell-json", '{"type":"update","data":{"id":1,"n":"b\t"},"old":{"n":"a"}}'),
        ("canal-json", '{"type":"UPDATE","data":[{"id":1,"n":"b\t"}],"old":[{"n":"a"}]}'),
    ],
)
def test_an_update_with_a_control_character(format_spark: SparkSession, name: str, message: str) -> None:
    """It was read, but not what was there before: the new row was retracted."""
    assert read(format_spark, table(name, "id INT, n STRING"), [message.encode()]) == [
        [["-U", [1, "a"]], ["+U", [1, "b\t"]]]
    ]


@pytest.mark.parametrize(
    ("name", "metadata", "message"),
    [
        ("debezium-json", "ingestion-timestamp", '{"op":"c","after":{"id":1},"ts_ms":%d}'),
        ("debezium-json", "source.timestamp", '{"op":"c","after":{"id":1},"source":{"ts_ms":%d}}'),
        ("canal-json", "event-timestamp", '{"type":"INSERT","data":[{"id":"1"}],"es":%d}'),
        ("maxwell-json", "ingestion-timestamp", '{"type":"insert","data":{"id":1},"ts":%d}'),
    ],
)
def test_a_time_of_a_message_that_is_none(format_spark: SparkSession, name: str, metadata: str, message: str) -> None:
    """It once stopped the job."""
    numbers = [0, 2**63 - 1, -(2**63)]
    answers = read(format_spark, table(name, "id INT", [metadata]), [(message % n).encode() for n in numbers])
    assert answers == [[["+I", [1, datetime(1970, 1, 1)]]], *[[["+I", [1, None]]]] * 2]  # noqa: DTZ001
