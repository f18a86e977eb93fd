"""Which GROUP BYs may begin while a table is read."""

from __future__ import annotations

import pytest
from plan_tables import plan

from headwater.changelog.early import Contribution, EarlyGroups
from headwater.plan import nodes as n
from headwater.runtime.aggregates import early_groups


def found(sql: str) -> EarlyGroups | None:
    (node,) = [node for node in n.walk(plan(f"INSERT INTO by_who {sql}")) if isinstance(node, n.Aggregate)]
    early = early_groups(node)
    return early[1] if early is not None else None


def test_columns_of_a_table() -> None:
    early = found("SELECT who, SUM(n) + COUNT(DISTINCT id) + COUNT(n) + MAX(id) FROM log_ GROUP BY who")
    assert early is not None
    assert early.columns == ("who", "n", "id")
    assert set(early.contributions) == {
        Contribution("__n", "rows"),
        Contribution("__a1", "present", "n"),
        Contribution("__a2", "sum", "n"),
        Contribution("values1_value", "values", "id"),
        Contribution(early.contributions[-1].name, "max", "id"),
    }


def test_names_are_those_of_the_table() -> None:
    early = found("SELECT w, COUNT(k) FROM (SELECT who AS w, n AS k FROM log_) AS t GROUP BY w")
    assert early is not None
    assert early.groups == (("who", "w"),)
    assert [c.column for c in early.contributions] == ["", "n"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT who, COUNT(*) FROM log_ WHERE n > 1 GROUP BY who",
        "SELECT UPPER(who), COUNT(*) FROM log_ GROUP BY UPPER(who)",
        "SELECT who, SUM(n + 1) FROM log_ GROUP BY who",
        "SELECT who, COUNT(*) FILTER (WHERE n > 1) FROM log_ GROUP BY who",
        "SELECT who, CAST(SUM(d) AS BIGINT) FROM log_ GROUP BY who",
        "SELECT who, COUNT(DISTINCT CAST(n AS DOUBLE)) FROM log_ GROUP BY who",
        "SELECT who, COUNT(*) FROM (SELECT who FROM log_ UNION ALL SELECT who FROM plain) AS t GROUP BY who",
        "SELECT who, COUNT(*) FROM ups GROUP BY who",
    ],
)
def test_more_than_columns_of_a_log(sql: str) -> None:
    assert found(sql) is None
