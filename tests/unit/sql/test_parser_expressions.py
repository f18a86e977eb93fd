"""Expressions as trees. `sketch` writes a tree in one line: Add(a, 1)."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import refused_at
from sqlglot import exp

from headwater.errors import SqlError
from headwater.sql.intervals import interval_amount
from headwater.sql.parser import parse_expression
from headwater.sql.trees import name_path
from headwater.sql.writer import write_sql


def sketch(node: Any) -> str:
    if isinstance(node, list):
        return "[" + ", ".join(map(sketch, node)) + "]"
    if not isinstance(node, exp.Expr):
        return str(node)
    if isinstance(node, exp.Literal):
        return f"'{node.name}'" if node.is_string else node.name
    if isinstance(node, exp.Identifier | exp.Var):
        return node.name
    if isinstance(node, exp.Column):
        return ".".join(sketch(part) for part in node.parts)
    if type(node) is exp.DataType:
        return str(node.args["kind"])
    if isinstance(node, exp.Null | exp.Star):
        return type(node).__name__.upper()
    if isinstance(node, exp.Anonymous):
        return f"{node.name}({', '.join(map(sketch, node.expressions))})"
    arguments = [sketch(v) for k, v in node.args.items() if v not in (None, [], False) and k not in _QUIET]
    return f"{type(node).__name__}({', '.join(arguments)})"


_QUIET = {"big_int", "typed", "safe", "nested"}

TREES = [
    # precedence
    ("a + b * 2 - c", "Sub(Add(a, Mul(b, 2)), c)"),
    ("a - b - c", "Sub(Sub(a, b), c)"),
    ("-a * b", "Mul(Neg(a), b)"),
    ("a || b || c", "DPipe(DPipe(a, b), c)"),
    ("a % 2 = 0", "EQ(Mod(a, 2), 0)"),
    ("a OR b AND NOT c", "Or(a, And(b, Not(c)))"),
    ("NOT a = b", "Not(EQ(a, b))"),
    ("a = b IS NULL", "Is(Paren(EQ(a, b)), NULL)"),
    ("a <> b AND a != b", "And(NEQ(a, b), NEQ(a, b))"),
    ("(a + b) * c", "Mul(Paren(Add(a, b)), c)"),
    ("a = b = c", "EQ(EQ(a, b), c)"),
    ("a IS NULL = b", "EQ(Paren(Is(a, NULL)), b)"),
    ("a NOT LIKE b = c", "EQ(Paren(Not(Like(a, b))), c)"),
    ("a = b NOT LIKE c", "EQ(a, Paren(Not(Like(b, c))))"),
    ("a IS NULL IN (TRUE)", "In(Paren(Is(a, NULL)), [Boolean(True)])"),
    ("a = NOT b AND c", "And(EQ(a, Paren(Not(b))), c)"),
    ("NOT NOT a", "Not(Not(a))"),
    ("- - a", "Neg(Neg(a))"),
    ("+a", "a"),
    # names and access
    ("a.b.c", "a.b.c"),
    ("`select`.`a b`", "select.a b"),
    ("a.b.c.d.e", "Dot(a.b.c.d, e)"),
    ("a[1]", "Bracket(a, [1])"),
    ("a.b[i + 1].c", "Dot(Bracket(a.b, [Add(i, 1)]), c)"),
    ("m['k']", "Bracket(m, ['k'])"),
    ("f(x).y", "Dot(f(x), y)"),
    ("t.end", "t.end"),
    ("EXPR$0", "EXPR$0"),
    ("interval + date", "Add(interval, date)"),
    # literals
    ("'it''s'", "'it's'"),
    (r"'a\n'", r"'a\n'"),
    ("N'x'", "'x'"),
    (r"U&'\0041\\\+01F600'", "'A\\\U0001f600'"),
    ("U&'!0041' UESCAPE '!'", "'A'"),
    ("X'0aff'", "HexString(0AFF)"),
    ("1", "1"),
    ("1.5e-3", "1.5e-3"),
    ("TRUE", "Boolean(True)"),
    ("NULL", "NULL"),
    ("DATE '2024-02-29'", "Cast('2024-02-29', DATE)"),
    ("TIME '12:30:00.5'", "Cast('12:30:00.5', TIME(1))"),
    ("TIMESTAMP '2024-01-31 12:30:00'", "Cast('2024-01-31 12:30:00', TIMESTAMP(0))"),
    ("TIMESTAMP '2024-01-31 12:30:00.123'", "Cast('2024-01-31 12:30:00.123', TIMESTAMP(3))"),
    ("INTERVAL '2' SECOND", "Interval('2', SECOND)"),
    ("INTERVAL -'2' DAY", "Interval('-2', DAY)"),
    ("INTERVAL '2' HOURS", "Interval('2', HOUR)"),
    ("INTERVAL '2' WEEK", "Interval('14', DAY)"),
    ("INTERVAL '1-2' YEAR TO MONTH", "Interval('1-2', IntervalSpan(YEAR, MONTH))"),
    ("INTERVAL '1 10:20:30.5' DAY TO SECOND", "Interval('1 10:20:30.5', IntervalSpan(DAY, SECOND))"),
    # constructors
    ("ARRAY[1, 2]", "Array([1, 2])"),
    ("ARRAY[]", "Array()"),
    ("ARRAY[1, 2][1]", "Bracket(Array([1, 2]), [1])"),
    ("MAP['a', 1, 'b', 2]", "Map(Array(['a', 'b']), Array([1, 2]))"),
    ("ROW(1, 'a')", "Struct([1, 'a'])"),
    ("(1, 'a')", "Tuple([1, 'a'])"),
    # predicates
    ("a IS NOT NULL", "Not(Is(a, NULL))"),
    ("a IS TRUE", "Is(a, Boolean(True))"),
    ("a IS NOT UNKNOWN", "Not(Is(a, NULL))"),
    ("a IS DISTINCT FROM b", "NullSafeNEQ(a, b)"),
    ("a IS NOT DISTINCT FROM b", "NullSafeEQ(a, b)"),
    ("a IS JSON OBJECT", "Is(a, JSON(OBJECT))"),
    ("a LIKE 'x%'", "Like(a, 'x%')"),
    ("a NOT LIKE 'x!%' ESCAPE '!'", "Not(Escape(Like(a, 'x!%'), '!'))"),
    ("a NOT SIMILAR TO '[a-z]+'", "Not(SimilarTo(a, '[a-z]+'))"),
    ("a BETWEEN 1 AND 2 AND b", "And(Between(a, 1, 2), b)"),
    ("a NOT BETWEEN SYMMETRIC 2 AND 1", "Not(Between(a, 2, 1, True))"),
    ("a IN (1, 2)", "In(a, [1, 2])"),
    ("a NOT IN (SELECT b FROM t)", "Not(In(a, Subquery(Select([b], From(Table(t))))))"),
    ("EXISTS (SELECT 1)", "Exists(Select([1]))"),
    ("a > ALL (SELECT 1)", "GT(a, All(Select([1])))"),
    ("a = SOME (SELECT 1)", "EQ(a, Any(Select([1])))"),
    # CASE and CAST
    ("CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END", "Case([If(a, 1), If(b, 2)], 3)"),
    ("CASE a WHEN 1 THEN 'x' END", "Case(a, [If(1, 'x')])"),
    ("CAST(a AS DECIMAL(3, 2))", "Cast(a, DECIMAL(3, 2))"),
    ("TRY_CAST(a AS ROW<b INT>)", "TryCast(a, ROW<`b` INT>)"),
    # functions
    ("lower(a)", "lower(a)"),
    ("LOWER(HEX(a))", "LOWER(HEX(a))"),
    ("MOD(a + 1, 7)", "MOD(Add(a, 1), 7)"),
    ("IF(a, b, c)", "IF(a, b, c)"),
    ("COALESCE(a, b)", "COALESCE(a, b)"),
    ("LEFT(a, 1)", "LEFT(a, 1)"),
    ("NOW()", "NOW()"),
    ("current_timestamp", "CURRENT_TIMESTAMP()"),
    ("LOCALTIMESTAMP", "LOCALTIMESTAMP()"),
    ("SUBSTRING(a FROM 2 FOR 3)", "SUBSTRING(a, 2, 3)"),
    ("SUBSTRING(a, 2)", "SUBSTRING(a, 2)"),
    ("POSITION('x' IN a)", "POSITION('x', a)"),
    ("OVERLAY(a PLACING 'x' FROM 2 FOR 1)", "OVERLAY(a, 'x', 2, 1)"),
    ("TRIM(a)", "Trim(a, BOTH)"),
    ("TRIM(LEADING 'x' FROM a)", "Trim(a, 'x', LEADING)"),
    ("TRIM(TRAILING FROM a)", "Trim(a, TRAILING)"),
    ("EXTRACT(DAY FROM a)", "Extract(DAY, a)"),
    ("CEIL(a TO HOUR)", "Ceil(a, HOUR)"),
    ("FLOOR(a)", "Floor(a)"),
    ("TIMESTAMPADD(DAY, 1, a)", "TIMESTAMPADD(DAY, 1, a)"),
    ("TIMESTAMPDIFF(SECONDS, a, b)", "TIMESTAMPDIFF(SECOND, a, b)"),
    ("f(size => 3)", "f(Kwarg(size, 3))"),
    (
        "JSON_VALUE(a, '$.b' RETURNING INT NULL ON EMPTY DEFAULT 0 ON ERROR)",
        "JSON_VALUE(a, '$.b', Kwarg(RETURNING, INT), Kwarg(ON_EMPTY, NULL), Kwarg(ON_ERROR, 0))",
    ),
    (
        "JSON_QUERY(a, '$.b' WITH CONDITIONAL ARRAY WRAPPER EMPTY ARRAY ON ERROR)",
        "JSON_QUERY(a, '$.b', Kwarg(WRAPPER, CONDITIONAL), Kwarg(ON_ERROR, EMPTY ARRAY))",
    ),
    ("JSON_EXISTS(a, '$.b' FALSE ON ERROR)", "JSON_EXISTS(a, '$.b', Kwarg(ON_ERROR, FALSE))"),
    ("JSON_OBJECT(KEY 'a' VALUE 1, 'b' VALUE c ABSENT ON NULL)", "JSON_OBJECT('a', 1, 'b', c, Kwarg(ON_NULL, ABSENT))"),
    ("JSON_ARRAY(1, NULL NULL ON NULL)", "JSON_ARRAY(1, NULL, Kwarg(ON_NULL, NULL))"),
    # aggregates and windows
    ("COUNT(*)", "Count(STAR)"),
    ("COUNT(DISTINCT a)", "Count(Distinct([a]))"),
    ("ARRAY_AGG(a IGNORE NULLS)", "IgnoreNulls(ARRAY_AGG(a))"),
    ("SUM(a) FILTER (WHERE b > 1)", "Filter(Sum(a), Where(GT(b, 1)))"),
    ("LISTAGG(a, ',') WITHIN GROUP (ORDER BY b)", "WithinGroup(LISTAGG(a, ','), Order([Ordered(b, True)]))"),
    ("ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC)", "Window(RowNumber(), [a], Order([Ordered(b, True)]), OVER)"),
    ("SUM(a) OVER w", "Window(Sum(a), OVER, w)"),
    ("LAG(a, 1) IGNORE NULLS OVER (ORDER BY b)", "Window(IgnoreNulls(LAG(a, 1)), Order([Ordered(b, True)]), OVER)"),
    (
        "SUM(a) OVER (ORDER BY b ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
        "Window(Sum(a), Order([Ordered(b, True)]), WindowSpec(ROWS, 2, PRECEDING, CURRENT ROW), OVER)",
    ),
    (
        "SUM(a) OVER (ORDER BY b RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND UNBOUNDED FOLLOWING)",
        (
            "Window(Sum(a), Order([Ordered(b, True)]), "
            "WindowSpec(RANGE, Interval('1', HOUR), PRECEDING, UNBOUNDED, FOLLOWING), OVER)"
        ),
    ),
]


@pytest.mark.parametrize(("text", "tree"), TREES)
def test_the_tree_of_an_expression(text: str, tree: str) -> None:
    assert _sorted(sketch(parse_expression(text))) == _sorted(tree)


def _sorted(text: str) -> str:
    """Windows list their parts in the order they were set; the order is no part of the contract."""
    return "".join(sorted(text)) if "Window(" in text else text


@pytest.mark.parametrize("text", [text for text, _ in TREES])
def test_a_tree_is_written_so_that_it_reads_back(text: str) -> None:
    node = parse_expression(text)
    assert parse_expression(write_sql(node)) == node


@pytest.mark.parametrize(
    ("text", "path"),
    [("a", ["a"]), ("a.b.c.d.e.f", ["a", "b", "c", "d", "e", "f"]), ("t.*", ["t"])],
)
def test_the_names_of_a_path_come_in_order(text: str, path: list[str]) -> None:
    assert [name.name for name in name_path(parse_expression(text))] == path


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("INTERVAL '2' SECOND", ("micros", 2_000_000)),
        ("INTERVAL '0.25' SECOND", ("micros", 250_000)),
        ("INTERVAL '1:30' MINUTE TO SECOND", ("micros", 90_000_000)),
        ("INTERVAL '1 02:03:04.5' DAY TO SECOND", ("micros", 93_784_500_000)),
        ("INTERVAL -'10' MINUTE", ("micros", -600_000_000)),
        ("INTERVAL '-1-2' YEAR TO MONTH", ("months", -14)),
        ("INTERVAL '3' YEAR", ("months", 36)),
        ("INTERVAL '1' QUARTER", ("months", 3)),
    ],
)
def test_what_an_interval_is_worth(text: str, amount: tuple[str, int]) -> None:
    node = parse_expression(text)
    assert isinstance(node, exp.Interval)
    assert interval_amount(node) == amount


WRONG = [
    # text, column, length, fact
    ("", 1, 1, "Expected an expression, found the end of the statement"),
    ("a +", 4, 1, "Expected an expression, found the end of the statement"),
    ("a + * b", 5, 1, "Expected an expression, found '*'"),
    ("(a", 3, 1, "Expected ')', found the end of the statement"),
    ("a)", 2, 1, "Unexpected ')'"),
    ("f(a,)", 5, 1, "Expected an expression, found ')'"),
    ("f(,a)", 3, 1, "Expected an expression, found ','"),
    ("a b", 3, 1, "Unexpected 'b'"),
    ("a == b", 4, 1, "Expected an expression, found '='"),
    ("a << 2", 4, 1, "Expected an expression, found '<'"),
    ("a & b", 3, 1, "Unexpected '&'"),
    ("?", 1, 1, "Expected an expression, found '?'"),
    ("a::INT", 2, 1, "Unexpected ':'"),
    ("a -> b", 4, 1, "Expected an expression, found '>'"),
    ('"a"', 1, 3, 'Expected an expression, found "a"'),
    ("'a' 'b'", 5, 3, "Two strings side by side"),
    ("1abc", 1, 1, "'1abc' is neither a number nor a name"),
    ("0x1F", 1, 1, "'0x1F' is neither a number nor a name"),
    ("1e", 1, 2, "'1e' is not a number"),
    ("X'0'", 2, 3, "A binary literal consists of pairs of hexadecimal digits"),
    ("X'0G'", 2, 4, "A binary literal consists of pairs of hexadecimal digits"),
    (r"U&'\00'", 1, 7, r"Wrong Unicode escape: expected \XXXX or \+XXXXXX (hexadecimal)"),
    (r"U&'\+FFFFFF'", 1, 12, "A Unicode escape is beyond the last code point, 10FFFF"),
    ("DATE '2023-02-29'", 6, 12, "'2023-02-29' is not a DATE"),
    ("TIME '25:00:00'", 6, 10, "'25:00:00' is not a TIME"),
    ("TIMESTAMP '2024-01-31'", 11, 12, "'2024-01-31' is not a TIMESTAMP"),
    ("INTERVAL 5.5 DAY", 10, 3, "The value of an INTERVAL is a string or a whole number"),
    (
        "INTERVAL '5'",
        13,
        1,
        "Expected YEAR or MONTH or DAY or HOUR or MINUTE or SECOND, found the end of the statement",
    ),
    ("INTERVAL 'x' DAY", 10, 3, "'x' is not an INTERVAL of DAY"),
    ("INTERVAL '5' DAY TO SECOND", 10, 3, "'5' is not an INTERVAL of DAY TO SECOND"),
    ("INTERVAL '5' SECOND TO DAY", 24, 3, "Expected the end of the interval, found 'DAY'"),
    ("CASE a WHEN 1 'x' END", 15, 3, "Expected 'THEN', found the string 'x'"),
    ("CASE a END", 8, 3, "Expected 'WHEN', found 'END'"),
    ("CASE WHEN a THEN 1", 19, 1, "Expected 'END', found the end of the statement"),
    ("a BETWEEN 1, 2", 12, 1, "Expected 'AND', found ','"),
    ("a BETWEEN AND 2", 11, 3, "Expected an expression, found 'AND'"),
    ("a IN 1", 6, 1, "Expected '(', found '1'"),
    ("a IN ()", 7, 1, "Expected an expression, found ')'"),
    ("a IS b", 6, 1, "Expected NULL, TRUE, FALSE, UNKNOWN, DISTINCT FROM or JSON, found 'b'"),
    ("a LIKE 'x' ESCAPE '!!'", 19, 4, "ESCAPE takes one character"),
    ("CAST(a, INT)", 7, 1, "Expected 'AS', found ','"),
    ("CAST(a AS)", 10, 1, "Expected a type, found ')'"),
    ("EXTRACT(FOO FROM a)", 9, 3, "Expected a unit of time, found 'FOO'"),
    ("TIMESTAMPADD('DAY', 1, a)", 14, 5, "Expected a unit of time, found the string 'DAY'"),
    ("MAP['a']", 1, 3, "MAP[…] needs a value for every key"),
    ("COUNT()", 1, 5, "COUNT needs an argument"),
    ("SUM(a, b)", 1, 3, "Wrong number of arguments for SUM"),
    ("SUM(*)", 1, 3, "SUM takes no star: only COUNT does"),
    ("f(SELECT 1)", 3, 6, "A query as an argument needs parentheses of its own"),
    ("a.", 3, 1, "Expected the name of a field, found the end of the statement"),
    ("a.1", 3, 1, "Expected the name of a field, found '1'"),
    ("a[", 3, 1, "Expected an expression, found the end of the statement"),
    ("``", 1, 2, "A name cannot be empty"),
    ("SUM(a) OVER (ROWS 5)", 20, 1, "Expected 'PRECEDING' or 'FOLLOWING', found ')'"),
    ("SUM(a) FILTER (b)", 16, 1, "Expected 'WHERE', found 'b'"),
    ("select", 1, 6, "Expected an expression, found 'select'"),
    ("{# jinja #}", 1, 1, "Expected an expression, found '{'"),
    ("a IN (1) + 2", 10, 1, "Unexpected '+'"),
    ("NOT a IS NULL + 2", 15, 1, "Unexpected '+'"),
    ("!a", 1, 1, "Expected an expression, found '!'"),
    ("a NOT NULL", 3, 3, "Unexpected 'NOT'"),
    ("a.'b'", 3, 3, "Expected the name of a field, found the string 'b'"),
    ("a `IS` NULL", 3, 4, "Unexpected 'IS'"),
    ("CASE WHEN a `THEN` 1 END", 13, 6, "Expected 'THEN', found 'THEN'"),
]


@pytest.mark.parametrize(("text", "column", "length", "fact"), WRONG)
def test_a_wrong_expression_is_refused_at_its_place(text: str, column: int, length: int, fact: str) -> None:
    assert refused_at(parse_expression, text) == (1, column, length, fact)


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    with pytest.raises(SqlError, match="nested too deeply"):
        parse_expression("(" * 5000 + "1" + ")" * 5000)
