"""Values as the print connector writes them. The texts are those of Flink 2.2's."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headwater.connectors.printed_values import printer
from headwater.dates import numbered_values
from headwater.sql.parser import parse_type

BERLIN = dt.timezone(dt.timedelta(hours=1))
DAY = dt.datetime(2024, 1, 1)  # noqa: DTZ001 - a TIMESTAMP has no time zone

MAPS = {"MAP<STRING, FLOAT>": pa.map_(pa.string(), pa.float32()), "MULTISET<TIME>": pa.map_(pa.int32(), pa.int32())}


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
    [read] = numbered_values(pa.array([value], MAPS.get(kind)))
    assert printer(parse_type(kind))(read) == text


@pytest.mark.parametrize(
    ("day", "text"),
    [
        (2_932_896, "9999-12-31"),
        (2_932_897, "+10000-01-01"),
        (11_248_737, "+32767-12-31"),
        (-719_162, "0001-01-01"),
        (-719_163, "0000-12-31"),
        (-719_529, "-0001-12-31"),
        (-1, "1969-12-31"),
    ],
)
def test_days_that_python_does_not_know(day: int, text: str) -> None:
    """One of them in a message once stopped the job."""
    days = pa.array([day], pa.int32()).cast(pa.date32())
    instants = pa.array([day * 86_400_000_000 + 1], pa.int64()).cast(pa.timestamp("us", "Asia/Tokyo"))
    rows = pa.StructArray.from_arrays([days, instants.cast(pa.timestamp("us"))], ["d", "t"])
    lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), rows)
    maps = pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["k"]), instants)
    for kind, column, wanted in (
        ("DATE", days, text),
        ("TIMESTAMP_LTZ(6)", instants, f"{text}T00:00:00.000001Z"),
        ("ARRAY<ROW<d DATE, t TIMESTAMP(6)>>", lists, f"[+I[{text}, {text}T00:00:00.000001]]"),
        ("MAP<STRING, TIMESTAMP_LTZ(6)>", maps, f"{{k={text}T00:00:00.000001Z}}"),
    ):
        assert printer(parse_type(kind))(numbered_values(column)[0]) == wanted
