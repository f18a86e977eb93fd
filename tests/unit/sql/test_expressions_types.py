"""Types and texts of expressions, without Spark. Values are checked in test_functions_evaluated."""

from __future__ import annotations

import pytest

from headwater.sql.expressions import Scope, ScopeColumn, compile_expression, compile_predicate
from headwater.sql.parser import parse_expression, parse_type
from headwater.sql.typed import Expr

COLUMNS = {
    "a": "INT",
    "b": "BIGINT NOT NULL",
    "d": "DECIMAL(10, 2)",
    "x": "DOUBLE",
    "s": "STRING",
    "q": "STRING NOT NULL",
    "ts": "TIMESTAMP(3)",
    "r": "ROW<n INT NOT NULL, inner_row ROW<z STRING>>",
    "l": "ARRAY<STRING NOT NULL>",
    "m": "MAP<STRING, INT>",
    "odd ` name": "INT",
}
SCOPE = Scope(tuple(ScopeColumn("t", name, name, parse_type(kind)) for name, kind in COLUMNS.items()))


def compiled(text: str) -> Expr:
    return compile_expression(parse_expression(text), SCOPE, lambda _: None)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1", "INT NOT NULL"),
        ("2147483648", "BIGINT NOT NULL"),
        ("-2147483648", "INT NOT NULL"),
        ("-9223372036854775808", "BIGINT NOT NULL"),
        ("0.50", "DECIMAL(3, 2) NOT NULL"),
        ("12.5", "DECIMAL(3, 1) NOT NULL"),
        ("1e0", "DOUBLE NOT NULL"),
        ("TRUE", "BOOLEAN NOT NULL"),
        ("NULL", "NULL"),
        ("X'00'", "BYTES NOT NULL"),
        ("TIMESTAMP '2024-01-01 00:00:00.123'", "TIMESTAMP(3) NOT NULL"),
        ("INTERVAL '1' DAY", "INTERVAL DAY NOT NULL"),
        ("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL YEAR NOT NULL"),
        ("a + b", "BIGINT"),
        ("b + 1", "BIGINT NOT NULL"),
        ("a / 2", "INT"),
        ("b % CAST(3 AS TINYINT)", "TINYINT NOT NULL"),
        ("d * d", "DECIMAL(21, 4)"),
        ("d + a", "DECIMAL(13, 2)"),
        ("d + x", "DOUBLE"),
        ("CAST(a AS DECIMAL(38, 18)) / d", "DECIMAL(38, 16)"),
        ("a = 1", "BOOLEAN"),
        ("b = 1", "BOOLEAN NOT NULL"),
        ("a IS NULL", "BOOLEAN NOT NULL"),
        ("a IS DISTINCT FROM NULL", "BOOLEAN NOT NULL"),
        ("q || 'x'", "STRING NOT NULL"),
        ("q || s", "STRING"),
        ("CASE WHEN a = 1 THEN 1 END", "INT"),
        ("CASE WHEN a = 1 THEN 1 ELSE 2.5 END", "DECIMAL(11, 1) NOT NULL"),
        ("COALESCE(a, b)", "BIGINT NOT NULL"),
        ("NULLIF(b, 1)", "BIGINT"),
        ("r.n", "INT"),
        ("t.r.inner_row.z", "STRING"),
        ("l[1]", "STRING"),
        ("m['k']", "INT"),
        ("ARRAY[1, 2.5]", "ARRAY<DECIMAL(11, 1) NOT NULL> NOT NULL"),
        ("ARRAY[a]", "ARRAY<INT> NOT NULL"),
        ("MAP['k', a]", "MAP<STRING NOT NULL, INT> NOT NULL"),
        ("ROW(a, 'x')", "ROW<`EXPR$0` INT, `EXPR$1` STRING NOT NULL> NOT NULL"),
        ("CAST(b AS STRING)", "STRING NOT NULL"),
        ("TRY_CAST(b AS INT)", "INT"),
        ("CAST(NULL AS INT)", "INT"),
        ("ts + INTERVAL '1' DAY", "TIMESTAMP(3)"),
        ("CURRENT_TIMESTAMP", "TIMESTAMP_LTZ(3) NOT NULL"),
        ("ROUND(d, 1)", "DECIMAL(10, 1)"),
        ("FLOOR(d)", "DECIMAL(10, 0)"),
    ],
)
def test_type(expression: str, expected: str) -> None:
    assert str(compiled(expression).type) == expected


