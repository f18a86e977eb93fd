"""Values as the print connector writes them. The texts are those of Flink 2.2's."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from headwater.connectors.printed_values import printer
from headwater.sql.parser import parse_type

BERLIN = dt.timezone(dt.timedelta(hours=1))
DAY = dt.datetime(2024, 1, 1)  # noqa: DTZ001 - a TIMESTAMP has no time zone


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("DOUBLE", 1e10, "1.0E10"),
        ("DOUBLE", 0.1, "0.1"),
        ("DOUBLE", 1e-4, "1.0E-4"),
        ("DOUBLE", 1234567.0, "1234567.0"),
        ("DOUBLE", 12345678.0, "1.2345678E7"),
        ("DOUBLE", -0.0, "-0.0"),
        ("DOUBLE", float("nan"), "NaN"),
        ("DOUBLE", float("-inf"), "-Infinity"),
        ("FLOAT", 0.10000000149011612, "0.1"),
        ("FLOAT", 16777216.0, "1.6777216E7"),
        ("FLOAT", 3.4028234663852886e38, "3.4028235E38"),
        ("DECIMAL(20, 10)", Decimal("0.0000000001"), "1E-10"),
        ("DECIMAL(10, 2)", Decimal("12.00"), "12.00"),
        ("TINYINT", 5, "5"),
        ("BOOLEAN", True, "true"),
        ("STRING", None, "null"),
        ("VARBINARY(10)", b"\x00\xffA", "[0, -1, 65]"),
        ("DATE", dt.date(2024, 1, 1), "2024-01-01"),
        ("TIME", 45_000_000, "12:30"),
        ("TIME", 0, "00:00"),
        ("TIME(3)", 45_001_500, "12:30:01.500"),
        ("TIMESTAMP(3)", DAY, "2024-01-01T00:00"),
        ("TIMESTAMP(3)", DAY.replace(minute=1), "2024-01-01T00:01"),
        ("TIMESTAMP(3)", DAY.replace(second=1, microsecond=100_000), "2024-01-01T00:00:01.100"),
        ("TIMESTAMP(6)", DAY.replace(second=1, microsecond=123_456), "2024-01-01T00:00:01.123456"),
        ("TIMESTAMP_LTZ(3)", DAY.replace(hour=1, tzinfo=BERLIN), "2024-01-01T00:00:00Z"),
        ("TIMESTAMP_LTZ(3)", DAY.replace(hour=1, microsecond=120_000, tzinfo=BERLIN), "2024-01-01T00:00:00.120Z"),
        ("ARRAY<STRING>", ["a", None], "[a, null]"),
        ("ARRAY<TIME>", [45_000_000], "[12:30]"),
        ("MAP<STRING, FLOAT>", [("a", 0.10000000149011612)], "{a=0.1}"),
        ("MULTISET<TIME>", [(45_000_000, 2)], "{12:30=2}"),
        ("ARRAY<ROW<x INT, y STRING>>", [{"x": 1, "y": "z"}], "[+I[1, z]]"),
    ],
)
def test_a_value_is_written_as_flink_does(kind: str, value: Any, text: str) -> None:
    assert printer(parse_type(kind))(value) == text
