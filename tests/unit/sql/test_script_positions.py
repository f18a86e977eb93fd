"""Variables, positions and carets: what a user sees of an error."""

from __future__ import annotations

import pytest
from sqlglot import exp

from headwater.errors import SqlError
from headwater.sql.parser import parse_query, parse_script
from headwater.sql.script import Script, position_of
from headwater.sql.statements import CreateTable, Query


def failure(text: str, **variables: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        parse_script(text, "job.sql", variables)
    return caught.value


def test_an_error_shows_the_line_with_a_caret() -> None:
    error = failure("CREATE TABLE t (\n  a INT,\n  b STRNG\n)")
    assert str(error).startswith(
        "Unknown type 'STRNG'\n  at job.sql:3:5\n  3 |   b STRNG\n    |     ^^^^^\nHint: Did you mean STRING? Supported"
    )


def test_line_ends_of_all_systems() -> None:
    for end in ("\n", "\r\n", "\r"):
        position = failure(end.join(["SELECT 1;", "SELECT", "  FROM t"])).position
        assert position is not None
        assert (position.line, position.column, position.text) == (3, 3, "  FROM t")


def test_variables_are_replaced_everywhere_but_in_comments() -> None:
    text = (
        "-- ${unknown}\nCREATE TABLE ${t} (a ${type}) /* ${unknown} */ "
        "WITH ('topic' = '${ topic }', 'x' = '$${topic}', \"y\" = \"${type}\")"
    )
    (created,) = parse_script(text, variables={"t": "my_t", "type": "INT", "topic": "it's"})
    assert isinstance(created, CreateTable)
    assert created.name == "my_t"
    assert created.options == {"topic": "it's", "x": "${topic}", "y": "INT"}
    assert "${t}" in created.text


def test_a_value_cannot_leave_its_quotes() -> None:
    (query,) = parse_script("SELECT '${v}', `${v}` FROM t", variables={"v": "a'; DROP TABLE t; -- `"})
    assert isinstance(query, Query)
    assert [e.name for e in query.query.expressions] == ["a'; DROP TABLE t; -- `"] * 2
    assert failure('CREATE TABLE t (a INT) WITH ("a" = "${v}")', v='x"y').fact.startswith("A value with a double quote")


def test_variables_in_hints() -> None:
    text = "SELECT * FROM t /*+ OPTIONS('a' = '${v}') */"
    (query,) = parse_script(text, variables={"v": "x'y"})
    assert isinstance(query, Query)
    assert query.query.find(exp.Property).args["value"].name == "x'y"  # type: ignore[union-attr]


def test_an_unknown_variable_names_the_known_ones() -> None:
    error = failure("SELECT 1;\nSELECT '${topc}'", topic="a", kafka="b")
    assert error.fact == "Unknown variable 'topc'"
    assert error.hint == "Known variables: kafka, topic."
    assert error.position is not None
    assert (error.position.line, error.position.column, error.position.length) == (2, 9, 7)
    assert "--var x=" in failure("SELECT ${x}").hint


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("SELECT ${a", "A variable is not closed"),
        ("SELECT ${}", "Not a variable's name"),
        ("${1x}", "Not a variable's name"),
    ],
)
def test_a_variable_must_be_well_formed(text: str, fact: str) -> None:
    assert failure(text).fact == fact


def test_positions_are_those_of_the_text_as_written() -> None:
    text = "SELECT ${long},\n       ${long} +, 1 FROM ${short}"
    position = failure(text, long="a_very_long_column_name\n\n", short="t").position
    assert position is not None
    assert (position.line, position.column, position.text) == (2, 17, "       ${long} +, 1 FROM ${short}")


def test_an_error_inside_a_value_points_at_the_variable() -> None:
    position = failure("SELECT 1, ${bad} FROM t", bad="1 2 3").position
    assert position is not None
    assert (position.column, position.length) == (11, 6)


@pytest.mark.parametrize(
    ("text", "column", "fact"),
    [
        ("SELECT 'it's'", 13, "A string is not closed"),
        ("SELECT `a", 8, "A quoted name is not closed"),
        ('SELECT "a', 8, "A double-quoted string is not closed"),
        ("SELECT 1 /* x", 10, "A comment or hint is not closed"),
        ("SELECT 1 /*+ x", 10, "A comment or hint is not closed"),
    ],
)
def test_what_is_opened_must_be_closed(text: str, column: int, fact: str) -> None:
    error = failure(text)
    assert error.fact == fact
    assert error.position is not None
    assert error.position.column == column


def test_comments_and_strings_do_not_hide_each_other() -> None:
    statements = parse_script("SELECT '--', '/*' -- it's '\n; SELECT /* ' */ '*/' /* /* */")
    assert [s.text for s in statements] == ["SELECT '--', '/*'", "SELECT /* ' */ '*/'"]


def test_a_secret_is_not_shown_beside_a_caret() -> None:
    text = "CREATE TABLE t (a INT) WITH ('properties.sasl.password' = 'hunter2', \"jaas.config\" = \"pa\nss\", 'x' 'y')"
    error = failure(text)
    assert error.position is not None
    assert "hunter2" not in str(error)
    assert "ss" not in error.position.text
    assert error.position.text[error.position.column - 1 :].startswith("'y'")


NODES = "SELECT a.b, f(x) + 1, CAST(c AS INT), CASE WHEN d THEN e END, 'text', NOT g\nFROM t AS u WHERE h IS NULL"


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (exp.Column, "a"),
        (exp.Anonymous, "f"),
        (exp.Add, "f"),
        (exp.Cast, "CAST"),
        (exp.DataType, "INT"),
        (exp.Case, "CASE"),
        (exp.If, "WHEN"),
        (exp.Literal, "1"),
        (exp.Not, "NOT"),
        (exp.Table, "t"),
        (exp.TableAlias, "AS"),
        (exp.Where, "WHERE"),
        (exp.Is, "h"),
        (exp.Null, "NULL"),
        (exp.From, "FROM"),
        (exp.Select, "SELECT"),
    ],
)
def test_every_node_has_a_position(kind: type[exp.Expr], shown: str) -> None:
    script = Script(NODES)
    node = next(n for n in parse_query(NODES).dfs() if isinstance(n, kind))
    position = position_of(node, script)
    assert position is not None
    assert position.text[position.column - 1 :].startswith(shown)
    assert position == position_of(node.copy(), script)


def test_every_node_of_a_query_can_be_found() -> None:
    script = Script(NODES)
    assert all(position_of(node, script) is not None for node in parse_query(NODES).walk())


def test_a_node_without_a_position_takes_that_of_its_parent_or_statement() -> None:
    (statement,) = parse_script("\n SELECT a FROM t", "job.sql")
    assert isinstance(statement, Query)
    lost = exp.Literal.number(1)
    assert position_of(lost, Script("")) is None
    assert statement.position_of(lost) == statement.position
    column = next(iter(statement.query.find_all(exp.Column)))
    column.set("this", exp.Identifier(this="new"))
    error = statement.error("No such column", at=column.this, hint="h")
    assert str(error).startswith("No such column\n  at job.sql:2:9\n")
    with pytest.raises(ValueError, match="no position"):
        Script("").position(lost)
