"""Statements other than definitions, and scripts of several statements."""

from __future__ import annotations

from typing import TypeVar

import pytest
from refusals import refused_at
from sqlglot import exp

from headwater.errors import SqlError
from headwater.sql.parser import parse_script
from headwater.sql.statements import (
    Describe,
    Explain,
    Insert,
    Query,
    Reset,
    SetOption,
    Show,
    Statement,
    StatementSet,
)

S = TypeVar("S", bound=Statement)


def one(text: str, kind: type[S]) -> S:
    (statement,) = parse_script(text)
    assert isinstance(statement, kind)
    return statement


def test_statements_are_cut_at_semicolons() -> None:
    text = "SELECT ';' -- ; no\n; /* ; */ SELECT `a;b` FROM t;;\n  SELECT 3"
    statements = parse_script(text)
    assert [s.text for s in statements] == ["SELECT ';'", "SELECT `a;b` FROM t", "SELECT 3"]
    assert [(s.position.line, s.position.column) for s in statements] == [(1, 1), (2, 11), (3, 3)]


@pytest.mark.parametrize("text", ["", ";", " \n -- nothing\n", "/* nothing */ ;;"])
def test_a_script_may_be_empty(text: str) -> None:
    assert parse_script(text) == []


def test_insert() -> None:
    insert = one("INSERT INTO t (a, `b c`) SELECT 1, 2", Insert)
    assert (insert.target, insert.columns, insert.options) == ("t", ("a", "b c"), {})
    assert isinstance(insert.query, exp.Select)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("INSERT INTO t VALUES (1), (2)", exp.Values),
        ("INSERT INTO t WITH a AS (SELECT 1) SELECT * FROM a", exp.Select),
        ("INSERT INTO t (SELECT 1)", exp.Subquery),
        ("INSERT INTO t ((SELECT 1) UNION SELECT 2)", exp.Subquery),
        ("INSERT INTO t SELECT 1 UNION ALL SELECT 2", exp.Union),
        ("EXECUTE INSERT INTO t SELECT 1", exp.Select),
    ],
)
def test_what_may_be_inserted(text: str, kind: type[exp.Expr]) -> None:
    insert = one(text, Insert)
    assert isinstance(insert.query, kind)
    assert insert.columns == ()


def test_options_of_the_target() -> None:
    insert = one("INSERT INTO default_database.t /*+ OPTIONS('sink.parallelism' = '1') */ (a) SELECT 1", Insert)
    assert (insert.target, insert.columns) == ("default_database.t", ("a",))
    assert insert.options == {"sink.parallelism": "1"}


@pytest.mark.parametrize("action", ["NOTHING", "ERROR", "DEDUPLICATE"])
def test_what_to_do_on_conflict(action: str) -> None:
    text = f"INSERT INTO t SELECT a FROM u JOIN v ON u.a = v.a ON CONFLICT DO {action}"
    insert = one(text, Insert)
    assert (insert.on_conflict, insert.text) == (action, text)
    assert one("INSERT INTO t SELECT 1", Insert).on_conflict == ""


BODY = "INSERT INTO a SELECT CASE WHEN x THEN 1 END FROM t;\nINSERT INTO b VALUES (1);\n"


@pytest.mark.parametrize(
    "opening", ["EXECUTE STATEMENT SET BEGIN", "BEGIN STATEMENT SET;", "execute statement set\nbegin"]
)
def test_a_statement_set(opening: str) -> None:
    first, second = parse_script(f"{opening}\n{BODY}END;\nSELECT 1")
    assert isinstance(first, StatementSet)
    assert [i.target for i in first.inserts] == ["a", "b"]
    assert first.inserts[1].text == "INSERT INTO b VALUES (1)"
    assert first.inserts[1].position.text == "INSERT INTO b VALUES (1);"
    assert isinstance(second, Query)


def test_set_and_reset() -> None:
    statements = parse_script(
        "SET 'a.b' = 'it''s'; SET \"c\" = \"d\"; SET e.f-g = 10 s; SET; RESET 'a'; RESET b.c; RESET"
    )
    seen = [
        (s.key, s.value) if isinstance(s, SetOption) else s.key for s in statements if isinstance(s, SetOption | Reset)
    ]
    assert seen == [("a.b", "it's"), ("c", "d"), ("e.f-g", "10 s"), ("", ""), "a", "b.c", ""]


@pytest.mark.parametrize(
    ("text", "details"),
    [
        ("EXPLAIN SELECT 1", ()),
        ("EXPLAIN PLAN FOR SELECT 1", ()),
        ("EXPLAIN ESTIMATED_COST, CHANGELOG_MODE SELECT 1", ("ESTIMATED_COST", "CHANGELOG_MODE")),
    ],
)
def test_explain_a_query(text: str, details: tuple[str, ...]) -> None:
    explain = one(text, Explain)
    assert isinstance(explain.target, exp.Select)
    assert explain.details == details


def test_explain_inserts() -> None:
    explain = one("EXPLAIN INSERT INTO t SELECT 1", Explain)
    assert isinstance(explain.target, Insert)
    assert explain.target.text == "INSERT INTO t SELECT 1"
    several = one(f"EXPLAIN STATEMENT SET BEGIN {BODY} END;", Explain)
    assert isinstance(several.target, StatementSet)
    assert len(several.target.inserts) == 2
    details = "ESTIMATED_COST, CHANGELOG_MODE, JSON_EXECUTION_PLAN, PLAN_ADVICE"
    assert len(one(f"EXPLAIN PLAN FOR {details} STATEMENT SET BEGIN {BODY} END;", Explain).details) == 4


