"""Filters stand as near to the sources as they can."""

# ruff: noqa: E501 - a statement and what becomes of it stand on one line
from __future__ import annotations

import pytest
from plan_tables import plan

from headwater.plan import nodes as n


def filters(sql: str) -> list[tuple[str, str]]:
    """Each filter and the node below it, inputs first."""
    found = [node for node in n.walk(plan(f"INSERT INTO shown {sql}")) if isinstance(node, n.Filter | n.FilterToDelete)]
    return [(node.shown(node.predicate.text), type(node.input).__name__) for node in found]


GROUPED = "(SELECT who AS w, COUNT(*) AS c FROM log_ GROUP BY who)"


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT a, 1 FROM (SELECT who AS a, n AS b FROM log_) WHERE b > 1 AND a <> 'a'", [("((n > 1) AND (who <> 'a'))", "Scan")]),
        (f"SELECT w, c FROM {GROUPED} WHERE w = 'x'", [("(who = 'x')", "Scan")]),
        (f"SELECT w, c FROM {GROUPED} WHERE c > 1", [("(COUNT(*) > 1)", "Aggregate")]),
        (f"SELECT w, c FROM {GROUPED} WHERE c > 1 AND w = 'w'", [("(who = 'w')", "Scan"), ("(COUNT(*) > 1)", "Aggregate")]),
        ("SELECT who, COUNT(*) FROM log_ GROUP BY who HAVING who LIKE 'a%'", [("who LIKE 'a%'", "Scan")]),
        ("SELECT who, n FROM (SELECT who, n FROM log_ UNION ALL SELECT who, n FROM ups) WHERE n > 1", [("(n > 1)", "Scan"), ("(n > 1)", "Scan")]),
        ("SELECT x, y FROM (SELECT a.who AS x, b.n AS y FROM log_ a LEFT JOIN ups b ON a.id = b.id) WHERE x = 'x'", [("(who = 'x')", "Scan")]),
        ("SELECT x, y FROM (SELECT a.who AS x, b.n AS y FROM log_ a LEFT JOIN ups b ON a.id = b.id) WHERE y = 1", [("(n0 = 1)", "Project")]),
        # what is computed would be computed twice
        ("SELECT a, 1 FROM (SELECT UPPER(who) AS a FROM log_) WHERE a = 'A'", [("(a = 'A')", "Project")]),
    ],
)  # fmt: skip
def test_where_filters_stand(sql: str, found: list[tuple[str, str]]) -> None:
    assert filters(sql) == found


def test_names_in_strings_and_of_fields_are_left_alone() -> None:
    sql = "SELECT b, 1 FROM (SELECT who AS b, n AS who FROM log_) WHERE b <> 'b `b`' AND who > 1"
    root = plan(f"INSERT INTO shown {sql}")
    (found,) = [node for node in n.walk(root) if isinstance(node, n.Filter)]
    assert found.predicate.sql.count("`who`") == 1
    assert "'b `b`'" in found.predicate.sql
    assert found.predicate.refs == {"who", "n"}


def test_a_query_that_is_used_twice_stays_one() -> None:
    sql = f"WITH v AS {GROUPED} SELECT w, c FROM v WHERE w = 'x' UNION ALL SELECT w, c FROM v WHERE w = 'y'"
    root = plan(f"INSERT INTO shown {sql}")
    assert len([node for node in n.walk(root) if isinstance(node, n.Aggregate)]) == 1
