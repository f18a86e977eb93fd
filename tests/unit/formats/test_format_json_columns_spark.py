"""JSON read in columns by Arrow: whatever it accepts, it reads as the expressions do, message by message."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pytest
from column_reading import arrow_types, check_alike, mutated, own_case, readable_golden_cases, reader_of
from golden_rows import Golden
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("format_spark")]

ROW = (
    "ROW<s STRING, flag BOOLEAN, t TINYINT, i INT, b BIGINT, d DOUBLE, day DATE, at TIMESTAMP(3), z TIMESTAMP_LTZ(3), "
    "n DECIMAL(10, 2), r ROW<x INT, y STRING>, l ARRAY<BIGINT>, q ROW<d DOUBLE, n DECIMAL(6, 2), at TIMESTAMP(3)>, "
    "m ARRAY<DOUBLE>, k ARRAY<ROW<a BIGINT, t TIMESTAMP(3)>>>"
)
GOOD: list[dict[str, Any]] = [
    {"s": 'é"\\ \u0000', "flag": True, "t": -128, "i": 1, "b": 2**63 - 1, "d": -0.1, "day": "2024-02-29"},
    {"at": "2024-02-29 23:59:59.123", "z": "2024-02-29 23:59:59.123Z", "r": {"x": 1, "y": "2"}, "l": [1, None]},
    {"n": 1.5, "s": None, "r": None, "l": [], "extra": {"s": [1, {"s": 2}]}, "d": 5, "at": "2024-01-01T00:00:00"},
    {"t": "-7", "i": "0", "b": "999999999999999999", "d": "-0", "n": "12.3"},
    {"q": {"d": 1.5, "n": 2.25, "at": "2024-01-01 00:00:00"}, "m": [1.5, None], "k": [{"a": 1}, None, {"a": None}]},
    {"q": {"d": "1.5", "n": "2.25"}, "m": ["2", "3.5"], "k": [{"a": "4", "t": "2024-01-01 00:00:00.5"}]},
    {"i": "7", "b": 8, "d": "123456789.125", "n": "0.05", "s": "7"},
]
ODD = [
    *(b"", b" ", b"{}", b"[]", b"null", b"1", b'"x"', b"{", b"}", b"{}{}", b"{}\n{}", b"[{}]", b'{"s":"a"} ', b"{} x}"),
    *(b'{"i":1}{"i":2}', b'{"i":1,"i":2}', b'{"i":01}', b'{"i":"7"}', b'{"i":1.0}', b'{"i":1e2}', b'{"i":112.013}'),
    *(b'{"i":2147483648}', b'{"b":9223372036854775808}', b'{"t":300}', b'{"d":"1.5"}', b'{"d":1e400}', b'{"d":NaN}'),
    *(
        b'{"s":1}',
        b'{"s":1.50}',
        b'{"s":true}',
        b'{"s":{"a": 1}}',
        b'{"s":[1, 2]}',
        b'{"s":"\xff"}',
        b'{"s":"\\ud800"}',
    ),
    *(b'{"s":"a\nb"}', b'{"s":"a\tb"}', b"{'s':'a'}", b'{"flag":"true"}', b'{"flag":1}', b'{"l":1}', b'{"l":{"a":1}}'),
    *(
        b'{"r":[1]}',
        b'{"r":{"x":"1"}}',
        b'{"r":"x"}',
        b'{"day":"2024-13-01"}',
        b'{"day":5}',
        b'{"at":"2024-02-30 00:00:00"}',
    ),
    *(
        b'{"at":"2024-01-01"}',
        b'{"at":"2024-01-01 10"}',
        b'{"at":"2024-01-01 10:11"}',
        b'{"at":" 2024-01-01 10:11:12"}',
    ),
    *(b'{"at":"2024-01-01 10:11:12Z"}', b'{"at":"2024-01-01 10:11:12.123456789"}', b'{"z":"2024-01-01 10:11:12"}'),
    *(
        b'{"n":%s}' % n
        for n in (b"1e2", b"1E+2", b"-0", b"0.10", b"1.555", b"100000000", b"99999999.99", b"123456789012")
    ),
    *(
        b'{"n":%s}' % n
        for n in (b'"1.5"', b'" 1"', b'"+1"', b'".5"', b'"1."', b'""', b"true", b"1e-2", b"1e-3", b"1e30")
    ),
    *(
        b'{"%s":"%s"}' % (field, n)
        for field in (b"t", b"i", b"b", b"d", b"n")
        for n in (
            b"007",
            b"+1",
            b" 7",
            b"7 ",
            b"-0",
            b"7.0",
            b"7.5",
            b"1e2",
            b"1.555",
            b"99999999999",
            b"",
            b"x",
            b"NaN",
        )
    ),
    *(
        b'{"q":{"d":NaN}}',
        b'{"q":{"d":1e400}}',
        b'{"q":{"n":1.555}}',
        b'{"q":{"n":99999}}',
        b'{"q":{"at":"2024-01-01"}}',
    ),
    *(b'{"m":[1e400]}', b'{"m":["x"]}', b'{"m":[1,"2"]}', b'{"k":[{"a":"x"}]}', b'{"k":[{"t":"now"}]}', b'{"k":[[]]}'),
    *(b'{"d":-0}', b'{"d":-0.0}', b'{"m":[-0, 1]}'),
    *(b'{"i":1,"other":%s}' % n for n in (b"NaN", b"-Infinity", b'"a, NaN"', b"[1, Inf]", b'{"x": NaN}')),
    *(b"\xef\xbb\xbf{}", b'{"S":"a"}', b'{"x":' + b"[" * 2000 + b"]" * 2000 + b"}", b"//{}", b"{/**/}"),
]
PIECES = (b"", b'"', b"{", b"}", b"1", b",", b":", b"\n", b"e")


@pytest.mark.parametrize("options", [{}, {"ignore-parse-errors": "true"}], ids=["fail", "ignore"])
def test_what_arrow_reads_is_what_the_expressions_read(format_spark: SparkSession, options: dict[str, str]) -> None:
    good = [json.dumps(message, ensure_ascii=False).encode() for message in GOOD]
    strange = [m for m in mutated(good, PIECES, 7, 300) if not re.search(rb"[0-9]{5,}-", m)]  # no year 10000 in Python
    read = check_alike(format_spark, own_case("json", ROW, options), [*good, *ODD, *strange])
    assert set(good) <= set(read)
    assert len(read) > len(good) + 10


@pytest.mark.parametrize("case", readable_golden_cases("json"), ids=lambda c: c.name)
def test_golden_messages(format_spark: SparkSession, case: Golden) -> None:
    check_alike(format_spark, case, [message for message in case.decode if message])


def test_one_odd_message_leaves_all_to_the_expressions() -> None:
    reader = reader_of(own_case("json", ROW, {}))
    assert reader is not None
    types = arrow_types(reader)
    assert reader.read(pa.array([b"{}", b"{}"]), types) is not None
    for odd in (b"", b"{}{}", b'{"i":"1"}', b"\xff"):
        assert reader.read(pa.array([b'{"i":1}', odd]), types) is None


NESTED = "ROW<i INT, b ROW<x INT, c ROW<s STRING>>, l ARRAY<ROW<y INT>>>"
NULLS = [b'{"i":1,"b":null}', b'{"b":{"x":1,"c":null}}', b'{"l":[null]}', b'{"l":[null,null]}', b"{}"]
OTHERS = [b'{"b":{"x":2,"c":{"s":"a"}}}', b'{"b":{}}', b'{"l":[{"y":1},null]}', b'{"i":2}', *NULLS]


@pytest.mark.parametrize("first", NULLS)
@pytest.mark.parametrize("other", OTHERS)
def test_rows_that_are_null_in_the_first_messages_are_read_in_later_ones(first: bytes, other: bytes) -> None:
    reader = reader_of(own_case("json", NESTED, {}))
    assert reader is not None

    def rows(*messages: bytes) -> list[tuple[Any, ...]]:
        columns = reader.read(pa.array(messages), arrow_types(reader))
        assert columns is not None
        for column in columns:
            column.validate(full=True)
        return list(zip(*(column.to_pylist() for column in columns), strict=True))

    alone = {message: rows(message)[0] for message in (first, other)}
    assert rows(*[first] * 5, other, first) == [*[alone[first]] * 5, alone[other], alone[first]]


@pytest.mark.parametrize("odd", [b"1", b'""', b"true", b"[]", b'{"x":"1"}'])
def test_what_is_no_row_is_refused_behind_nulls(odd: bytes) -> None:
    reader = reader_of(own_case("json", NESTED, {}))
    assert reader is not None
    messages = [*[b'{"b":null}'] * 5, b'{"b":%s}' % odd]
    assert reader.read(pa.array(messages), arrow_types(reader)) is None
