"""Every function and operator, evaluated by Spark: value and type as `test_functions_rows.txt` says.

A row is `expression -> value :: type`, over the columns of `COLUMNS`. The values are those of Flink 2.2 unless the
section says otherwise. `ERROR` means that the evaluation fails, `?` that any value will do. `## zone` sets the
session's time zone.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import FloatType, StructType

from headwater.sql.expressions import Scope, ScopeColumn, compile_expression
from headwater.sql.functions import REGISTRY
from headwater.sql.functions.registry import Function
from headwater.sql.functions.special_calls import SPECIAL_CALLS
from headwater.sql.parser import parse_expression, parse_type
from headwater.sql.typed import Expr
from headwater.sql.types import SqlType

pytestmark = pytest.mark.spark

ROWS = Path(__file__).with_name("test_functions_rows.txt")
BATCH = 90
JSON = {"a": {"b": [1, 2, {"c": "x"}]}, "s": "str", "n": 12.5, "t": True, "z": None, "o": "{b}"}
COLUMNS = {
    # name: Flink type, Spark SQL of the value
    "bo": ("BOOLEAN", "true"),
    "ti": ("TINYINT", "7Y"),
    "si": ("SMALLINT", "300S"),
    "i": ("INT", "17"),
    "bi": ("BIGINT", "5000000000L"),
    "f": ("FLOAT", "1.5F"),
    "d": ("DOUBLE", "2.25D"),
    "dc": ("DECIMAL(10, 2)", "CAST(123.45 AS DECIMAL(10,2))"),
    "s": ("STRING", "'Hello'"),
    "vc": ("VARCHAR(10)", "'ab'"),
    "c": ("CHAR(3)", "'xyz'"),
    "b": ("BYTES", "X'48656C6C6F'"),
    "dt": ("DATE", "DATE'2024-02-29'"),
    "tm": ("TIME", "45296000"),
    "ts": ("TIMESTAMP(3)", "TIMESTAMP_NTZ'2024-02-29 12:34:56.789'"),
    "ltz": ("TIMESTAMP_LTZ(3)", "TIMESTAMP'2024-02-29 12:34:56.789Z'"),
    "arr": ("ARRAY<INT>", "array(1, 2, 3)"),
    "sarr": ("ARRAY<STRING>", "array('a', NULL, 'b')"),
    "m": ("MAP<STRING, INT>", "map('a', 1, 'b', 2)"),
    "r": ("ROW<a INT, b STRING>", "named_struct('a', 1, 'b', 'x')"),
    "k": ("INT NOT NULL", "42"),
    "ks": ("STRING NOT NULL", "'key'"),
    "zero": ("INT", "0"),
    "ni": ("INT", "CAST(NULL AS INT)"),
    "ns": ("STRING", "CAST(NULL AS STRING)"),
    "nbo": ("BOOLEAN", "CAST(NULL AS BOOLEAN)"),
    "narr": ("ARRAY<INT>", "CAST(NULL AS ARRAY<INT>)"),
    "js": ("STRING", f"'{json.dumps(JSON)}'"),
}
SCOPE = Scope(tuple(ScopeColumn("t", name, name, parse_type(kind)) for name, (kind, _) in COLUMNS.items()))


@dataclass(frozen=True)
class Row:
    line: int
    zone: str
    expression: str
    value: str
    type: str


def rows() -> Iterator[Row]:
    zone = "UTC"
    for line, text in enumerate(ROWS.read_text(encoding="utf-8").splitlines(), 1):
        if text.startswith("## "):
            zone = text.removeprefix("## ")
        elif text.strip() and not text.startswith("#"):
            left, kind = text.rsplit(" :: ", 1)
            expression, value = left.rsplit(" -> ", 1)
            yield Row(line, zone, expression.strip(), value.strip(), kind.strip())


def compiled(expression: str) -> Expr:
    return compile_expression(parse_expression(expression), SCOPE, lambda _: None)


@pytest.fixture(scope="module")
def spark(sql_spark: SparkSession) -> SparkSession:
    values = ", ".join(f"{sql} AS `{name}`" for name, (_, sql) in COLUMNS.items())
    frame = sql_spark.sql(f"SELECT {values}")
    frame.localCheckpoint().createOrReplaceTempView("t")
    return sql_spark


def evaluate(spark: SparkSession, expressions: Sequence[Expr]) -> list[tuple[StructType, Any] | str]:
    """Type and value of each, or the error. A batch that fails is halved until the guilty one is alone."""
    items = ", ".join(f"{e.sql} AS r{index}" for index, e in enumerate(expressions))
    try:
        frame = spark.sql(f"SELECT {items} FROM t")
        [found] = frame.collect()
        return [(frame.schema[index].dataType, found[index]) for index in range(len(expressions))]
    except PySparkException as error:
        if len(expressions) == 1:
            return [str(error).splitlines()[0]]
        half = len(expressions) // 2
        return evaluate(spark, expressions[:half]) + evaluate(spark, expressions[half:])


def shown(value: Any, kind: SqlType) -> str:
    if value is None:
        return "NULL"
    if kind.name == "TIMESTAMP":
        return timestamp(value)
    if kind.name == "TIMESTAMP_LTZ":
        return timestamp(value.astimezone(dt.timezone.utc).replace(tzinfo=None)) + "Z"
    if kind.name == "TIME":
        return clock(value)
    if kind.name == "ARRAY":
        assert kind.element is not None
        return "[" + ", ".join(shown(item, kind.element) for item in value) + "]"
    if kind.name == "MAP":
        assert kind.key is not None
        assert kind.element is not None
        pairs = (f"{shown(k, kind.key)}={shown(v, kind.element)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    if kind.name == "ROW":
        return "(" + ", ".join(shown(v, f.type) for v, f in zip(value, kind.fields, strict=True)) + ")"
    return plain(value)


def timestamp(value: dt.datetime) -> str:
    return re.sub(r"\.?0*$", "", value.isoformat(sep=" ", timespec="microseconds"))


def clock(millis: int) -> str:
    seconds, rest = divmod(millis, 1000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{rest:03}".rstrip("0") if rest else text


def plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return (
            "'" + value.encode("unicode_escape").decode().replace("'", "''") + "'" if value.isascii() else repr(value)
        )
    if isinstance(value, bytes | bytearray):
        return f"X'{bytes(value).hex().upper()}'"
    if isinstance(value, float):
        return str(value) if math.isinf(value) or math.isnan(value) else repr(value)
    return str(value) if isinstance(value, int | Decimal | dt.date | dt.timedelta) else repr(value)


def in_single_precision(value: Any, data_type: object) -> Any:
    """PySpark hands a FLOAT on as the DOUBLE beside it; back to the shortest text that means the FLOAT."""
    return float(f"{value:.7g}") if isinstance(data_type, FloatType) and value is not None else value


def difference(row: Row, expression: Expr, result: tuple[Any, Any] | str) -> str | None:
    if isinstance(result, str):
        return (
            None if row.value == "ERROR" else f"line {row.line}: {row.expression} fails: {result}\n  {expression.sql}"
        )
    data_type, value = result
    got = shown(in_single_precision(value, data_type), expression.type)
    spark_type = data_type.simpleString().upper()
    expected_type = expression.type.spark().upper().replace("`", "")
    problems = []
    if row.value not in {"?", got}:
        problems.append(f"is {got}, not {row.value}")
    if str(expression.type) != row.type:
        problems.append(f"has the type {expression.type}, not {row.type}")
    if spark_type != expected_type:
        problems.append(f"is {spark_type} in Spark, not {expected_type}")
    return f"line {row.line}: {row.expression} {', '.join(problems)}\n  {expression.sql}" if problems else None


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_rows(spark: SparkSession, zone: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    wanted = [row for row in rows() if row.zone == zone]
    expressions = [compiled(row.expression) for row in wanted]
    calm = [n for n, row in enumerate(wanted) if row.value != "ERROR"]
    batches = [calm[start : start + BATCH] for start in range(0, len(calm), BATCH)]
    batches += [[n] for n, row in enumerate(wanted) if row.value == "ERROR"]
    problems = []
    for batch in batches:
        results = evaluate(spark, [expressions[n] for n in batch])
        problems += [difference(wanted[n], expressions[n], r) for n, r in zip(batch, results, strict=True)]
    assert "\n".join(filter(None, problems)) == ""


def test_every_signature_and_form_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    used: set[str] = set()
    call = Function.call

    def recording(self: Function, arguments: Sequence[Expr], written: str) -> Expr:
        used.add(self.signature.text)
        return call(self, arguments, written)

    monkeypatch.setattr(Function, "call", recording)
    written = []
    for row in rows():
        written.append(row.expression)
        compiled(row.expression)
    declared = {function.signature.text for group in REGISTRY.functions.values() for function in group}
    missing_forms = {name for name in SPECIAL_CALLS if not any(f"{name}(" in expression for expression in written)}
    assert declared - used == set()
    assert missing_forms == {"CURRENT_WATERMARK"}  # see tests/unit/plan/test_plan_windows.py