def test_show_and_describe() -> None:
    assert one("SHOW TABLES", Show).kind == "TABLES"
    assert one("SHOW VIEWS", Show).kind == "VIEWS"
    shown = one("SHOW CREATE TABLE `a b`", Show)
    assert (shown.kind, shown.name) == ("CREATE TABLE", "a b")
    assert one("DESCRIBE t", Describe).name == "t"
    assert one("desc default_catalog.default_database.t", Describe).name == "default_database.t"
    assert one("DESCRIBE EXTENDED t", Describe).extended
    assert not one("DESCRIBE extended", Describe).extended


def test_a_query_by_itself() -> None:
    assert isinstance(one("WITH a AS (SELECT 1) SELECT * FROM a;", Query).query, exp.Select)
    assert isinstance(one("(SELECT 1)", Query).query, exp.Subquery)


WRONG = [
    # text, line, column, length, fact
    ("INSERT t SELECT 1", 1, 8, 1, "Expected 'INTO', found 't'"),
    ("INSERT OVERWRITE t SELECT 1", 1, 8, 9, "INSERT OVERWRITE is not supported"),
    ("INSERT INTO t PARTITION (a = 1) SELECT 1", 1, 15, 9, "INSERT INTO … PARTITION is not supported"),
    ("INSERT INTO t (a, a) SELECT 1, 2", 1, 19, 1, "The column 'a' appears twice"),
    ("INSERT INTO t (a)", 1, 18, 1, "Expected a query (SELECT, VALUES or WITH), found the end of the statement"),
    ("INSERT INTO t /*+ FOO('a') */ SELECT 1", 1, 19, 3, "Unknown hint 'FOO'"),
    ("INSERT INTO tVALUES (1)", 1, 13, 7, "Expected a query after 'tVALUES'"),
    ("INSERT INTO t SELECT 1 ON CONFLICT DO x", 1, 39, 1, "Expected NOTHING, ERROR or DEDUPLICATE, found 'x'"),
    ("INSERT INTO t SELECT 1 ON x", 1, 24, 2, "Unexpected 'ON'"),
    ("INSERT INTO t (1)", 1, 15, 1, "Expected a query (SELECT, VALUES or WITH), found '('"),
    ("EXECUTE STATEMENT SET BEGIN END;", 1, 1, 7, "A statement set needs at least one INSERT"),
    ("SELECT 1;\nEXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1;", 2, 1, 7, "The statement set is not ended"),
    ("EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1 END;", 1, 1, 7, "The statement set is not ended"),
    ("EXECUTE STATEMENT SET BEGIN\nSELECT 1; END;", 2, 1, 6, "Expected 'INSERT' or 'END', found 'SELECT'"),
    ("EXECUTE PLAN 'x'", 1, 1, 7, "EXECUTE PLAN is not supported"),
    ("BEGIN TRANSACTION", 1, 7, 11, "Expected 'STATEMENT', found 'TRANSACTION'"),
    ("SET 'a'", 1, 8, 1, "Expected '=', found the end of the statement"),
    ("SET 'a' =", 1, 10, 1, "Expected a value, found the end of the statement"),
    ("SET 'a' = 'b' 'c'", 1, 15, 3, "Unexpected string 'c'"),
    ("SET a b = c", 1, 5, 1, "Not the key of an option"),
    ("SET = c", 1, 5, 1, "Not the key of an option"),
    ("SET a = (b c)", 1, 9, 1, "This value needs quotes"),
    ("RESET 'a' 'b'", 1, 11, 3, "Unexpected string 'b'"),
    ("EXPLAIN CREATE TABLE t (a INT)", 1, 9, 6, "Expected a query (SELECT, VALUES or WITH), found 'CREATE'"),
    ("SHOW PARTITIONS t", 1, 6, 10, "SHOW PARTITIONS is not supported"),
    ("SHOW", 1, 5, 1, "SHOW what?"),
    ("USE CATALOG c", 1, 13, 1, "There is no catalog 'c'"),
    ("ALTER TABLE t ADD a", 1, 20, 1, "Expected a type, found the end of the statement"),
    ("ALTER TABLE t RENAME a b", 1, 24, 1, "Expected 'TO', found 'b'"),
    ("ANALYZE TABLE t COMPUTE STATISTICS", 1, 1, 7, "ANALYZE is not supported"),
    ("UNLOAD MODULE core", 1, 1, 6, "UNLOAD is not supported"),
    ("USE MODULES core", 1, 1, 3, "USE MODULES is not supported"),
    ("DELETE FROM t", 1, 1, 6, "DELETE is not supported"),
    ("SELEKT 1", 1, 1, 6, "Unknown statement 'SELEKT'"),
    ("`SELECT` 1", 1, 1, 8, "Unknown statement 'SELECT'"),
    ("'SELECT 1'", 1, 1, 10, "Unknown statement 'SELECT 1'"),
    ("SELECT 1 SELECT 2", 1, 10, 6, "Unexpected 'SELECT'"),
    ("SELECT 1\nINSERT INTO t SELECT 2", 2, 1, 6, "Unexpected 'INSERT'"),
]


@pytest.mark.parametrize(("text", "line", "column", "length", "fact"), WRONG)
def test_a_wrong_statement_is_refused_at_its_place(text: str, line: int, column: int, length: int, fact: str) -> None:
    assert refused_at(parse_script, text) == (line, column, length, fact)


def test_hints_say_what_to_do() -> None:
    def hint(text: str) -> str:
        with pytest.raises(SqlError) as caught:
            parse_script(text)
        return caught.value.hint

    assert "Did you mean SELECT?" in hint("SELEKT 1")
    assert "headwater run" in hint("SOURCE 'x.sql'")
    assert "';'" in hint("SELECT 1\nINSERT INTO t SELECT 2")
    assert "`order`" in hint('SELECT "order" FROM t')
    assert "every INSERT" in hint("EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1 END;").replace("Every", "every")
