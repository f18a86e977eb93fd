"""CSV against Flink's own bytes and rows, and what is Headwater's own."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from golden_rows import ERROR, Golden, check_decoded, check_encoded, decode, golden_cases
from pyspark.sql import SparkSession

from headwater.formats.base import FormatField, all_formats
from headwater.options.parsing import parse_options
from headwater.sql.parser import parse_type

pytestmark = pytest.mark.spark

_NOON = datetime(2020, 1, 1, 12, 34, 56)  # noqa: DTZ001 - a timestamp without time zone
_TIMES = [45240000, 45240000]

# Where Headwater reads otherwise than Flink 2.2, and why.
DIFFERS: dict[str, dict[bytes, Any]] = {
    "strings": {
        b"a": [["a", None]],  # as the default of 'fail-on-missing-columns' says
        b'"a"b,c': [['"a"b', "c"]],  # text behind a closing quote: the quotes are text then
    },
    "one column": {b"\n": ERROR},
    "escape": {b"a\\,b": [["a,b", None]]},
    "arrays null literal": {b"n/a,n/a,n/a": [[None, None, None]]},  # what is written for NULL is read as NULL
    "decimals": {
        b" 1.5 ,1": [["1.50", "1.000000000000000000"]],  # as with all other numbers
        b"1.5, 1": [["1.50", "1.000000000000000000"]],
    },
    "times": {
        # there is no such day
        b"2020-02-30,12:34,12:34,2020-01-01 12:34:56,2020-01-01 12:34:56,2020-01-01 12:34:56Z": ERROR,
        # both ways to write a timestamp are read, and the time of a day may be short of something
        b"2020-02-29,12:34,12:34,2020-01-01T12:34:56,2020-01-01 12:34:56,2020-01-01 12:34:56Z": [
            ["2020-02-29", *_TIMES, _NOON, _NOON, _NOON]
        ],
        b"2020-02-29,12:34:56.1,12:34,2020-01-01 12:34,2020-01-01 12:34:56,2020-01-01 12:34:56Z": [
            ["2020-02-29", 45296100, 45240000, _NOON.replace(second=0), _NOON, _NOON]
        ],
    },
}


@pytest.mark.parametrize("case", [c for c in golden_cases("csv") if c.encode], ids=lambda c: c.name)
def test_writes_what_flink_writes(format_spark: SparkSession, case: Golden) -> None:
    check_encoded(format_spark, case)


@pytest.mark.parametrize("case", [c for c in golden_cases("csv") if c.decode], ids=lambda c: c.name)
def test_reads_what_flink_reads(format_spark: SparkSession, case: Golden) -> None:
    check_decoded(format_spark, case, DIFFERS.get(case.name, {}))


def _case(columns: str, **options: str) -> Golden:
    row = parse_type(f"ROW<{columns}>")
    declared = all_formats()["csv"].options
    values = dict(parse_options(declared, {k.replace("_", "-"): v for k, v in options.items()}, "csv").values)
    return Golden("csv", "own", tuple(FormatField(f.name, f.type) for f in row.fields), values, [], [], [], [])


def test_missing_columns_can_be_an_error(format_spark: SparkSession) -> None:
    case = _case("a STRING, b INT, c STRING", fail_on_missing_columns="true")
    problem = {"error": "Row length mismatch. 3 fields expected but was 2."}
    assert decode(format_spark, case, [b"a,1", b"a,1,c"]) == [problem, [["a", 1, "c"]]]


def test_more_columns_can_be_ignored(format_spark: SparkSession) -> None:
    case = _case("a STRING, b INT", ignore_trailing_unmappable="true")
    assert decode(format_spark, case, [b"a,1,2,3,4", b"a,1,", b"a"]) == [[["a", 1]], [["a", 1]], [["a", None]]]


def test_a_trailing_delimiter_can_be_an_error(format_spark: SparkSession) -> None:
    case = _case("a STRING, b INT", allow_trailing_comma="false")
    problem = {"error": "Too many entries: expected at most 2 columns."}
    assert decode(format_spark, case, [b"a,1,", b"a,1,2,3,4", b"a,1"]) == [problem, problem, [["a", 1]]]


def test_nothing_can_be_null(format_spark: SparkSession) -> None:
    case = _case("a STRING, b INT, c STRING", empty_string_as_null="true")
    assert decode(format_spark, case, [b",,", b'"",1,x']) == [[[None, None, None]], [[None, 1, "x"]]]


def test_blanks_can_be_dropped(format_spark: SparkSession) -> None:
    case = _case("a STRING, b INT, c STRING", trim_spaces="true")
    assert decode(format_spark, case, [b' a , 1 ," x "']) == [[["a", 1, " x "]]]


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b"x,y", "Fail to deserialize at field: b. 'y' is not INT."),
        (b"x,1,2", "Too many entries: expected at most 2 columns."),
        (b'x,"1', "Missing closing quote for value."),
        (b"", "The message is empty."),
        (b"\xff,1", "It is not UTF-8."),
    ],
)
def test_an_error_names_the_field_and_what_it_holds(format_spark: SparkSession, message: bytes, problem: str) -> None:
    assert decode(format_spark, _case("a STRING, b INT"), [message]) == [{"error": problem}]


def test_only_the_wanted_columns_are_checked(format_spark: SparkSession) -> None:
    case = _case("a INT, b INT, c STRING")
    assert decode(format_spark, case, [b"1,x,y"], ["c", "a"]) == [[["y", 1]]]


def test_a_long_line_of_quotes_does_not_exhaust_the_stack(format_spark: SparkSession) -> None:
    case = _case("a STRING, b INT")
    message = b'"' + b'""' * 20_000 + b'",1\n'
    assert decode(format_spark, case, [message]) == [[['"' * 20_000, 1]]]
