"""A CASE that a filter has decided is its result; rows stay what they are."""

from __future__ import annotations

from random import Random

import duckdb
import pytest
import sqlglot
from plan_tables import plan

from headwater.plan import nodes as n
from headwater.plan.known_values import decide_cases
from headwater.sql.typed import Expr

CASE = "CASE WHEN id = 0 THEN who WHEN id = 1 THEN 'one' ELSE tags[1] END"


def projected(where: str, case: str = CASE) -> tuple[Expr, n.Scan]:
    """The decided CASE, and the scan below it."""
    root = plan(f"INSERT INTO plain SELECT x, n FROM (SELECT {case} AS x, n, id, who FROM log_) AS t WHERE {where}")
    (scan,) = [node for node in n.walk(root) if isinstance(node, n.Scan)]
    (*_, project) = [node for node in n.walk(root) if isinstance(node, n.Project)]
    return project.expressions[0], scan


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("id = 0", "who"),
        ("1 = id AND n > 3", "'one'"),
        ("id = 7", "tags[1]"),
        ("id = 0 OR id = 1", CASE),
        ("id > 1", CASE),
        ("id = n", CASE),
        ("n = 0", CASE),
    ],
)
def test_what_is_known_decides(where: str, text: str) -> None:
    assert projected(where)[0].text == text.replace("WHEN id = 0 ", "WHEN (id = 0) ").replace("id = 1 ", "(id = 1) ")


def test_columns_of_other_results_are_not_read() -> None:
    assert projected("id = 1")[1].names == ("id", "n")
    assert projected("id = 2")[1].names == ("id", "n", "tags")


def test_a_type_that_is_common_to_all_results_stays() -> None:
    expression, _ = projected("id = 0", "CAST(CASE WHEN id = 0 THEN id ELSE n END AS STRING)")
    assert "CASE" in expression.sql  # not at the top
    root = plan("INSERT INTO plain SELECT 'x', CASE WHEN id = 0 THEN id ELSE n END FROM log_ WHERE id = 0")
    (*_, project) = [node for node in n.walk(root) if isinstance(node, n.Project)]
    assert project.expressions[1].sql == "CAST(`id` AS BIGINT)"
    assert str(project.expressions[1].type) == "BIGINT"


def test_random_cases_give_the_same_rows() -> None:
    random = Random(3)
    connection = duckdb.connect()
    values = ["NULL", "0", "1", "2"]
    rows = ", ".join(f"({i}, {w}, {m})" for i in values for w in ("NULL", "'a'", "'b'") for m in values)
    connection.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {rows}) AS v(id, who, n)")
    decided = 0
    for _ in range(60):
        where = " AND ".join(_comparison(random, "=") for _ in range(random.choice([1, 2])))
        whens = " ".join(f"WHEN {_condition(random)} THEN {place}" for place in range(random.choice([1, 2, 3])))
        sql = f"SELECT who, CASE {whens} {random.choice(['ELSE n', ''])} END AS x FROM log_"
        before, after = _second(sql), _second(f"{sql} WHERE {where}")
        decided += "CASE" not in after.sql
        texts = [sqlglot.transpile(e.sql, read="spark", write="duckdb")[0] for e in (before, after)]
        assert not connection.sql(
            f"SELECT * FROM t WHERE ({where}) AND ({texts[0]}) IS DISTINCT FROM ({texts[1]})"
        ).fetchall(), sql
    assert 8 < decided < 60


def _second(sql: str) -> Expr:
    project, *_ = [node for node in n.walk(plan(f"INSERT INTO plain {sql}")) if isinstance(node, n.Project)]
    return project.expressions[1]


def _comparison(random: Random, *signs: str) -> str:
    column = random.choice(["id", "n", "who"])
    literal = random.choice(["'a'", "'b'"]) if column == "who" else random.choice(["0", "1", "2"])
    return f"{column} {random.choice(signs)} {literal}"


def _condition(random: Random, depth: int = 0) -> str:
    if depth == 2 or random.random() < 0.5:
        return random.choice([_comparison(random, "=", "<>", "<", ">="), f"{random.choice(['id', 'who'])} IS NULL"])
    if random.random() < 0.3:
        return f"NOT ({_condition(random, depth + 1)})"
    return random.choice([" AND ", " OR "]).join(f"({_condition(random, depth + 1)})" for _ in range(2))


def test_a_plan_without_such_a_case_stays() -> None:
    root = plan("INSERT INTO plain SELECT who, n FROM log_ WHERE id = 0")
    assert decide_cases(root) == root
