"""What is refused, where the caret stands, and what the message says."""

from __future__ import annotations

import pytest

from headwater.errors import SqlError
from headwater.sql.expressions import Scope, ScopeColumn, compile_aggregate, compile_expression, compile_predicate
from headwater.sql.parser import parse_expression, parse_type
from headwater.sql.script import Script, position_of

COLUMNS = {
    "id": "INT",
    "name": "STRING",
    "price": "DOUBLE",
    "flag": "BOOLEAN",
    "dt": "DATE",
    "ts": "TIMESTAMP(3)",
    "ltz": "TIMESTAMP_LTZ(3)",
    "tm": "TIME",
    "tags": "ARRAY<STRING>",
    "props": "MAP<STRING, INT>",
    "r": "ROW<city STRING, zip INT>",
}
SCOPE = Scope(
    (
        *(ScopeColumn("orders", name, name, parse_type(kind)) for name, kind in COLUMNS.items()),
        ScopeColumn("users", "id", "u_id", parse_type("INT")),
        ScopeColumn("users", "region", "u_region", parse_type("STRING")),
    )
)


def refused(text: str, compile_=compile_expression) -> SqlError:  # type: ignore[no-untyped-def]
    script = Script(text)
    with pytest.raises(SqlError) as caught:
        compile_(parse_expression(text), SCOPE, lambda node: position_of(node, script))
    return caught.value


