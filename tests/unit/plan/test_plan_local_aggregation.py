"""Which GROUP BYs are pre-aggregated in the tasks that read a table."""

from __future__ import annotations

import pytest
from plan_tables import plan

from headwater.changelog.preaggregate import PartialAggregate, PreAggregation
from headwater.execution.lowering.aggregate import local_aggregation
from headwater.plan import nodes as n


def found(sql: str) -> PreAggregation | None:
    (node,) = [node for node in n.walk(plan(f"INSERT INTO by_who {sql}")) if isinstance(node, n.Aggregate)]
    local = local_aggregation(node)
    return local[1].groups if local is not None else None


def test_columns_of_a_table() -> None:
    local = found("SELECT who, SUM(n) + COUNT(DISTINCT id) + COUNT(n) + MAX(id) FROM log_ GROUP BY who")
    assert local is not None
    assert local.columns == ("who", "n", "id")
    assert set(local.partials) == {
        PartialAggregate("__hw_n", "rows"),
        PartialAggregate("__hw_a1", "present", "n"),
        PartialAggregate("__hw_a2", "sum", "n"),
        PartialAggregate("__hw_values1_value", "values", "id"),
        PartialAggregate(local.partials[-1].name, "max", "id"),
    }


def test_names_are_those_of_the_table() -> None:
    local = found("SELECT w, COUNT(k) FROM (SELECT who AS w, n AS k FROM log_) AS t GROUP BY w")
    assert local is not None
    assert local.groups == (("who", "w"),)
    assert [c.column for c in local.partials] == ["", "n"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT who, COUNT(*) FROM log_ WHERE n > id GROUP BY who",
        "SELECT UPPER(who), COUNT(*) FROM log_ GROUP BY UPPER(who)",
        "SELECT who, SUM(n + 1) FROM log_ GROUP BY who",
        "SELECT who, COUNT(*) FILTER (WHERE n > 1) FROM log_ GROUP BY who",
        "SELECT who, CAST(SUM(d) AS BIGINT) FROM log_ GROUP BY who",
        "SELECT who, COUNT(DISTINCT CAST(n AS DOUBLE)) FROM log_ GROUP BY who",
        "SELECT who, COUNT(*) FROM (SELECT who FROM log_ UNION ALL SELECT who FROM plain) AS t GROUP BY who",
        "SELECT who, COUNT(*) FROM ups GROUP BY who",
        "SELECT who, COUNT(DISTINCT tags) FROM log_ GROUP BY who",
    ],
)
def test_more_than_columns_of_a_log(sql: str) -> None:
    assert found(sql) is None
