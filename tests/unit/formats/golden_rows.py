"""Golden files: what Flink wrote and read (golden/FlinkGolden.java fills them), and how to ask Spark the same."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.formats.base import Decoder, DecodeRequest, FormatField, all_formats
from headwater.options.parsing import parse_options
from headwater.sql.parser import parse_type
from headwater.sql.types import Field, SqlType


@dataclass(frozen=True)
class Golden:
    """One case of a golden file. `encoded` is bytes or None or an error; `decoded` is rows or an error."""

    format: str
    name: str
    fields: tuple[FormatField, ...]
    options: dict[str, Any]
    encode: list[Any]
    encoded: list[Any]
    decode: list[bytes]
    decoded: list[Any]


def golden_cases(format_name: str) -> list[Golden]:
    path = Path(__file__).parent / "golden" / f"{format_name}.json"
    return [_case(format_name, raw) for raw in json.loads(path.read_text())]


def _case(format_name: str, raw: dict[str, Any]) -> Golden:
    row = parse_type(raw["type"])
    declared = all_formats()[format_name].options
    binary = format_name in {"avro", "raw"}
    return Golden(
        format_name,
        raw["name"],
        tuple(FormatField(f.name, f.type) for f in row.fields),
        dict(parse_options(declared, raw.get("options", {}), format_name).values),
        raw.get("encode", []),
        [_bytes(answer, binary) for answer in raw.get("encoded", [])],
        [_bytes(message, binary) for message in raw.get("decode", [])],
        raw.get("decoded", []),
    )


def _bytes(message: Any, binary: bool) -> Any:
    if isinstance(message, dict):
        return bytes.fromhex(message["hex"]) if "hex" in message else message
    return message if message is None else bytes.fromhex(message) if binary else message.encode()


def encode(spark: SparkSession, case: Golden, rows: list[Any]) -> list[bytes | None]:
    """What Headwater writes for these rows."""
    names = [f"`c{i}`" for i in range(len(case.fields))]
    selects = []
    for number, row in enumerate(rows):
        values = (literal(v, f.type) for v, f in zip(row, case.fields, strict=True))
        columns = ", ".join(f"{v} AS {n}" for v, n in zip(values, names, strict=True))
        selects.append(f"SELECT {number} AS i, {columns}")
    encoder = all_formats()[case.format].encoder(case.fields, names, case.options)
    query = f"SELECT i, {encoder} AS message FROM ({' UNION ALL '.join(selects)}) ORDER BY i"
    return [None if r.message is None else bytes(r.message) for r in spark.sql(query).collect()]


def _binary(message: bytes | None) -> str:
    return "CAST(NULL AS BINARY)" if message is None else f"X'{message.hex()}'"


def request_of(case: Golden, wanted: Sequence[str]) -> DecodeRequest:
    return DecodeRequest("value", "p", case.fields, tuple(wanted), case.options)


def decode(
    spark: SparkSession, case: Golden, messages: Sequence[bytes | None], wanted: list[str] | None = None
) -> list[Any]:
    """What Headwater reads: a list of rows per message, or its error."""
    by_name = {f.name: f for f in case.fields}
    chosen = [by_name[w] for w in wanted] if wanted is not None else list(case.fields)
    decoder = all_formats()[case.format].decoder(request_of(case, [f.name for f in chosen]))
    payloads, places = _rows(decoder, messages)
    if not payloads:
        return [[] for _ in messages]
    rows = enumerate(zip(places, payloads, strict=True))
    values = ", ".join(f"({i}, {place}, {_binary(m)})" for place, (i, m) in rows)
    columns = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(decoder.columns))
    source = f"VALUES {values} AS t(i, place, value)"
    for alias, sql in (*decoder.before, ("p", decoder.parsed), *decoder.after):
        source = f"(SELECT *, {sql} AS {alias} FROM {source})"
    query = (
        f"SELECT i, {decoder.error or 'NULL'} AS error, {decoder.skip or 'false'} AS skip, {columns} "
        f"FROM {source} ORDER BY i, place"
    )
    answers: list[Any] = [[] for _ in messages]
    for row in spark.sql(query).collect():
        if row.skip or isinstance(answers[row.i], dict):
            continue
        values = [shown(row[f"c{i}"], f.type) for i, f in enumerate(chosen)]
        answers[row.i] = {"error": row.error} if row.error is not None else [*answers[row.i], values]
    return answers


def _rows(decoder: Decoder, messages: Sequence[bytes | None]) -> tuple[list[bytes | None], list[int]]:
    """The payload of every row, and which message it is from."""
    found = decoder.rows(pa.array(messages, pa.binary())) if decoder.rows is not None else None
    if found is None:
        return list(messages), list(range(len(messages)))
    return found[0].to_pylist(), found[1].tolist()


def literal(value: Any, kind: SqlType) -> str:
    """The value as golden files write it, as Spark SQL."""
    if value is None:
        return f"CAST(NULL AS {kind.spark()})"
    match kind.name:
        case "BINARY" | "VARBINARY" | "BYTES":
            return f"X'{value}'"
        case "TIMESTAMP_LTZ":
            return f"CAST('{value}Z' AS TIMESTAMP)"
        case "ARRAY":
            assert kind.element is not None
            return f"CAST(array({', '.join(literal(v, kind.element) for v in value)}) AS {kind.spark()})"
        case "MAP" | "MULTISET":
            key, item = _entry_types(kind)
            pairs = ", ".join(f"{literal(k, key)}, {literal(v, item)}" for k, v in value)
            return f"CAST(map({pairs}) AS {kind.spark()})"
        case "ROW":
            parts = (f"{literal(v, f.type)} AS `{f.name}`" for v, f in zip(value, kind.fields, strict=True))
            return f"struct({', '.join(parts)})"
        case "BOOLEAN":
            return "true" if value else "false"
    text = str(value).replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"CAST('{text}' AS {kind.spark()})"


def shown(value: Any, kind: SqlType) -> Any:
    """What Spark answered, as golden files write it."""
    if value is None:
        return None
    match kind.name:
        case "DECIMAL":
            assert isinstance(value, Decimal)
            return f"{value:f}"
        case "BINARY" | "VARBINARY" | "BYTES":
            return bytes(value).hex().upper()
        case "DATE":
            assert isinstance(value, date)
            return value.isoformat()
        case "TIMESTAMP":
            return value
        case "TIMESTAMP_LTZ":
            return value.astimezone(timezone.utc).replace(tzinfo=None)
        case "ARRAY":
            assert kind.element is not None
            return [shown(v, kind.element) for v in value]
        case "MAP" | "MULTISET":
            key, item = _entry_types(kind)
            return sorted([shown(k, key), shown(v, item)] for k, v in value.items())
        case "ROW":
            return [shown(v, f.type) for v, f in zip(value, kind.fields, strict=True)]
    return value


def expected(answer: Any, kind: SqlType) -> Any:
    """Flink's answer in the types of `shown`; fractions of a microsecond are lost in Spark."""
    if answer is None:
        return None
    match kind.name:
        case "FLOAT":
            return struct.unpack("f", struct.pack("f", float(answer)))[0]
        case "DOUBLE":
            return float(answer)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            whole, _, fraction = answer.partition(".")
            return datetime.fromisoformat(f"{whole}.{fraction[:6].ljust(6, '0')}" if fraction else whole)
        case "ARRAY":
            assert kind.element is not None
            return [expected(v, kind.element) for v in answer]
        case "MAP" | "MULTISET":
            key, item = _entry_types(kind)
            return sorted([expected(k, key), expected(v, item)] for k, v in answer)
        case "ROW":
            return [expected(v, f.type) for v, f in zip(answer, kind.fields, strict=True)]
    return answer


