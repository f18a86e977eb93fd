"""COUNT, SUM, AVG, MIN, MAX: result types as in Flink, arguments, filters."""

from __future__ import annotations

import pytest

from headwater.sql.expressions import Scope, ScopeColumn, compile_aggregate, is_aggregate
from headwater.sql.parser import parse_expression, parse_type

COLUMNS = {
    "ti": "TINYINT",
    "i": "INT",
    "k": "INT NOT NULL",
    "b": "BIGINT",
    "f": "FLOAT",
    "x": "DOUBLE",
    "d": "DECIMAL(10, 2)",
    "e": "DECIMAL(20, 10)",
    "s": "STRING",
    "flag": "BOOLEAN",
    "tm": "TIME",
    "ts": "TIMESTAMP(3)",
    "l": "ARRAY<INT>",
}
SCOPE = Scope(tuple(ScopeColumn("t", name, name, parse_type(kind)) for name, kind in COLUMNS.items()))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("COUNT(*)", "BIGINT NOT NULL"),
        ("COUNT(s)", "BIGINT NOT NULL"),
        ("COUNT(l)", "BIGINT NOT NULL"),
        ("COUNT(DISTINCT s)", "BIGINT NOT NULL"),
        ("SUM(ti)", "TINYINT"),
        ("SUM(i)", "INT"),
        ("SUM(k)", "INT"),
        ("SUM(b)", "BIGINT"),
        ("SUM(f)", "FLOAT"),
        ("SUM(x)", "DOUBLE"),
        ("SUM(d)", "DECIMAL(38, 2)"),
        ("AVG(i)", "INT"),
        ("AVG(x)", "DOUBLE"),
        ("AVG(d)", "DECIMAL(38, 6)"),
        ("AVG(e)", "DECIMAL(38, 10)"),
        ("MIN(s)", "STRING"),
        ("MAX(k)", "INT"),
        ("MAX(flag)", "BOOLEAN"),
        ("MIN(tm)", "TIME(0)"),
        ("MAX(ts)", "TIMESTAMP(3)"),
    ],
)
def test_type(call: str, expected: str) -> None:
    assert str(compile_aggregate(parse_expression(call), SCOPE, lambda _: None).type) == expected


def test_parts() -> None:
    call = compile_aggregate(parse_expression("SUM(DISTINCT i + 1) FILTER (WHERE s = 'a')"), SCOPE, lambda _: None)
    assert call.function == "SUM"
    assert call.argument is not None
    assert (call.argument.sql, call.argument.refs) == ("(`i` + 1)", {"i"})
    assert call.distinct
    assert call.filter is not None
    assert call.filter.sql == "(`s` = 'a')"
    assert call.text == "SUM(DISTINCT (i + 1)) FILTER (WHERE (s = 'a'))"


def test_count_star_has_no_argument() -> None:
    call = compile_aggregate(parse_expression("COUNT(*)"), SCOPE, lambda _: None)
    assert (call.argument, call.distinct, call.text) == (None, False, "COUNT(*)")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("COUNT(*)", True),
        ("SUM(i) FILTER (WHERE flag)", True),
        ("SUM(i) OVER (PARTITION BY s)", False),
        ("SUM(i) + 1", False),
        ("UPPER(s)", False),
        ("i", False),
    ],
)
def test_is_aggregate(expression: str, expected: bool) -> None:
    assert is_aggregate(parse_expression(expression)) is expected
