"""Avro read in columns with numpy: whatever it accepts, it reads as the expressions do, message by message."""

from __future__ import annotations

import random
import struct
from typing import Any

import pyarrow as pa
import pytest
from column_reading import arrow_types, check_alike, mutated, own_case, reader_of
from golden_rows import Golden, encode, golden_cases
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("format_spark")]

ROW = (
    "ROW<s STRING, flag BOOLEAN, i INT NOT NULL, b BIGINT, f FLOAT, d DOUBLE NOT NULL, n DECIMAL(10, 2), y BYTES, "
    "m INT, o STRING NOT NULL>"
)
TIMES = "ROW<t TINYINT, h SMALLINT, day DATE, tm TIME, at TIMESTAMP(3), z TIMESTAMP_LTZ(3), w DECIMAL(38, 3)>"
ROWS: list[list[Any]] = [
    ["Zoë", True, -1, 2**63 - 1, 1.5, -0.1, "12.34", "00FF", 2**31 - 1, ""],
    [None, None, 2**31 - 1, None, None, 1e308, None, None, None, "x"],
    ["", False, -(2**31), -(2**63), -0.0, 0.0, "-99999999.99", "", -(2**31), "a" * 200],
    ["b" * 9000, True, 64, 2**55, 3.25, 2.5, "0.00", "01" * 70, 0, "c"],
    ["c", True, -64, -(2**55) - 1, 0.0, 1.0, "1.28", "02", 5, "d"],
    ["d", True, 0, 2**62, 0.0, 1.0, "-1.28", "03", 6, "e"],
]
TIME_ROWS: list[list[Any]] = [
    [-128, 32767, "2024-02-29", 45296000, "2024-02-29 23:59:59.123", "2024-02-29 23:59:59.123", "0.001"],
    [127, -32768, "0001-01-01", 0, "0001-01-01 00:00:00", "1969-12-31 23:59:59.999", "-" + "9" * 35 + ".999"],
    [None, None, None, None, None, None, None],
]
PIECES = [bytes([b]) for b in (0, 1, 2, 3, 4, 5, 0x7F, 0x80, 0x81, 0xFE, 0xFF)] + [b"", b"\x80\x00", b"\xff" * 9]


def zigzag(number: int) -> bytes:
    rest, written = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*written, rest])


def test_what_numpy_reads_is_what_the_expressions_read(format_spark: SparkSession) -> None:
    case = own_case("avro", ROW, {})
    good = [m for m in encode(format_spark, case, ROWS) if m is not None]
    short = [m for m in good if len(m) < 100]
    cut = [m[:n] for m in short[:2] for n in range(len(m))] + [m + b"\0" for m in good]
    messages = [*good, *cut, *mutated(short, PIECES, 7, 400)]
    read = check_alike(format_spark, case, messages)
    assert set(good) <= set(read)
    assert not set(cut) & set(read)
    assert len(read) > len(good) + 20
    some = check_alike(format_spark, case, messages[::2], wanted=["s", "m"])
    assert set(messages[::2]) & set(good) <= set(some)


def test_small_numbers_times_and_long_decimals(format_spark: SparkSession) -> None:
    case = own_case("avro", TIMES, {"timestamp_mapping.legacy": "false"})
    good = [m for m in encode(format_spark, case, TIME_ROWS) if m is not None]
    assert set(check_alike(format_spark, case, good)) == set(good)


@pytest.mark.parametrize("case", [c for c in golden_cases("avro") if reader_of(c)], ids=lambda c: c.name)
def test_what_flink_wrote(format_spark: SparkSession, case: Golden) -> None:
    written = [message for message in case.encoded if message]
    assert set(check_alike(format_spark, case, written)) == set(written)


def test_numbers_of_every_length() -> None:
    reader = reader_of(own_case("avro", "ROW<b BIGINT NOT NULL, d DOUBLE NOT NULL>", {}))
    assert reader is not None
    chance = random.Random(7)
    numbers = [sign * (2**bits + off) for bits in range(63) for sign in (1, -1) for off in (-1, 0, 1)]
    numbers += [chance.randrange(-(2**63), 2**63) for _ in range(100)] + [2**63 - 1, -(2**63)]
    doubles = [chance.uniform(-1e9, 1e9) for _ in numbers]
    messages = [zigzag(n) + struct.pack("<d", d) for n, d in zip(numbers, doubles, strict=True)]
    sliced = pa.array([b"?", *messages, b"?"], pa.binary())[1:-1]
    read = reader.read(sliced, arrow_types(reader))
    assert read is not None
    assert [column.to_pylist() for column in read] == [numbers, doubles]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("ROW<i INT NOT NULL>", zigzag(2**31)),
        ("ROW<i INT NOT NULL>", b"\x80\x80\x80\x80\x80\x00"),
        ("ROW<t TINYINT NOT NULL>", zigzag(128)),
        ("ROW<h SMALLINT NOT NULL>", zigzag(-(2**15) - 1)),
        ("ROW<b BIGINT NOT NULL>", b"\xff" * 9 + b"\x02"),
        ("ROW<b BIGINT NOT NULL>", b"\xff" * 10 + b"\x00"),
        ("ROW<b BIGINT NOT NULL>", b"\x80"),
        ("ROW<flag BOOLEAN NOT NULL>", b"\x02"),
        ("ROW<s STRING NOT NULL>", b"\x02\xff"),
        ("ROW<s STRING NOT NULL>", b"\x01"),
        ("ROW<s STRING NOT NULL>", zigzag(2**63 - 1)),
        ("ROW<s STRING>", b"\x04"),
        ("ROW<s STRING>", b"\x82\x00\x00"),
        ("ROW<at TIMESTAMP(3) NOT NULL>", zigzag(2**62)),
        ("ROW<at TIMESTAMP(3) NOT NULL>", zigzag(-(2**63))),
        ("ROW<n DECIMAL(3, 1) NOT NULL>", b"\x04\x03\xe8"),
        ("ROW<n DECIMAL(3, 1) NOT NULL>", b"\x00"),
        ("ROW<d DOUBLE NOT NULL>", b"\x00" * 7),
        ("ROW<d DOUBLE NOT NULL>", b"\x00" * 9),
        ("ROW<s STRING>", b""),
    ],
)
def test_what_is_left_to_the_expressions(row: str, message: bytes) -> None:
    reader = reader_of(own_case("avro", row, {}))
    assert reader is not None
    assert reader.read(pa.array([message]), arrow_types(reader)) is None


def test_nested_values_and_json_are_left_to_the_expressions() -> None:
    assert reader_of(own_case("avro", "ROW<l ARRAY<INT>, i INT>", {}), ["i"]) is None
    assert reader_of(own_case("avro", "ROW<i INT>", {"encoding": "json"})) is None
