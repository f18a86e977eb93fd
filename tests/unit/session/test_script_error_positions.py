"""Where errors of a script are shown: all of them, each at its line, with the caret under what is wrong."""

from __future__ import annotations

import pytest
from order_tables import KAFKA, ORDERS

from headwater.errors import ScriptErrors, SqlError, ValidationError
from headwater.session import Session

FAULTY = """
CREATE TABLE bad (a INT) WITH ('connector' = 'kafka', 'topic' = 'x');
CREATE VIEW typo AS SELEKT who FROM orders;
INSERT INTO lines SELECT a FROM bad;
INSERT INTO lines SELECT who FROM typo;
INSERT INTO lines SELECT nosuch FROM orders;
EXECUTE STATEMENT SET BEGIN
  INSERT INTO lines SELECT who FROM orders;
  INSERT INTO lines SELECT id FROM orders;
  INSERT INTO lines SELECT missing FROM orders;
END;
INSERT INTO lines SELECT who FROM orders;
"""


def test_all_faulty_statements_are_reported_each_at_its_place() -> None:
    """Those that are wrong only because they use what another one should have created are not."""
    with pytest.raises(ScriptErrors) as caught:
        Session().check(ORDERS.strip() + FAULTY, "s.sql")
    first = ORDERS.strip().count("\n") + 2
    places = [(e.position.line - first, e.position.column) for e in caught.value.errors]  # type: ignore[attr-defined]
    assert places == [(0, 1), (1, 21), (4, 26), (7, 28), (8, 28)]
    assert str(caught.value).startswith("5 statements are wrong.\n\n")


def test_a_fault_in_a_view_is_shown_inside_it() -> None:
    with pytest.raises(SqlError) as caught:
        Session().check(ORDERS.strip() + "\nCREATE VIEW v AS\nSELECT id,\n  nosuch\nFROM orders;")
    position = caught.value.position
    assert position is not None
    assert (position.text, position.column) == ("  nosuch", 3)


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        ("b AS nosuch + 1", "nosuch", "nosuch"),
        ("b AS NOSUCH(a)", "NOSUCH(a)", "NOSUCH"),
        ("WATERMARK FOR t AS t - 5", "t - 5", "TIMESTAMP"),
        ("WATERMARK FOR t AS a", "a", "A watermark must be a TIMESTAMP(p)"),
        ("b AS a + 1, WATERMARK FOR b AS b", "b", "The time of a watermark must be a TIMESTAMP(p)"),
    ],
)
def test_computed_columns_and_watermarks_are_checked_when_created(column: str, text: str, message: str) -> None:
    script = f"CREATE TABLE c (a INT, t TIMESTAMP(3), {column}) WITH ({KAFKA}, 'topic' = 'c', 'format' = 'json')"
    with pytest.raises(SqlError) as caught:
        Session().check(script)
    position = caught.value.position
    assert position is not None
    assert message in caught.value.fact
    assert position.text[position.column - 1 :].startswith(text.split("(", maxsplit=1)[0].split(" ", maxsplit=1)[0])


@pytest.mark.parametrize(
    ("statement", "under"),
    [
        ("INSERT INTO linse SELECT who FROM orders", "linse"),
        ("SET 'table.exec.state.tll' = '1 h'", "'table.exec.state.tll'"),
        ("SET table.exec.state.ttl = soon", "soon"),
        ("SET 'table.sql-dialect' = 'hive'", "'hive'"),
        ("INSERT INTO lines SELECT o.whoo FROM orders o", "whoo"),
        ("INSERT INTO lines SELECT default_database.orders.whoo FROM orders", "whoo"),
        ("INSERT INTO lines SELECT nosuch.who FROM orders o", "nosuch"),
        ("DROP TABLE nosuch", "nosuch"),
        ("DESCRIBE default_database.nosuch", "nosuch"),
        ("SHOW CREATE TABLE nosuch", "nosuch"),
        ("ALTER TABLE nosuch SET ('a' = 'b')", "nosuch"),
        ("USE nosuch", "nosuch"),
        ("CREATE FUNCTION f AS 'nosuch.f' LANGUAGE PYTHON", "'nosuch.f'"),
    ],
)
def test_the_caret_is_under_what_is_wrong(statement: str, under: str) -> None:
    with pytest.raises(SqlError) as caught:
        Session().check(ORDERS + statement)
    position = caught.value.position
    assert position is not None
    assert position.text[position.column - 1 :][: position.length] == under