@pytest.mark.parametrize(
    ("expression", "column", "fact"),
    [
        # names
        ("1 + nam", 5, "Unknown column 'nam'"),
        ("NAME", 1, "Unknown column 'NAME'"),
        ("id = 1", 1, "Column 'id' is ambiguous"),
        ("users.name", 7, "Unknown column 'name' in 'users'"),
        ("order.name", 1, "'order' is neither a table in FROM nor a column"),
        ("r.street", 1, "'r' has no field 'street'"),
        ("name.x", 1, "'name' is STRING and has no field 'x'"),
        ("orders.*", 1, "A star cannot be part of an expression"),
        ("tags['a']", 1, "The index of ARRAY<STRING> must be a whole number, not STRING"),
        ("tags[0]", 1, "Positions in an array count from 1, not 0"),
        ("props[1]", 1, "The index of MAP<STRING, INT> must be STRING, not INT"),
        ("name[1]", 1, "'name' is STRING and has no elements"),
        ("r[3]", 1, "'r' has the fields 1 to 2"),
        # functions
        ("UPER(name)", 1, "Unknown function UPER"),
        ("2 * frobnicate(name)", 5, "Unknown function FROBNICATE"),
        ("STDDEV_POP(price)", 1, "STDDEV_POP is not allowed here"),
        ("PERCENT_RANK()", 1, "PERCENT_RANK is not supported"),
        ("UPPER()", 1, "UPPER does not take 0 arguments"),
        ("UPPER(name, name)", 1, "UPPER does not take 2 arguments"),
        ("UPPER(price)", 7, "Argument 1 of UPPER must be STRING, not DOUBLE"),
        ("LPAD(name, 'x', name)", 12, "Argument 2 of LPAD must be INT, not STRING"),
        ("ABS(name)", 5, "Argument 1 of ABS must be a number, not STRING"),
        ("ROUND(price, users.id)", 14, "Argument 2 of ROUND must be a literal INT, not INT"),
        ("HEX(price)", 1, "HEX does not take (DOUBLE)"),
        ("COALESCE(name, price)", 16, "Argument 2 of COALESCE must be STRING, not DOUBLE"),
        ("ARRAY_CONTAINS(tags, 1)", 22, "Argument 2 of ARRAY_CONTAINS must be STRING, not INT"),
        ("SHA2(name, 100)", 12, "SHA2 supports 224, 256, 384 or 512 bits"),
        ("ENCODE(name, 'latin')", 14, "Unknown character set 'latin'"),
        ("DATE_FORMAT(ts, 'YYYY')", 17, "The letter 'Y' is not supported in a date format"),
        ("TO_TIMESTAMP(name, 'yyyy X')", 20, "A TIMESTAMP has no time zone"),
        ("TO_TIMESTAMP_LTZ(1, 12)", 21, "The precision must be between 0 and 9"),
        ("EXTRACT(DAY FROM name)", 18, "A value of type STRING has no DAY"),
        ("EXTRACT(YEAR FROM tm)", 19, "A TIME has no YEAR"),
        ("FLOOR(name TO DAY)", 7, "FLOOR TO DAY takes a DATE, TIME, TIMESTAMP or TIMESTAMP_LTZ, not STRING"),
        ("TIMESTAMPADD(DAY, 1.5, ts)", 19, "TIMESTAMPADD adds a whole number of units, not DECIMAL(2, 1)"),
        ("TIMESTAMPDIFF(DAY, ts, ltz)", 24, "TIMESTAMPDIFF cannot take TIMESTAMP(3) and TIMESTAMP_LTZ(3) together"),
        ("JSON_VALUE(name, name)", 18, "The path of JSON_VALUE must be a literal"),
        ("JSON_VALUE(name, '$.a[*]')", 18, "The JSON path '$.a[*]' is not supported"),
        ("JSON_VALUE(name, 'a')", 18, "The JSON path 'a' is not supported"),
        ("JSON_VALUE(price, '$.a')", 12, "Argument 1 of JSON_VALUE must be STRING, not DOUBLE"),
        ("JSON_VALUE(name, '$.a' RETURNING DATE)", 1, "JSON_VALUE cannot return DATE"),
        ("JSON_STRING(dt)", 13, "A value of type DATE has no JSON form"),
        ("JSON_OBJECT(name VALUE 1)", 13, "A key of JSON_OBJECT must be a literal string"),
        ("UPPER(DISTINCT name)", 7, "UPPER takes no DISTINCT"),
        ("MOD(1, 2, 3)", 1, "MOD takes two arguments"),
        ("ABS(NULL)", 1, "ABS of NULL alone has no type"),
        # operators
        ("name + 1", 1, "There is no STRING + INT"),
        ("dt - dt", 1, "There is no DATE - DATE"),
        ("ts + 1", 1, "There is no TIMESTAMP(3) + INT"),
        ("price % 2", 1, "% takes whole numbers or decimals"),
        ("-name", 1, "There is no minus of STRING"),
        ("name || 1", 9, "|| joins strings, not INT"),
        ("name = 1", 1, "STRING with INT cannot be compared"),
        ("dt < ts", 1, "DATE with TIMESTAMP(3) cannot be compared"),
        ("r < r", 1, "Values of type ROW<`city` STRING, `zip` INT> have no order"),
        ("name IN ('a', 2)", 1, "STRING with INT cannot be compared"),
        ("flag BETWEEN 1 AND 2", 1, "BOOLEAN with INT cannot be compared"),
        ("price LIKE 'a'", 1, "LIKE compares strings, not DOUBLE"),
        ("name LIKE 'a!b' ESCAPE '!'", 1, "In a LIKE pattern '!' must stand before %, _ or '!'"),
        ("name SIMILAR TO name", 1, "The pattern of SIMILAR TO must be a literal"),
        ("flag AND price", 10, "Each side of AND must be BOOLEAN, not DOUBLE"),
        ("NOT name", 5, "What follows NOT must be BOOLEAN, not STRING"),
        ("price IS TRUE", 1, "What is before IS TRUE must be BOOLEAN, not DOUBLE"),
        ("price IS JSON", 1, "IS JSON tests a string, not DOUBLE"),
        # choices
        ("CASE WHEN price THEN 1 END", 11, "A condition of CASE must be BOOLEAN, not DOUBLE"),
        ("CASE WHEN flag THEN 1 ELSE name END", 1, "The results of CASE have no common type: INT, STRING"),
        ("CASE WHEN flag THEN NULL END", 1, "The results of CASE have no common type: NULL"),
        ("CASE name WHEN 1 THEN 2 END", 16, "STRING with INT cannot be compared"),
        ("IF(price, 1, 2)", 4, "Argument 1 of IF must be BOOLEAN, not DOUBLE"),
        ("CAST(price AS DATE)", 1, "A value of type DOUBLE cannot be cast to DATE"),
        ("CAST(users.id AS TIMESTAMP_LTZ(3))", 1, "A value of type INT cannot be cast to TIMESTAMP_LTZ(3)"),
        ("CAST(r AS ROW<a INT>)", 1, "A value of type ROW<`city` STRING, `zip` INT> cannot be cast to ROW<`a` INT>"),
        ("ARRAY[1, 'a']", 1, "The elements of an ARRAY have no common type: INT, STRING"),
        ("ROW(1, NULL)", 1, "NULL in a ROW needs a type"),
        ("99999999999999999999", 1, "The number 99999999999999999999 is out of range"),
        # not in an expression
        ("SUM(price) + 1", 1, "SUM is not allowed here"),
        ("COUNT(*)", 1, "COUNT is not allowed here"),
        ("1 + SUM(price) OVER (PARTITION BY name)", 16, "SUM with OVER is not supported here"),
        ("ROW_NUMBER() OVER (ORDER BY name)", 14, "ROW_NUMBER with OVER is not supported here"),
        ("name IN (SELECT region FROM users)", 1, "A query in IN is not supported here"),
        ("EXISTS (SELECT 1)", 1, "A query inside an expression is not supported"),
        ("(SELECT 1) + 1", 1, "A query inside an expression is not supported"),
    ],
)
def test_refused(expression: str, column: int, fact: str) -> None:
    error = refused(expression)
    assert error.fact == fact
    assert error.position is not None
    assert (error.position.line, error.position.column) == (1, column)


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("UPER(name)", "Did you mean UPPER?"),
        ("nam || 'x'", "Did you mean 'name'?"),
        ("id = 1", "Write orders.id or users.id."),
        ("r.citty", "Did you mean 'city'?"),
        ("name = 1", "CAST the string to a number, or write the number without quotes."),
        ("dt - dt", "TIMESTAMPDIFF(SECOND, a, b) gives the time between two values."),
        ("ts + 1", "Add an interval: INTERVAL '1' DAY."),
        ("name + name", "Join strings with ||."),
        ("name || users.id", "Write CAST(id AS STRING)."),
        ("UPPER(users.id)", "CAST(id AS STRING) converts it."),
        ("DATE_FORMAT(ts, 'YYYY')", "Write y (the week-based year Y is not supported)."),
        ("CAST(users.id AS TIMESTAMP_LTZ(3))", "TO_TIMESTAMP_LTZ(number, 3) reads milliseconds"),
    ],
)
def test_hint(expression: str, hint: str) -> None:
    assert refused(expression).hint.startswith(hint)