@pytest.mark.parametrize(
    ("expression", "refs", "column"),
    [
        ("a", {"a"}, "a"),
        ("t.a", {"a"}, "a"),
        ("(a)", {"a"}, "a"),
        ("a + b * a", {"a", "b"}, None),
        ("r.n", {"r"}, None),
        ("1", set(), None),
        ("CASE WHEN a = 1 THEN s ELSE q END", {"a", "s", "q"}, None),
        ("JSON_VALUE(s, '$.x' DEFAULT q ON ERROR)", {"s", "q"}, None),
        ("CAST(s AS STRING)", {"s"}, "s"),
    ],
)
def test_what_is_read(expression: str, refs: set[str], column: str | None) -> None:
    result = compiled(expression)
    assert result.refs == refs
    assert result.column == column


@pytest.mark.parametrize(
    ("expression", "deterministic"),
    [("a + 1", True), ("RAND() + a", False), ("UPPER(UUID())", False), ("CURRENT_DATE", False), ("NOW() > ts", False)],
)
def test_what_changes_by_itself(expression: str, deterministic: bool) -> None:
    assert compiled(expression).deterministic is deterministic


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("upper(s)", "UPPER(s)"),
        ("a + 1 > b", "((a + 1) > b)"),
        ("s LIKE 'x%' ESCAPE '!'", "s LIKE 'x%' ESCAPE '!'"),
        ("s NOT LIKE 'it''s'", "s NOT LIKE 'it''s'"),
        ("a IS NOT NULL", "a IS NOT NULL"),
        ("a NOT IN (1, 2)", "a NOT IN (1, 2)"),
        ("NOT (a = 1 AND b = 2)", "NOT ((a = 1) AND (b = 2))"),
        ("CAST(a AS STRING)", "CAST(a AS STRING)"),
        ("CASE a WHEN 1 THEN 'x' ELSE 'y' END", "CASE a WHEN 1 THEN 'x' ELSE 'y' END"),
        ("ts - INTERVAL '1' DAY", "(ts - INTERVAL '1' DAY)"),
        ("EXTRACT(HOUR FROM ts)", "EXTRACT(HOUR FROM ts)"),
        ("r.inner_row.z", "r.inner_row.z"),
        ("m['k']", "m['k']"),
        ("JSON_VALUE(s, '$.a' RETURNING INT)", "JSON_VALUE(s, '$.a' RETURNING INT)"),
        ("COALESCE(a, d)", "COALESCE(a, d)"),
    ],
)
def test_text_for_explain(expression: str, text: str) -> None:
    assert compiled(expression).text == text


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        ("a", "`a`"),
        ("`odd `` name`", "`odd `` name`"),
        ("'it''s a \\ $${x}'", r"'it\'s a \\ \u0024{x}'"),
        ("a / 2", "CAST(`a` DIV 2 AS INT)"),
        ("a + b", "(CAST(`a` AS BIGINT) + `b`)"),
        ("b = 5000000000", "(`b` = 5000000000L)"),
        ("s LIKE 'a\\b%'", r"(`s` LIKE 'a\\\\b%')"),
        ("r.n", "(`r`).`n`"),
        ("l[2]", "get(`l`, 1)"),
        ("x / 2", "(`x` / CAST(2 AS DOUBLE))"),
    ],
)
def test_sql(expression: str, sql: str) -> None:
    assert compiled(expression).sql == sql


def test_a_column_keeps_its_inner_name() -> None:
    scope = Scope((ScopeColumn("t", "a", "__c7", parse_type("INT")),))
    result = compile_expression(parse_expression("t.a + 1"), scope, lambda _: None)
    assert (result.sql, result.refs, result.text) == ("(`__c7` + 1)", {"__c7"}, "(a + 1)")


def test_a_predicate_is_boolean() -> None:
    assert str(compile_predicate(parse_expression("NULL"), SCOPE, lambda _: None).type) == "BOOLEAN"


def test_a_long_chain_is_no_deep_tree() -> None:
    text = " OR ".join(f"a = {n}" for n in range(400))
    assert compiled(text).sql.count("=") == 400


def test_a_long_concatenation_is_one_call() -> None:
    text = " || ".join(["q"] * 400)
    assert compiled(text).sql == f"concat({', '.join(['`q`'] * 400)})"


def test_what_changes_by_itself_is_bound_to_a_variable() -> None:
    sql = compiled("RAND() BETWEEN 0 AND 1").sql
    assert sql.count("'random'") == 1
    assert sql.startswith("transform(array(CAST(java_method('java.lang.Math', 'random') AS DOUBLE)), `__hw_v0` -> ")