def _entry_types(kind: SqlType) -> tuple[SqlType, SqlType]:
    if kind.name == "MULTISET":
        assert kind.element is not None
        return kind.element, SqlType("INT")
    assert kind.key is not None
    assert kind.element is not None
    return kind.key, kind.element


ERROR = object()  # stands for any error in a table of differences


def check_encoded(spark: SparkSession, case: Golden) -> None:
    """Headwater writes the bytes that Flink writes."""
    assert encode(spark, case, case.encode) == case.encoded


def check_decoded(spark: SparkSession, case: Golden, differs: dict[bytes, Any]) -> None:
    """Headwater reads the rows that Flink reads and finds an error where Flink does, but for `differs`."""
    row = SqlType("ROW", fields=tuple(Field(f.name, f.type) for f in case.fields))
    answers = decode(spark, case, case.decode)
    for message, flink, ours in zip(case.decode, case.decoded, answers, strict=True):
        wanted = ERROR if isinstance(flink, dict) else [expected(r, row) for r in flink]
        wanted = differs.get(message, wanted)
        got = ERROR if isinstance(ours, dict) else ours
        assert comparable(got) == comparable(wanted), f"{message!r}: {ours}"


def comparable(answer: Any) -> Any:
    """NaN equals itself here, and 0.0 is not -0.0."""
    if isinstance(answer, list):
        return [comparable(a) for a in answer]
    return repr(answer) if isinstance(answer, float) else answer
