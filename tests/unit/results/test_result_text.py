"""How rows are written: tables, CSV, JSON, changes, HTML."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from headwater.plan.nodes import Column
from headwater.results.html import RUNNING, html_table
from headwater.results.query import Change
from headwater.results.text import change_line, csv_changes, csv_lines, json_changes, json_lines, json_text, table_lines
from headwater.results.values import cell_text, json_value, python_values
from headwater.sql.parser import parse_type
from headwater.sql.types import BIGINT, STRING

WHO, N = Column("who", STRING), Column("n", BIGINT)
UTC = dt.timezone.utc
WHEN = dt.datetime(2024, 1, 31, 12, 0, 0, 123456, UTC)

VALUES: list[tuple[str, Any, str, Any]] = [
    ("INT", None, "NULL", None),
    ("BOOLEAN", True, "TRUE", True),
    ("FLOAT", 0.10000000149011612, "0.1", 0.1),
    ("FLOAT", 1.0000000150474662e30, "1e+30", 1e30),
    ("DOUBLE", float("nan"), "NaN", "NaN"),
    ("DOUBLE", float("-inf"), "-Infinity", "-Infinity"),
    ("DOUBLE", 0.1, "0.1", 0.1),
    ("DECIMAL(10, 2)", Decimal("1.50"), "1.50", 1.5),
    ("DECIMAL(38, 0)", Decimal("12345678901234567890"), "12345678901234567890", "12345678901234567890"),
    ("BYTES", b"\x00\xff", "x'00ff'", "AP8="),
    ("DATE", dt.date(2024, 1, 31), "2024-01-31", "2024-01-31"),
    ("TIME(3)", dt.time(1, 2, 3, 4000), "01:02:03.004", "01:02:03.004"),
    ("TIMESTAMP(3)", WHEN.replace(tzinfo=None), "2024-01-31 12:00:00.123", "2024-01-31 12:00:00.123"),
    ("TIMESTAMP_LTZ(6)", WHEN, "2024-01-31 12:00:00.123456", "2024-01-31 12:00:00.123456"),
    ("TIMESTAMP(0)", dt.datetime(1, 1, 1), "0001-01-01 00:00:00", "0001-01-01 00:00:00"),  # noqa: DTZ001
    ("ARRAY<INT>", [1, None], "[1, NULL]", [1, None]),
    ("MAP<STRING, DECIMAL(3, 1)>", {"a": Decimal("1.0")}, "{a=1.0}", {"a": 1.0}),
    ("MULTISET<STRING>", {"a": 2}, "{a=2}", {"a": 2}),
    ("ROW<a INT, t TIME(0)>", {"a": 1, "t": dt.time(1)}, "(1, 01:00:00)", {"a": 1, "t": "01:00:00"}),
]


@pytest.mark.parametrize(("kind", "value", "text", "in_json"), VALUES, ids=lambda v: str(v)[:20])
def test_values(kind: str, value: Any, text: str, in_json: Any) -> None:
    assert cell_text(value, parse_type(kind)) == text
    assert json_value(value, parse_type(kind)) == in_json
    json.dumps(json_value(value, parse_type(kind)))


def test_what_arrow_gives_becomes_what_python_has() -> None:
    assert python_values([3_723_004, None], parse_type("TIME(3)")) == [dt.time(1, 2, 3, 4000), None]
    nested = parse_type("ROW<m MAP<STRING, ARRAY<TIME(0)>>>")
    assert python_values([{"m": [("a", [0])]}], nested) == [{"m": {"a": [dt.time(0)]}}]


def test_a_table_is_aligned_and_counts_its_rows() -> None:
    rows = [("ann", 1), ("日本", 1234), (None, None), ("two\nlines", 2)]
    assert list(table_lines([WHO, N], rows)) == [
        "who       |      n",
        "STRING    | BIGINT",
        "----------+-------",
        "ann       |      1",
        "日本      |   1234",
        "NULL      |   NULL",
        "two⏎lines |      2",
        "4 rows",
    ]
    assert list(table_lines([WHO], [("a",), ("b" * 99,)], 1))[-1] == "2 rows, 1 of them shown"
    assert list(table_lines([WHO], [("b" * 99,)]))[3] == "b" * 59 + "…"
    assert list(table_lines([N], []))[-1] == "0 rows"
    narrow = list(table_lines([WHO, WHO, N], [("a" * 50, "日本" * 20, 1)], room=30))
    assert narrow[3] == "aaaaaaaa… | 日本日本… |      1"
    assert max(map(len, narrow)) <= 30


def test_csv_tells_null_from_an_empty_string() -> None:
    rows = [("a,b", 1), (None, None), ("", 2), ('say "x"', 3)]
    assert list(csv_lines([WHO, N], rows)) == ["who,n", '"a,b",1', ",", '"",2', '"say ""x""",3']
    assert list(csv_changes([WHO, N], [Change("-D", ("a", 1))])) == ["op,who,n", "-D,a,1"]


def test_json() -> None:
    rows = [("ä", 1), (None, 2)]
    assert list(json_lines([WHO, N], rows)) == ['{"who": "ä", "n": 1}', '{"who": null, "n": 2}']
    assert list(json_changes([WHO, N], [Change("+U", ("a", 1))])) == ['{"op": "+U", "who": "a", "n": 1}']
    assert json.loads("\n".join(json_text([WHO, N], rows))) == [{"who": "ä", "n": 1}, {"who": None, "n": 2}]
    assert list(json_text([WHO], [])) == ["[]"]


def test_a_change_is_one_line() -> None:
    assert change_line(Change("-U", ("a\nb", None)), [WHO, N]) == "-U[a⏎b, NULL]"


def test_html_is_escaped() -> None:
    shown = html_table([Column("<b>", STRING), N], [("<script>", 1)], 7, RUNNING)
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "&lt;b&gt;" in shown
    assert "7 rows, the first 1 shown, running" in shown
