"""JSON read in columns by Arrow: whatever it accepts, it reads as the expressions do, message by message."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pyarrow as pa
import pytest
from golden_rows import Golden, decode, golden_cases, shown
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from headwater.formats.base import ColumnReader, FormatField, all_formats
from headwater.options.reading import parse_options
from headwater.sql.dialect import parse_type

pytestmark = pytest.mark.spark

ROW = (
    "ROW<s STRING, flag BOOLEAN, t TINYINT, i INT, b BIGINT, d DOUBLE, day DATE, at TIMESTAMP(3), z TIMESTAMP_LTZ(3), "
    "r ROW<x INT, y STRING>, l ARRAY<BIGINT>>"
)
GOOD: list[dict[str, Any]] = [
    {"s": 'é"\\ \u0000', "flag": True, "t": -128, "i": 1, "b": 2**63 - 1, "d": -0.1, "day": "2024-02-29"},
    {"at": "2024-02-29 23:59:59.123", "z": "2024-02-29 23:59:59.123Z", "r": {"x": 1, "y": "2"}, "l": [1, None]},
    {"s": None, "r": None, "l": [], "extra": {"s": [1, {"s": 2}]}, "d": 5, "at": "2024-01-01T00:00:00"},
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
    *(b"\xef\xbb\xbf{}", b'{"S":"a"}', b'{"x":' + b"[" * 2000 + b"]" * 2000 + b"}", b"//{}", b"{/**/}"),
]


def mutated(seed: int, count: int) -> list[bytes]:
    """Good messages with a few bytes dropped, doubled or swapped for others."""
    chance = random.Random(seed)
    texts = [json.dumps(message, ensure_ascii=False).encode() for message in GOOD]
    answer = []
    for _ in range(count):
        message = bytearray(chance.choice(texts))
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(message))
            message[at : at + chance.randint(0, 2)] = chance.choice(
                (b"", b'"', b"{", b"}", b"1", b",", b":", b"\n", b"e")
            )
        answer.append(bytes(message))
    return [message for message in answer if not re.search(rb"[0-9]{5,}-", message)]  # Python has no year 10000


def read_alone(spark: SparkSession, reader: ColumnReader, case: Golden, messages: list[bytes]) -> dict[bytes, Any]:
    """What Arrow makes of each message on its own, in the shape of `decode`; refused ones are missing."""
    types = [to_arrow_type(DataType.fromDDL(t)) for t in reader.types]
    names = [f"r{i}" for i in range(len(types))]
    kept, tables = [], []
    for message in messages:
        columns = reader.read(pa.array([message], pa.binary()), types)
        if columns is not None:
            kept.append(message)
            tables.append(pa.table(columns, names=names))
    numbered = pa.concat_tables(tables).append_column("n", pa.array(range(len(kept))))
    columns_sql = [f"{sql} AS c{i}" for i, sql in enumerate(reader.columns(names))]
    schema = ", ".join(f"{name} {kind}" for name, kind in zip(names, reader.types, strict=True)) + ", n BIGINT"
    frame = spark.createDataFrame(numbered, schema).selectExpr(
        "n", f"{reader.error(names) or 'NULL'} AS error", *columns_sql
    )
    answers: dict[bytes, Any] = {}
    for row in frame.orderBy("n").collect():
        values = [[shown(row[f"c{i}"], f.type) for i, f in enumerate(case.fields)]]
        answers[kept[row.n]] = values if row.error is None else {"error": row.error}
    return answers


def reader_of(case: Golden) -> ColumnReader | None:
    names = [f.name for f in case.fields]
    return all_formats()["json"].decoder("value", "p", case.fields, names, case.options).reader


def own_case(options: dict[str, str]) -> Golden:
    fields = tuple(FormatField(f.name, f.type) for f in parse_type(ROW).fields)
    values = dict(parse_options(all_formats()["json"].options, options, "json").values)
    return Golden("json", "own", fields, values, [], [], [], [])


@pytest.mark.parametrize("options", [{}, {"ignore-parse-errors": "true"}], ids=["fail", "ignore"])
def test_what_arrow_reads_is_what_the_expressions_read(format_spark: SparkSession, options: dict[str, str]) -> None:
    case = own_case(options)
    good = [json.dumps(message, ensure_ascii=False).encode() for message in GOOD]
    messages = list(dict.fromkeys([*good, *ODD, *mutated(7, 300)]))
    reader = reader_of(case)
    assert reader is not None
    read = read_alone(format_spark, reader, case, messages)
    expected = dict(zip(messages, decode(format_spark, case, messages), strict=True))
    assert {m: read[m] for m in read if read[m] != expected[m]} == {}
    assert set(good) <= set(read)
    assert len(read) > len(good) + 10


@pytest.mark.parametrize("case", [c for c in golden_cases("json") if c.decode and reader_of(c)], ids=lambda c: c.name)
def test_golden_messages(format_spark: SparkSession, case: Golden) -> None:
    reader = reader_of(case)
    assert reader is not None
    messages = [message for message in case.decode if message]
    read = read_alone(format_spark, reader, case, messages)
    expected = dict(zip(messages, decode(format_spark, case, messages), strict=True))
    assert read
    assert read == {message: expected[message] for message in read}


def test_one_odd_message_leaves_all_to_the_expressions() -> None:
    reader = reader_of(own_case({}))
    assert reader is not None
    types = [pa.string(), pa.bool_(), pa.int16(), pa.int32(), pa.int64(), pa.float64()]
    types += [pa.string(), pa.timestamp("us"), pa.string()]
    types += [pa.struct([("x", pa.int32()), ("y", pa.string())]), pa.list_(pa.int64())]
    assert reader.read(pa.array([b"{}", b"{}"]), types) is not None
    for odd in (b"", b"{}{}", b'{"i":"1"}', b"\xff"):
        assert reader.read(pa.array([b"{}", odd]), types) is None
