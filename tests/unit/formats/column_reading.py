"""Comparing a format's reader of columns with its expressions, message by message."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from golden_rows import Golden, comparable, decode, golden_cases, request_of, shown
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from headwater.formats.base import ColumnReader, FormatField, all_formats
from headwater.options.parsing import parse_options
from headwater.sql.parser import parse_type


def own_case(format_name: str, row: str, options: dict[str, str]) -> Golden:
    """Fields and options without messages."""
    fields = tuple(FormatField(f.name, f.type) for f in parse_type(row).fields)
    values = dict(parse_options(all_formats()[format_name].options, options, format_name).values)
    return Golden(format_name, "own", fields, values, [], [], [], [])


def reader_of(case: Golden, wanted: Sequence[str] | None = None) -> ColumnReader | None:
    names = [f.name for f in case.fields] if wanted is None else wanted
    return all_formats()[case.format].decoder(request_of(case, names)).reader


def readable_golden_cases(format_name: str) -> list[Golden]:
    return [case for case in golden_cases(format_name) if case.decode and reader_of(case)]


def arrow_types(reader: ColumnReader) -> list[pa.DataType]:
    return [to_arrow_type(DataType.fromDDL(t)) for t in reader.types]


def mutated(messages: Sequence[bytes], pieces: Sequence[bytes], seed: int, count: int) -> list[bytes]:
    """Messages with a few bytes dropped or swapped for some of the pieces."""
    chance = random.Random(seed)
    answer = []
    for _ in range(count):
        message = bytearray(chance.choice(messages))
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(message) + 1)
            message[at : at + chance.randint(0, 2)] = chance.choice(pieces)
        answer.append(bytes(message))
    return answer


def check_alike(
    spark: SparkSession, case: Golden, messages: Sequence[bytes], wanted: list[str] | None = None
) -> dict[bytes, Any]:
    """What the reader makes of each message on its own, which must be what the expressions make of it. Messages that it
    refuses are missing."""
    reader = reader_of(case, wanted)
    assert reader is not None
    fields = [f for f in case.fields if wanted is None or f.name in wanted]
    unique = list(dict.fromkeys(messages))
    read = _read_alone(spark, reader, fields, unique)
    expected = dict(zip(unique, decode(spark, case, unique, wanted), strict=True))
    both = {message: (comparable(answer), comparable(expected[message])) for message, answer in read.items()}
    differing = {message: (got, right) for message, (got, right) in both.items() if got != right}
    assert not differing, differing
    return read


def _read_alone(
    spark: SparkSession, reader: ColumnReader, fields: Sequence[FormatField], messages: Sequence[bytes]
) -> dict[bytes, Any]:
    types = arrow_types(reader)
    names = [f"r{i}" for i in range(len(types))]
    kept: list[bytes] = []
    tables = []
    for message in messages:
        columns = reader.read(pa.array([message], pa.binary()), types)
        if columns is not None:
            tables.append(pa.table([*columns, pa.array([len(kept)])], names=[*names, "n"]))
            kept.append(message)
    if not kept:
        return {}
    numbered = pa.concat_tables(tables)
    columns_sql = [f"{sql} AS c{i}" for i, sql in enumerate(reader.columns(names))]
    schema = ", ".join([*(f"{name} {kind}" for name, kind in zip(names, reader.types, strict=True)), "n BIGINT"])
    frame = spark.createDataFrame(numbered, schema).selectExpr(
        "n", f"{reader.error(names) or 'NULL'} AS error", *columns_sql
    )
    answers: dict[bytes, Any] = {}
    for row in frame.orderBy("n").collect():
        values = [[shown(row[f"c{i}"], f.type) for i, f in enumerate(fields)]]
        answers[kept[row.n]] = values if row.error is None else {"error": row.error}
    return answers
