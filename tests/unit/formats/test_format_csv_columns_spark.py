"""CSV read in columns by Arrow: whatever it accepts, it reads as the expressions do, message by message."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from column_reading import arrow_types, check_alike, mutated, own_case, readable_golden_cases, reader_of
from golden_rows import Golden
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("format_spark")]

GOOD = {
    "s": "Zoë",
    "flag": "true",
    "t": "-128",
    "h": "32767",
    "i": "1",
    "b": "-9223372036854775808",
    "d": "-0.1",
    "f": "1.5",
    "n": "12.34",
    "day": "2024-02-29",
    "tm": "12:34:56",
    "at": "2024-02-29 23:59:59.123",
    "z": "2024-02-29 23:59:59.123Z",
    "y": "AQI=",
    "l": "1;2",
    "r": "7;x",
}
ROW = (
    "ROW<s STRING, flag BOOLEAN, t TINYINT, h SMALLINT, i INT, b BIGINT, d DOUBLE, f FLOAT, n DECIMAL(10, 2), "
    "day DATE, tm TIME, at TIMESTAMP(3), z TIMESTAMP_LTZ(3), y BYTES, l ARRAY<INT>, r ROW<x INT, y STRING>>"
)
NUMBERS = [
    *("5", " 5", "5 ", "\t5", "\x0b5", "\xa05", "+5", "-0", "-", "007", "0x1f", "0X1F", "5.0", "1e2", "1_0", "٣", "1d"),
    *("128", "32768", "2147483648", "9223372036854775808", "0" * 40 + "7", "9" * 40, "1" + "0" * 400, "-1e2", "1e+2"),
    *("nan", "NaN", "inf", "-Infinity", "1e400", "1e-400", "1.", ".5", "+.5", "1e", "4.9e-324", "0x1p3", "0.1" * 9),
    *("1.7976931348623157e308", "9007199254740993", "2.2250738585072011e-308", "123456789012345678901234567890.5"),
]
TIMES = [
    *("2024-02-30", "2024-2-9", "2024-02-29T01:02:03", "2024-02-29 01:02", "2024-02-29 01:02:03.1234567", "2024"),
    *(" 2024-02-29 01:02:03", "2024-02-29 24:00:00", "2024-02-29 23:59:60", "2024-02-29 01:02:03Z", "12:34"),
    *("2023-02-29 01:02:03", "9999-12-31 23:59:59.999999", "1582-10-10 00:00:00", "0001-01-01 00:00:00", "24:00:00"),
]
TEXTS = [
    *("", " ", "NULL", "x", "TRUE", " true", "0", "\ufeff5", "\ufddf", "\ufdef", "a\0b", "\0", "#5", "a\rb", "a\nb"),
    *(
        "\\5",
        "1;;2",
        ";",
        "7;x;y",
        "%5%",
        "a%b",
        "%a%%b%",
        "%%%a%",
        "%%",
        "%%%%",
        "%%%",
        "%",
        "%a",
        "a%",
        "%a%b",
        " %5%",
    ),
    *("%5% ", "%a%%", "%%a%", "%a,b%", "%a\nb%", "%NULL%", "%a|b\tc,d%", "%a% b%", "% %", "%a%%b%%%", "%a%,%b%", "'5'"),
]
COLUMNS = {"t": NUMBERS, "i": NUMBERS, "b": NUMBERS, "d": NUMBERS, "n": NUMBERS, "day": TIMES, "at": TIMES, "z": TIMES}
DIALECTS: dict[str, dict[str, str]] = {
    "plain": {},
    "nulls": {"null-literal": "NULL", "empty-string-as-null": "true", "ignore-parse-errors": "true"},
    "tabs": {"field-delimiter": "\\t", "disable-quote-character": "true", "fail-on-missing-columns": "true"},
    "quote": {"quote-character": "'", "field-delimiter": "|", "ignore-trailing-unmappable": "true"},
}
NOT_READ: list[dict[str, str]] = [
    {"escape-character": "\\"},
    {"allow-comments": "true"},
    {"trim-spaces": "true"},
    {"field-delimiter": "·"},
    {"field-delimiter": '"'},
    {"quote-character": "«"},
    {"field-delimiter": "\\n"},
]


def lines(delimiter: str, quote: str) -> tuple[list[bytes], list[bytes]]:
    """Good lines; and others, with odd tokens (`%` stands for a quote) in every column, or with too many or too few."""
    good = delimiter.join(GOOD.values())
    quoted = delimiter.join(f"{quote}{value}{quote}" for value in GOOD.values())
    tokens = [(column, token) for column in GOOD for token in [*TEXTS, *COLUMNS.get(column, [])]]
    odd = [delimiter.join({**GOOD, column: token.replace("%", quote)}.values()) for column, token in tokens]
    odd += [
        "",
        " ",
        delimiter,
        good + delimiter,
        good + delimiter + "x",
        good.rpartition(delimiter)[0],
        "\ufeff" + good,
    ]
    odd += [quoted + quote, quote + quoted, quoted[:-1], quoted[1:]]
    odd += [good + "\n", "\n" + good, good + "\r\n", good + "\n" + good, "#" + good, delimiter * (len(GOOD) - 1)]
    return [good.encode(), quoted.encode()], [line.encode() for line in odd] + [b"\xff" + good.encode()]


@pytest.mark.parametrize("options", DIALECTS.values(), ids=DIALECTS)
def test_what_arrow_reads_is_what_the_expressions_read(format_spark: SparkSession, options: dict[str, str]) -> None:
    delimiter = options.get("field-delimiter", ",").replace("\\t", "\t")
    quote = options.get("quote-character", '"')
    good, odd = lines(delimiter, quote)
    pieces = [b"", b"\xff", *(mark.encode() for mark in f"{delimiter}{quote}\0\n 01-.ex;")]
    strange = [m for m in mutated(good, pieces, 7, 300) if not re.search(rb"[0-9]{5,}-|0000-", m)]  # no such years
    some = odd[:: 4 if options else 2]
    read = check_alike(format_spark, own_case("csv", ROW, options), [*good, *some, *strange])
    assert set(good[: 1 if "disable-quote-character" in options else 2]) <= set(read)
    assert len(read) > 100


@pytest.mark.parametrize("case", [c for c in readable_golden_cases("csv") if len(c.decode) > 6], ids=lambda c: c.name)
def test_golden_messages(format_spark: SparkSession, case: Golden) -> None:
    check_alike(format_spark, case, [message for message in case.decode if message])


def test_a_single_column(format_spark: SparkSession) -> None:
    case = own_case("csv", "ROW<s STRING>", {})
    texts = [b"", b" ", b"a", b"#a", b"a,", b"a,b", b",", b"\n", b"a\n", b"\ta", "é".encode(), b"\xef\xbb\xbf", b"0x1"]
    assert b" " in check_alike(format_spark, case, texts)


def test_one_odd_message_leaves_all_to_the_expressions() -> None:
    reader = reader_of(own_case("csv", "ROW<s STRING, i INT>", {}))
    assert reader is not None
    types = arrow_types(reader)
    read = reader.read(pa.array([b"a,1", b",2"]), types)
    assert read is not None
    assert [column.to_pylist() for column in read] == [["a", ""], [1, 2]]
    for odd in (b"", b"a", b"a,b", b"a,", b'"a,1', b'a",1', b'"a"b,1', b"a,0x1", b"a,1\nb,2", b"a,1\n", b"\xff,1"):
        assert reader.read(pa.array([b"a,1", odd]), types) is None


def test_columns_that_need_no_conversion_are_their_names() -> None:
    reader = reader_of(own_case("csv", "ROW<s STRING, i INT, d DOUBLE, at TIMESTAMP(3)>", {}))
    assert reader is not None
    names = ["a", "b", "c", "d"]
    assert reader.columns(names) == ("`a`", "`b`", "`c`", "`d`")
    assert reader.error(names) is None


@pytest.mark.parametrize("options", NOT_READ, ids=str)
def test_dialects_that_only_the_expressions_know(options: dict[str, str]) -> None:
    assert reader_of(own_case("csv", "ROW<s STRING, i INT>", options)) is None
