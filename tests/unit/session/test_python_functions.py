"""CREATE FUNCTION, DROP FUNCTION and `Session.register`: what is found by which name, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater.errors import HeadwaterError, ScriptErrors, SqlError, ValidationError
from headwater.plan.fingerprint import differences
from headwater.session import Session
from headwater.sql.parser import parse_script

TABLES = """
CREATE TABLE t (a STRING, n BIGINT, ts TIMESTAMP(3)) WITH ('connector' = 'datagen');
CREATE TABLE p (x STRING) WITH ('connector' = 'print');
"""


def shout(text: str, times: int = 1) -> str:
    return text.upper() + "!" * times


@pytest.fixture
def session() -> Session:
    session = Session()
    session.sql(TABLES)
    session.register("shout", shout)
    return session


@pytest.fixture
def script(tmp_path: Path) -> str:
    """The name of a script beside a module with functions."""
    (tmp_path / "my_text_functions.py").write_text(
        "def loud(text: str) -> str:\n    return text.upper()\nlimit = 5\ndef untyped(x):\n    return x\n"
    )
    (tmp_path / "my_broken_functions.py").write_text("1 / 0\n")
    path = tmp_path / "s.sql"
    path.write_text("")
    return str(path)


def test_a_registered_function_is_called_whatever_the_case_of_its_name(session: Session) -> None:
    plan = session.explain("INSERT INTO p SELECT SHOUT(Shout(a), 2) FROM t WHERE shout(a) LIKE 'A%'")
    assert "Project [shout(shout(a), 2) AS x]" in plan
    assert [row[0] for row in session.sql("SHOW USER FUNCTIONS")[0].rows] == ["shout"]


def test_a_view_keeps_the_function_it_was_created_with(session: Session) -> None:
    session.sql("CREATE VIEW v AS SELECT shout(a) AS b FROM t; CREATE TABLE c (a STRING, b AS shout(a)) WITH "
                "('connector' = 'datagen')")  # fmt: skip
    session.sql("DROP TEMPORARY SYSTEM FUNCTION shout")
    session.check("INSERT INTO p SELECT b FROM v; INSERT INTO p SELECT b FROM c")
    with pytest.raises(SqlError, match="Unknown function SHOUT"):
        session.check("INSERT INTO p SELECT shout(a) FROM t")


def test_a_system_function_goes_before_a_built_in_one_and_any_other_behind(session: Session) -> None:
    def upper(number: int) -> str:
        return str(number)

    session.register("upper", upper)
    session.check("INSERT INTO p SELECT UPPER(n) FROM t")
    session.sql("DROP TEMPORARY SYSTEM FUNCTION upper")
    with pytest.raises(SqlError, match="must be STRING"):
        session.check("INSERT INTO p SELECT UPPER(n) FROM t")


def test_functions_are_found_beside_the_script_and_belong_to_a_database(script: str) -> None:
    session = Session()
    created = "CREATE FUNCTION loud AS 'my_text_functions.loud' LANGUAGE PYTHON;"
    session.check(f"{TABLES} {created} INSERT INTO p SELECT loud(a) FROM t", script)
    with pytest.raises(SqlError, match="Unknown function LOUD"):
        session.check(f"{TABLES} {created} CREATE DATABASE d; USE d; "
                      "INSERT INTO default_database.p SELECT loud(a) FROM default_database.t", script)  # fmt: skip
    session.check(f"{TABLES} CREATE TEMPORARY SYSTEM {created[7:]} CREATE DATABASE d; USE d; "
                  "INSERT INTO default_database.p SELECT loud(a) FROM default_database.t", script)  # fmt: skip
    session.check(f"{created} CREATE FUNCTION IF NOT EXISTS LOUD AS 'no.such' LANGUAGE PYTHON; DROP FUNCTION Loud;"
                  "DROP FUNCTION IF EXISTS loud", script)  # fmt: skip


def test_functions_of_another_database_are_called_by_their_path(script: str) -> None:
    created = "CREATE DATABASE d; CREATE FUNCTION d.upper AS 'my_text_functions.loud' LANGUAGE PYTHON;"
    for name in ("d.upper", "default_catalog.d.Upper", "`d`.`upper`"):
        Session().check(f"{TABLES} {created} INSERT INTO p SELECT {name}(a) FROM t WHERE {name}(a) > 'b'", script)
    with pytest.raises(SqlError, match=r"Unknown function D\.LOWER"):
        Session().check(f"{TABLES} {created} INSERT INTO p SELECT d.lower(a) FROM t", script)
    with pytest.raises(SqlError, match="Unknown catalog 'hive'"):
        Session().check(f"{TABLES} {created} INSERT INTO p SELECT hive.d.upper(a) FROM t", script)


def test_python_files_name_more_places(tmp_path: Path) -> None:
    (tmp_path / "my_far_functions.py").write_text("def f(x: int) -> int:\n    return x\n")
    where = str(tmp_path / "my_far_functions.py")
    Session().check(f"SET 'python.files' = '{where}'; CREATE FUNCTION f AS 'my_far_functions.f' LANGUAGE PYTHON")


@pytest.mark.parametrize(
    ("statement", "fact", "hint"),
    [
        ("CREATE FUNCTION f AS 'com.acme.F'", "A function without LANGUAGE is one in Java", "Add LANGUAGE PYTHON"),
        (
            "CREATE TEMPORARY SYSTEM FUNCTION f AS 'com.acme.F' LANGUAGE JAVA USING JAR '/x.jar'",
            "A function in Java cannot be used",
            "headwater docs functions-python",
        ),
        ("CREATE FUNCTION f AS 'a.B' LANGUAGE SCALA", "A function in Scala cannot be used", "LANGUAGE PYTHON"),
        ("CREATE FUNCTION f AS 'F' LANGUAGE PYTHON", "'F' does not name a function.", "'module.function'"),
        ("CREATE FUNCTION f AS 'nosuch.f' LANGUAGE PYTHON", "There is no Python module 'nosuch'.", "python.files"),
        (
            "CREATE FUNCTION f AS 'my_text_functions.nosuch' LANGUAGE PYTHON",
            "The module 'my_text_functions' has no 'nosuch'.",
            "",
        ),
        (
            "CREATE FUNCTION f AS 'my_broken_functions.f' LANGUAGE PYTHON",
            "The module 'my_broken_functions' cannot be imported.",
            "",
        ),
        ("CREATE FUNCTION f AS 'my_text_functions.limit' LANGUAGE PYTHON", "'my_text_functions.limit': 5 is not", ""),
        ("CREATE FUNCTION f AS 'my_text_functions.untyped' LANGUAGE PYTHON", "'my_text_functions.untyped': What", "->"),
        ("CREATE SYSTEM FUNCTION f AS 'a.b' LANGUAGE PYTHON", "A SYSTEM FUNCTION must be TEMPORARY", "TEMPORARY"),
        ("DROP FUNCTION f", "There is no function 'f'.", ""),
        ("DROP FUNCTION upper", "There is no function 'upper'.", "Built-in functions cannot be dropped."),
        (
            "CREATE FUNCTION f AS 'my_text_functions.loud' LANGUAGE PYTHON;" * 2,
            "A function named 'f' already exists.",
            "IF NOT EXISTS",
        ),
    ],
)
def test_what_cannot_be_created_is_refused(statement: str, fact: str, hint: str, script: str) -> None:
    with pytest.raises(HeadwaterError) as caught:
        Session().check(statement, script)
    assert caught.value.fact.startswith(fact)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("query", "fact", "hint"),
    [
        ("SELECT shout(n) FROM t", "Argument 1 of shout must be STRING, not BIGINT", "CAST(n AS STRING) converts it."),
        ("SELECT shout() FROM t", "shout does not take 0 arguments", ""),
        ("SELECT shout(a, 1, 2) FROM t", "shout does not take 3 arguments", ""),
        ("SELECT shout(DISTINCT a) FROM t", "shout takes no DISTINCT", ""),
        ("SELECT shout(text => a) FROM t", "shout takes its arguments by position", ""),
    ],
)
def test_a_wrong_call_is_refused_at_its_place(session: Session, query: str, fact: str, hint: str) -> None:
    with pytest.raises(SqlError) as caught:
        session.check(f"INSERT INTO p {query}")
    assert caught.value.fact == fact
    assert hint in caught.value.hint
    assert caught.value.position is not None


def test_who_calls_a_function_that_could_not_be_created_is_not_to_blame() -> None:
    with pytest.raises(SqlError, match="no Python module"):
        Session().check(f"{TABLES} CREATE FUNCTION f AS 'nosuch.f' LANGUAGE PYTHON; INSERT INTO p SELECT f(a) FROM t")
    with pytest.raises(ScriptErrors) as caught:
        Session().check(f"{TABLES} CREATE FUNCTION f AS 'a.B'; INSERT INTO p SELECT f(a) FROM t; SELECT FROM")
    assert len(caught.value.errors) == 2


def test_a_non_deterministic_function_may_not_decide_what_is_retracted() -> None:
    session = Session()
    session.register("dice", headwater.udf(lambda: 4, result_type="INT", deterministic=False))
    session.sql(
        "CREATE TABLE u (id STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'u', "
        "'properties.bootstrap.servers' = 'k:9092', 'key.format' = 'raw', 'value.format' = 'json');"
        "CREATE TABLE n (n BIGINT) WITH ('connector' = 'print');"
    )
    with pytest.raises(ValidationError, match="non-deterministic"):
        session.check("INSERT INTO n SELECT SUM(dice()) FROM u")


def test_a_table_function_stands_in_from(session: Session) -> None:
    session.register("letters", headwater.udtf(lambda text: [*text], result_type="ROW<letter STRING>"))
    plan = session.explain("INSERT INTO p SELECT shout(letter) FROM t, LATERAL TABLE(letters(shout(a)))")
    assert "Unnest letters(shout(a)) AS (letter)" in plan
    for query in (
        "SELECT l FROM t CROSS JOIN LATERAL TABLE(Letters(a)) AS x (l)",
        "SELECT x.l FROM t LEFT JOIN LATERAL TABLE(letters(a)) AS x (l) ON TRUE WHERE x.l IS NULL",
        "SELECT letter FROM TABLE(letters('abc'))",
        "SELECT letter FROM t JOIN LATERAL TABLE(letters(a)) ON TRUE",
    ):
        session.check(f"INSERT INTO p {query}")
    with pytest.raises(SqlError, match="letters is a table function"):
        session.check("INSERT INTO p SELECT letters(a) FROM t")
    with pytest.raises(SqlError, match="2 column names are given for 1 columns"):
        session.check("INSERT INTO p SELECT x FROM t, LATERAL TABLE(letters(a)) AS l (x, y)")


@headwater.udaf
class Longest:
    def create_accumulator(self) -> list[str]:
        return [""]

    def accumulate(self, accumulator: list[str], text: str) -> None:
        accumulator[0] = max(accumulator[0], text, key=len)

    def get_value(self, accumulator: list[str]) -> str:
        return accumulator[0]


def test_an_aggregate_function_is_an_aggregate(session: Session) -> None:
    session.register("longest", Longest)
    plan = session.explain(
        "INSERT INTO p SELECT shout(longest(DISTINCT shout(a)) FILTER (WHERE shout(a) <> 'X')) FROM t "
        "GROUP BY n HAVING Longest(a) > 'b'"
    )
    assert "shout(longest(DISTINCT shout(a)) FILTER (WHERE (shout(a) <> 'X'))) AS x" in plan
    assert "Filter (longest(a) > 'b')" in plan
    with pytest.raises(SqlError, match="Argument 1 of longest must be STRING, not BIGINT"):
        session.check("INSERT INTO p SELECT longest(n) FROM t")
    with pytest.raises(SqlError, match="longest does not take 2 arguments"):
        session.check("INSERT INTO p SELECT longest(a, a) FROM t")
    with pytest.raises(SqlError, match="longest is not allowed here"):
        session.check("INSERT INTO p SELECT a FROM t WHERE longest(a) = 'x'")
    with pytest.raises(SqlError, match="longest is not allowed here"):
        session.check("INSERT INTO p SELECT MAX(longest(a)) FROM t")


class Exact(Longest.target.__class__):  # type: ignore[name-defined, misc]
    def retract(self, accumulator: list[str], text: str) -> None: ...

    def merge(self, accumulator: list[str], others: list[list[str]]) -> None: ...


KEPT = """
CREATE TABLE s (id STRING, a STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 's',
  'properties.bootstrap.servers' = 'k:9092', 'key.format' = 'raw', 'value.format' = 'json');