@pytest.mark.parametrize(
    ("statement", "under"),
    [
        ("INSERT INTO lines SELECT id FROM orders", "id"),
        (
            "INSERT INTO lines SELECT who FROM orders WHERE id = 1 UNION ALL SELECT who FROM orders; DROP VIEW lines",
            "lines",
        ),
        ("INSERT INTO totals (total, who) VALUES (1, 2)", "2"),
        ("CREATE TABLE c (a INT) WITH ('connector' = 'kafak', 'topic' = 'x')", "'connector' = 'kafak'"),
        ("RESET 'nosuch'", "'nosuch'"),
        ("CREATE TABLE orders (a INT) WITH ('connector' = 'print')", "CREATE"),
    ],
)
def test_a_statement_that_is_not_allowed_is_shown_where_it_is_wrong(statement: str, under: str) -> None:
    """As one of several, because the script is then sure to be shown."""
    with pytest.raises(ScriptErrors) as caught:
        Session().check(f"{ORDERS}{statement};\nDROP TABLE nosuch;")
    position = caught.value.errors[0].position  # type: ignore[attr-defined]
    assert position.text[position.column - 1 :][: position.length] == under


def test_an_option_in_a_hint_is_shown_in_it() -> None:
    query = "SELECT who FROM orders /*+ OPTIONS('scan.startup.mode' = 'latest-offset', 'nosuch' = '1') */"
    with pytest.raises(ValidationError) as caught:
        Session().check(f"{ORDERS}\nINSERT INTO lines {query}")
    above, below = str(caught.value).splitlines()[2:4]
    assert above[below.index("^") : below.rindex("^") + 1] == "'nosuch'"


@pytest.mark.parametrize(
    ("columns", "options", "under"),
    [
        ("a STRING METADATA FROM 'timestmp'", "'format' = 'json'", "a"),
        ("b INT, WATERMARK FOR b AS b", "'format' = 'json'", "b"),
        ("a INT", "'format' = 'csv', 'csv.field-delimiter' = '||'", "'csv.field-delimiter' = '||'"),
    ],
)
def test_what_is_wrong_with_a_table_is_shown_where_it_is(columns: str, options: str, under: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Session().check(f"CREATE TABLE c ({columns}) WITH ({KAFKA}, 'topic' = 'c', {options})")
    lines = str(caught.value).splitlines()
    [below] = [line for line in lines if "^" in line]
    above = lines[lines.index(below) - 1]
    assert above[below.index("^") : below.rindex("^") + 1] == under


def test_the_only_problem_of_a_table_is_where_its_error_is() -> None:
    """Not at CREATE, with a second place further down."""
    typo = f"CREATE TABLE c (a INT) WITH (\n{KAFKA}, 'topic' = 'c',\n  'formt' = 'json', 'format' = 'raw')"
    with pytest.raises(ScriptErrors) as caught:
        Session().check(f"{typo};\nDROP TABLE nosuch;")
    error = caught.value.errors[0]
    assert isinstance(error, SqlError)
    assert error.position is not None
    assert (error.position.line, error.position.column) == (3, 3)
    assert str(error).count("^\n") == 1


def test_an_option_of_another_statement_is_not_where_the_error_is() -> None:
    """The table may be defined in another script than the ALTER TABLE."""
    options = "'topic' = 'c', 'format' = 'json', 'json.ignore-parse-errors' = 'true'"
    table = f"CREATE TABLE c (a STRING) WITH ({KAFKA}, {options})"
    with pytest.raises(ScriptErrors) as caught:
        Session().check(f"{table};\nALTER TABLE c SET ('format' = 'raw');\nDROP TABLE nosuch;")
    error = caught.value.errors[0]
    assert isinstance(error, SqlError)
    assert error.position is not None
    assert error.position.line == 2
    assert "json.ignore-parse-errors" in error.detail
    assert "at line 1" in error.detail


def test_a_typo_in_a_large_table_fits_on_a_screen() -> None:
    """The hint is within the first lines, and the caret stands below what it is about."""
    options = ", ".join(f"'properties.p{i}' = 'a rather long value of an option'" for i in range(30))
    script = f"CREATE TABLE big (a INT) WITH ({KAFKA}, {options}, 'topic' = 't', 'formt' = 'json', 'format' = 'raw')"
    with pytest.raises(ValidationError) as caught:
        Session().check(script)
    lines = str(caught.value).splitlines()
    assert "formt  Did you mean 'format'?" in lines[6]
    assert len(lines) <= 8
    assert max(map(len, lines)) <= 80
    above, below = lines[2], lines[3]
    assert above[below.index("^") : below.rindex("^") + 1] == "'formt' = 'json'"