def test_detail_says_what_is_accepted() -> None:
    assert refused("LPAD(name)").detail == "It is LPAD(STRING, INT, STRING)."
    assert "UNIX_TIMESTAMP() or UNIX_TIMESTAMP(STRING [, STRING])" in refused("UNIX_TIMESTAMP(1, 2, 3)").detail
    assert refused("price = nope").detail.startswith("Columns here: id, name, price")


def test_message_has_a_caret() -> None:
    assert str(refused("UPPER(price)")) == (
        "Argument 1 of UPPER must be STRING, not DOUBLE\n"
        "  at line 1, column 7\n"
        "  1 | UPPER(price)\n"
        "    |       ^^^^^\n"
        "It is UPPER(STRING).\n"
        "Hint: CAST(price AS STRING) converts it."
    )


def test_too_deep() -> None:
    assert refused("price" + " + 1" * 700).fact == "The expression is nested too deeply"


def test_a_condition_is_boolean() -> None:
    error = refused("price", compile_predicate)
    assert error.fact == "The condition must be BOOLEAN, not DOUBLE"


@pytest.mark.parametrize(
    ("expression", "fact"),
    [
        ("SUM(name)", "SUM takes a number, not STRING"),
        ("MAX(tags)", "MAX cannot compare values of type ARRAY<STRING>"),
        ("COUNT(DISTINCT props)", "COUNT(DISTINCT …) cannot compare values of type MAP<STRING, INT>"),
        ("COUNT(name, price)", "COUNT takes one argument"),
        ("COUNT(DISTINCT name, price)", "COUNT takes one argument"),
        ("SUM(SUM(price))", "SUM is not allowed here"),
        ("SUM(NULL)", "SUM of NULL needs a type"),
        ("SUM(nope)", "Unknown column 'nope'"),
        ("SUM(price) FILTER (WHERE name)", "The condition of FILTER must be BOOLEAN, not STRING"),
        ("SUM(price) OVER (PARTITION BY name)", "WINDOW is not supported"),
        ("UPPER(name) FILTER (WHERE flag)", "UPPER is not an aggregate and takes no FILTER"),
        ("PERCENT_RANK() FILTER (WHERE flag)", "PERCENT_RANK is not supported"),
        ("STDDEV_POP(name)", "STDDEV_POP takes a number, not STRING"),
        ("LISTAGG(price)", "LISTAGG takes a string, not DOUBLE"),
        ("LISTAGG(name, name)", "The separator of LISTAGG must be a literal string"),
        ("LAST_VALUE(name) RESPECT NULLS", "LAST_VALUE with RESPECT NULLS is not supported"),
        ("JSON_OBJECTAGG(KEY flag VALUE name)", "A key of JSON_OBJECTAGG must be a string, not BOOLEAN"),
        ("FIRST_VALUE(name, flag)", "FIRST_VALUE takes one argument"),
    ],
)
def test_refused_aggregate(expression: str, fact: str) -> None:
    assert refused(expression, compile_aggregate).fact == fact
