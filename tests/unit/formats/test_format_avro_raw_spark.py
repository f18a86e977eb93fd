"""Avro and raw against Flink's own bytes and rows, and what is Headwater's own."""

from __future__ import annotations

from typing import Any

import pytest
from column_reading import own_case
from golden_rows import Golden, check_decoded, check_encoded, decode, encode, expected, golden_cases, request_of
from pyspark.sql import SparkSession

from headwater.formats.base import FormatField, all_formats
from headwater.options.parsing import parse_options
from headwater.sql.parser import parse_type
from headwater.sql.types import Field, SqlType

pytestmark = pytest.mark.spark

AVRO = [c for c in golden_cases("avro") if not all_formats()["avro"].validate(c.fields, c.options)]
RAW = golden_cases("raw")


@pytest.mark.parametrize("case", [*AVRO, *RAW], ids=lambda c: f"{c.format} {c.name}")
def test_writes_what_flink_writes(format_spark: SparkSession, case: Golden) -> None:
    check_encoded(format_spark, case)


@pytest.mark.parametrize("case", [c for c in [*AVRO, *RAW] if c.decode], ids=lambda c: f"{c.format} {c.name}")
def test_reads_what_flink_reads(format_spark: SparkSession, case: Golden) -> None:
    check_decoded(format_spark, case, {})


@pytest.mark.parametrize("case", AVRO, ids=lambda c: c.name)
def test_reads_the_avro_that_flink_wrote(format_spark: SparkSession, case: Golden) -> None:
    row = SqlType("ROW", fields=tuple(Field(f.name, f.type) for f in case.fields))
    got = decode(format_spark, case, case.encoded)
    for written, [read] in zip(case.encode, got, strict=True):
        assert str(read) == str(expected(_with_scale(written, row), row))


def test_only_the_wanted_fields_of_a_record_are_read(format_spark: SparkSession) -> None:
    [case] = [c for c in AVRO if c.name == "scalars"]
    assert decode(format_spark, case, case.encoded[:1], ["c", "i"]) == [[["x", 3]]]


def test_a_record_that_is_cut_off_is_an_error_and_not_a_row_of_nulls(format_spark: SparkSession) -> None:
    [case] = [c for c in AVRO if c.name == "scalars"]
    whole, nulls = case.encoded[0], case.encoded[1]
    problem = {"error": "Failed to deserialize Avro record: it is not what the table says."}
    assert decode(format_spark, case, [whole[:-1], nulls, b""]) == [problem, [[None] * 9], problem]


@pytest.mark.parametrize(
    ("column", "row"),
    [
        ("t", [128, [], [], None]),
        ("l", [1, [1, None, 2**15], [], [None, None]]),
        ("m", [1, None, [["a", -1], ["b", -129]], None]),
        ("r", [1, [], [], [1, [[-(2**31)]]]]),
    ],
)
def test_a_number_that_is_too_large_for_its_column(format_spark: SparkSession, column: str, row: list[Any]) -> None:
    declared = "ROW<t {0}, l ARRAY<{1}>, m MAP<STRING, {0}>, r ROW<x {0}, y ARRAY<ROW<z {1}>>>>"
    large, own = (own_case("avro", declared.format(*kinds), {}) for kinds in (("INT", "INT"), ("TINYINT", "SMALLINT")))
    fits = [[127, [-(2**15), None], [["a", -128]], [None, [[2**15 - 1]]]], [None, None, None, None]]
    bad, *good = decode(format_spark, own, encode(format_spark, large, [row, *fits]))
    kind = next(f.type for f in own.fields if f.name == column)
    assert bad == {"error": f"Failed to deserialize Avro record: a number of column '{column}' does not fit {kind}."}
    assert good == decode(format_spark, large, encode(format_spark, large, fits))