CREATE TABLE e (a STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');
"""
SESSIONS = "TABLE(SESSION(TABLE e, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end"


@pytest.mark.parametrize(
    ("call", "source", "plain", "exact"),
    [
        ("f(a)", "t", "the accumulator of f(a) per group", "the accumulator of f(a) per group"),
        ("f(a)", "s", "all values for f(a) per group", "the accumulator of f(a) per group"),
        (
            "f(DISTINCT a)",
            "s",
            "all values for f(DISTINCT a) per group",
            "the accumulator of f(DISTINCT a) per group, values of ROW(a) per group",
        ),
        (
            "f(a)",
            SESSIONS,
            "all values for f(a) per group and instant",
            "the accumulator of f(a) per group and instant",
        ),
        (
            "f(DISTINCT a)",
            SESSIONS,
            "all values for f(DISTINCT a) per group and instant",
            "all values for f(DISTINCT a) per group and instant",
        ),
    ],
)
def test_explain_says_what_a_group_keeps(session: Session, call: str, source: str, plain: str, exact: str) -> None:
    session.sql(KEPT)
    for function, state in ((Longest, plain), (headwater.udaf(Exact), exact)):
        session.register("f", function)
        plan = session.explain(f"INSERT INTO p SELECT {call} FROM {source}")
        shown = next(line for line in plan.splitlines() if "Aggregate" in line).partition("state: one row per group")[2]
        assert shown.removeprefix(" and instant") == f", {state}"


def test_a_checkpoint_knows_what_a_group_keeps() -> None:
    """A function that has lost its `retract` cannot go on from accumulators."""

    def fingerprint(function: Any, source: str) -> Any:
        session = Session()
        session.sql(TABLES + KEPT)
        session.register("f", function)
        [job] = session._definitions().copy().apply(parse_script(f"INSERT INTO p SELECT f(a) FROM {source}")[0])
        return job.fingerprint

    exact, plain = (fingerprint(function, "s") for function in (headwater.udaf(Exact), Longest))
    (difference, tables) = differences(exact, plain)
    assert "f(a) of ROW<`f0` STRING> NOT NULL STRING by accumulator (form 1)) in 'groups'" in difference
    assert difference.endswith("f(a) of ROW<`f0` STRING> NOT NULL STRING by all values)")
    assert "now would have 'groups', 'values of ROW(a)'" in tables
    assert not differences(fingerprint(headwater.udaf(Exact), "t"), fingerprint(Longest, "t"))


def test_what_groups_keep_is_in_a_note(session: Session) -> None:
    (note,) = session.register("f", Longest)
    assert note == (
        "A group keeps an accumulator for function 'f', and all values over updates and deletes (it has no retract) "
        "and in sessions (it has no merge)."
    )
    assert session.register("f", headwater.udaf(Exact)) == ("A group keeps an accumulator for function 'f'.",)
    (vectorised,) = session.register("g", headwater.udaf(len, result_type="BIGINT", func_type="pandas"))
    assert vectorised == "A group keeps all values for function 'g': it is vectorised."
    assert session.register("shout", shout) == ()


def test_a_non_deterministic_aggregate_function_may_not_be_retracted(session: Session) -> None:
    """Its result is computed from the accumulator whenever it is needed, also to retract it."""
    session.register("f", headwater.udaf(Exact, deterministic=False))
    session.check("INSERT INTO p SELECT f(a) FROM t")
    with pytest.raises(ValidationError, match=r"f\(a\) is non-deterministic"):
        session.check("INSERT INTO p SELECT MAX(x) FROM (SELECT n, f(a) AS x FROM t GROUP BY n)")


def test_a_checkpoint_knows_type_and_version_of_functions() -> None:
    def lines(function: object) -> tuple[str, ...]:
        session = Session()
        session.sql(TABLES)
        session.register("f", function)  # type: ignore[arg-type]
        script = "INSERT INTO p SELECT CAST(COUNT(*) AS STRING) FROM t GROUP BY f(n)"
        [job] = session._definitions().copy().apply(parse_script(script)[0])
        return job.fingerprint.operators[0].input

    first = lines(headwater.udf(lambda n: n, result_type="BIGINT"))
    assert any("calls f(BIGINT) -> BIGINT" in line for line in first)
    assert first == lines(headwater.udf(lambda n: n + 1, result_type="BIGINT"))
    assert first != lines(headwater.udf(lambda n: n, result_type="BIGINT", version="2"))
    assert first != lines(headwater.udf(lambda n: n, result_type="INT"))
