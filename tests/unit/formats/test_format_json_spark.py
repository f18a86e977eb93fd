"""JSON against Flink's own bytes and rows, and what is Headwater's own."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from golden_rows import ERROR, Golden, check_decoded, check_encoded, decode, encode, golden_cases
from pyspark.sql import SparkSession

from headwater.formats.base import FormatField, all_formats
from headwater.options.parsing import parse_options
from headwater.sql.parser import parse_type

pytestmark = pytest.mark.spark

_NOON = datetime(2020, 1, 1, 12, 34, 56)  # noqa: DTZ001 - a timestamp without time zone

# Where Headwater reads otherwise than Flink 2.2, and why.
DIFFERS: dict[str, dict[bytes, Any]] = {
    "scalars": {
        b'{"i":"112.013"}': [[None, None, None, 112, None, None, None, None]],  # as Flink does without the quotes
        b"  ": [],  # nothing but blanks is nothing
    },
    # Flink takes an array in an array for one, and what it has read of one that is cut off
    "arrays ignore errors": {b'[[{"i":1}]]': [], b'[{"i":1}': []},
    # Flink loses its place in the message after a wrong value that is an object
    "scalars ignore errors": {b'{"i":{"x":1},"c":"b"}': [[None, None, "b", None]]},
    "times": {
        # both ways to write a timestamp are read, and the time of a day may be short of something
        b'{"n":"2020-01-01T12:34:56"}': [[None, None, _NOON, None, None]],
        b'{"n":"2020-01-01"}': [[None, None, datetime(2020, 1, 1), None, None]],  # noqa: DTZ001
        b'{"n":"2020-01-01 12:34"}': [[None, None, _NOON.replace(second=0), None, None]],
        b'{"n":" 2020-01-01 12:34:56"}': [[None, None, _NOON, None, None]],
        b'{"z":"2020-01-01T12:34:56Z"}': [[None, None, None, None, _NOON]],
        # there is no such day, and no such hour
        b'{"n":"2020-02-30 00:00:00"}': ERROR,
        b'{"m":"2020-01-01 24:00:00"}': ERROR,
    },
    "times iso": {
        b'{"n":"2020-01-01 12:34:56"}': [[None, _NOON, None, None]],
        b'{"z":"2020-01-01 12:34:56Z"}': [[None, None, None, _NOON]],
    },
}


@pytest.mark.parametrize("case", [c for c in golden_cases("json") if c.encode], ids=lambda c: c.name)
def test_writes_what_flink_writes(format_spark: SparkSession, case: Golden) -> None:
    check_encoded(format_spark, case)


@pytest.mark.parametrize("case", [c for c in golden_cases("json") if c.decode], ids=lambda c: c.name)
def test_reads_what_flink_reads(format_spark: SparkSession, case: Golden) -> None:
    check_decoded(format_spark, case, DIFFERS.get(case.name, {}))


def _case(columns: str, **options: str) -> Golden:
    row = parse_type(f"ROW<{columns}>")
    declared = all_formats()["json"].options
    values = dict(parse_options(declared, {k.replace("_", "-"): v for k, v in options.items()}, "json").values)
    return Golden("json", "own", tuple(FormatField(f.name, f.type) for f in row.fields), values, [], [], [], [])


def test_times_of_a_day_keep_their_milliseconds(format_spark: SparkSession) -> None:
    case = _case("t TIME(3)")
    assert encode(format_spark, case, [[45296789], [45296700]]) == [b'{"t":"12:34:56.789"}', b'{"t":"12:34:56.7"}']
    assert decode(format_spark, case, [b'{"t":"12:34:56.1"}', b'{"t":"12:34:56.123456789"}']) == [
        [[45296100]],
        [[45296123]],
    ]


def test_characters_beyond_16_bits_are_written_as_they_are(format_spark: SparkSession) -> None:
    case = _case("s STRING")
    assert encode(format_spark, case, [["😀"]]) == ['{"s":"😀"}'.encode()]


def test_only_the_wanted_fields_are_checked(format_spark: SparkSession) -> None:
    case = _case("a INT, b INT, c STRING")
    assert decode(format_spark, case, [b'{"a":1,"b":"x","c":"y"}'], ["c", "a"]) == [[["y", 1]]]


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b'{"a":"x"}', "Fail to deserialize at field: a. x is not INT."),
        (b'{"r":{"t":"25:00:00"}}', "Fail to deserialize at field: r.t. 25:00:00 is not TIME(0)."),
        (b'{"z":12345}', "Fail to deserialize at field: z. 12345 is not TIMESTAMP_LTZ(3)."),
        (b'{"a":1', "It is not a JSON object."),
        (b"null", "It is not a JSON object."),
        (b'{"s":"\xff"}', "Fail to deserialize at field: s. bytes that are not UTF-8 is not STRING."),
    ],
)
def test_an_error_names_the_field_and_what_it_holds(format_spark: SparkSession, message: bytes, problem: str) -> None:
    case = _case("a INT, r ROW<t TIME>, z TIMESTAMP_LTZ(3), s STRING")
    assert decode(format_spark, case, [message]) == [{"error": problem}]


def test_a_missing_field_is_named(format_spark: SparkSession) -> None:
    case = _case("a INT, r ROW<x INT>", fail_on_missing_field="true")
    messages = [b'{"r":{"x":1}}', b'{"a":1,"r":{}}', b'{"a":"1","r":{"x":1}}', b'{"a":"1"}']
    assert decode(format_spark, case, messages) == [
        {"error": "Could not find field with name 'a'."},
        {"error": "Could not find field with name 'r.x'."},
        [[1, [1]]],
        {"error": "Could not find field with name 'r'."},
    ]


def test_a_field_may_be_called_like_our_own(format_spark: SparkSession) -> None:
    case = _case("_bad INT, _bad_ STRING, `a.b` INT, `a$b` STRING")
    message = b'{"_bad":1,"_bad_":"x","a.b":2,"a$b":"y"}'
    assert decode(format_spark, case, [message, b'{"_bad":"q"}'])[0] == [[1, "x", 2, "y"]]
    assert encode(format_spark, case, [[1, "x", 2, "y"]]) == [message]


def test_names_that_differ_in_case_are_different(format_spark: SparkSession) -> None:
    case = _case("a INT, A INT")
    assert decode(format_spark, case, [b'{"A":1,"a":2}', b'{"A":"1","a":"2"}']) == [[[2, 1]], [[2, 1]]]


def test_decimals_beside_other_fields_and_left_out(format_spark: SparkSession) -> None:
    case = _case(
        "a INT, d DECIMAL(5, 2), s STRING, m MAP<STRING, DECIMAL(3, 1)>", **{"encode.ignore-null-fields": "true"}
    )
    rows = [[1, "1.50", "x", [["k", "1.0"]]], [None, None, None, None], [None, "2", None, [["q", None]]]]
    assert encode(format_spark, case, rows) == [
        b'{"a":1,"d":1.5,"s":"x","m":{"k":1}}',
        b"{}",
        b'{"d":2,"m":{"q":null}}',
    ]


def test_control_characters_are_as_good_in_arrays_and_where_fields_may_not_be_missing(
    format_spark: SparkSession,
) -> None:
    """As in Flink, whose parser takes them in strings."""
    assert decode(format_spark, _case("s STRING"), [b'[{"s":"a\tb"},{"s":"c"}]']) == [[["a\tb"], ["c"]]]
    strict = _case("s STRING, i INT", fail_on_missing_field="true")
    missing = {"error": "Could not find field with name 'i'."}
    assert decode(format_spark, strict, [b'{"s":"a\tb"}', b'{"s":"a\tb","i":1}']) == [missing, [["a\tb", 1]]]


def test_a_byte_order_mark_hides_no_array(format_spark: SparkSession) -> None:
    messages = [b'\xef\xbb\xbf[{"s":"a"},{"s":"b"}]', b"\xef\xbb\xbf[]", b"\xef\xbb\xbf", b'\xef\xbb\xbf{"s":"a"}']
    assert decode(format_spark, _case("s STRING"), messages) == [[["a"], ["b"]], [], [], [["a"]]]


def test_a_time_of_a_day_with_a_line_end_is_none(format_spark: SparkSession) -> None:
    """It once stopped the job, whatever its table said of bad records."""
    messages = [b'{"t":"12:34:56.1\\n"}', '{"t":"12:34:56.1\u2028"}'.encode(), b'{"t":"12:34:56\\n"}']
    assert all(isinstance(answer, dict) for answer in decode(format_spark, _case("t TIME(3)"), messages))
    assert decode(format_spark, _case("t TIME(3)", ignore_parse_errors="true"), messages) == [[[None]]] * 3