@pytest.mark.parametrize(
    "message",
    [
        b'{"region":"a","n":1,"p":2}',
        b'{"region":"a","n":1,"p":{"int":2}}',
        b'{"region":"a","n":"one","p":null}',
        b'{"region":"a","p":null}',
        b'{"region":"a","n":1,"p":null',
        b"",
        b"12",
    ],
)
def test_json_that_is_not_the_record_is_an_error(format_spark: SparkSession, message: bytes) -> None:
    [case] = [c for c in AVRO if c.name == "json not null"]
    [answer] = decode(format_spark, case, [message])
    assert isinstance(answer, dict)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("TIMESTAMP(3)", '{"long":9223372036854775807}'),
        ("TIMESTAMP_LTZ(3)", '{"long":-9223372036854775808}'),
        ("BYTES", '{"bytes":"a\\u2028"}'),
        ("DECIMAL(4, 2)", '{"bytes":"a\\u2028"}'),
    ],
)
def test_json_that_stands_for_nothing_is_an_error(format_spark: SparkSession, column: str, value: str) -> None:
    """It once stopped the job, whatever its table said of bad records."""
    case = own_case("avro", f"ROW<x {column}>", {"encoding": "json", "timestamp_mapping.legacy": "false"})
    good, bad = decode(format_spark, case, [b'{"x":null}', f'{{"x":{value}}}'.encode()])
    assert good == [[None]]
    assert isinstance(bad, dict)


def _with_scale(value: object, kind: SqlType) -> object:
    """Decimals that come out have all digits of their type."""
    if isinstance(value, list) and kind.name == "ROW":
        return [_with_scale(v, f.type) for v, f in zip(value, kind.fields, strict=True)]
    if isinstance(value, list) and kind.element is not None and kind.name == "ARRAY":
        return [_with_scale(v, kind.element) for v in value]
    if isinstance(value, str) and kind.name == "DECIMAL":
        whole, _, fraction = value.partition(".")
        return f"{whole}.{fraction.ljust(kind.scale or 0, '0')}"
    return value


@pytest.mark.parametrize("kind", ["INT", "STRING", "DOUBLE", "BOOLEAN"])
def test_no_message_is_a_raw_null(format_spark: SparkSession, kind: str) -> None:
    options = dict(parse_options(all_formats()["raw"].options, {}, "raw").values)
    case = Golden("raw", "own", (FormatField("x", parse_type(kind)),), options, [], [], [], [])
    assert decode(format_spark, case, [None]) == [[[None]]]


@pytest.mark.parametrize(
    ("charset", "data", "text", "encoded"),
    [
        ("US-ASCII", b"a\xff", "a\ufffd", b"a?"),
        ("ISO-8859-1", b"a\xff", "aÿ", b"a\xff"),
        ("UTF-16BE", b"\x00a\xdc\x00", "a\ufffd", b"\x00a\xff\xfd"),
        ("UTF-16LE", b"a\x00b", "a\ufffd", b"a\x00\xfd\xff"),
    ],
)
def test_what_a_charset_lacks_is_replaced(
    format_spark: SparkSession, charset: str, data: bytes, text: str, encoded: bytes
) -> None:
    """As Java does. Such a message once stopped the job, whatever its table said of bad records."""
    options = dict(parse_options(all_formats()["raw"].options, {"charset": charset}, "raw").values)
    case = Golden("raw", "own", (FormatField("x", parse_type("STRING")),), options, [], [], [], [])
    assert decode(format_spark, case, [data]) == [[[text]]]
    assert encode(format_spark, case, [[text]]) == [encoded]


def test_lines_of_a_message_are_rows(format_spark: SparkSession) -> None:
    for charset in ("UTF-8", "UTF-16BE"):
        given = {"line-delimiter": "||", "charset": charset}
        options = dict(parse_options(all_formats()["raw"].options, given, "raw").values)
        case = Golden("raw", "own", (FormatField("x", parse_type("STRING")),), options, [], [], [], [])
        messages = [m.encode(charset) for m in ("a||bé", "a||", "||", "a||||b")]
        rows = [[["a"], ["bé"]], [["a"]], [[""]], [["a"], [""], ["b"]], []]
        assert decode(format_spark, case, [*messages, None]) == rows
        assert encode(format_spark, case, [["bé"], [None]]) == ["bé||".encode(charset), None]


@pytest.mark.parametrize(("format_name", "message"), [("avro", b"\x02\x04a\xff"), ("raw", b"a\xff")])
def test_a_string_that_is_no_utf8_is_replaced_as_in_java(
    format_spark: SparkSession, format_name: str, message: bytes
) -> None:
    """Whoever reads such a string in Python would fail, and the job stop. Rows that are collected do not show it."""
    decoder = all_formats()[format_name].decoder(request_of(own_case(format_name, "ROW<s STRING>", {}), ["s"]))
    frame = format_spark.sql(f"SELECT X'{message.hex()}' AS value")
    for name, sql in decoder.steps("p"):
        frame = frame.selectExpr("*", f"{sql} AS {name}")
    assert frame.selectExpr(f"{decoder.columns[0]} AS s").toArrow().column("s").to_pylist() == ["a\ufffd"]
