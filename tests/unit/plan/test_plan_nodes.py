"""What every plan node declares."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from plan_tables import plan, query

from headwater.execution.lowering import RULES
from headwater.plan import nodes as n


def concrete(kind: type[n.Node]) -> set[type[n.Node]]:
    below = {found for child in kind.__subclasses__() for found in concrete(child)}
    public = {kind} if kind.__name__ in n.__all__ and kind not in (n.Node, n.Unary) else set()
    return below | public


def test_a_node_that_declares_too_little_does_not_import() -> None:
    with pytest.raises(TypeError, match="Nothing does not declare mode, keys, takes, needs, narrowed, described"):

        @dataclass(frozen=True)
        class Nothing(n.Unary):
            pass


def test_a_stateful_node_says_what_it_keeps() -> None:
    with pytest.raises(TypeError, match="Keeps does not declare partitioned_by, remembers, state_tables"):

        @dataclass(frozen=True)
        class Keeps(n.Filter):
            state_version = 1


def test_every_node_has_a_lowering() -> None:
    assert concrete(n.Node) - {n.Write} == set(RULES)


def test_an_equal_subplan_is_one_node_with_the_columns_of_all_its_uses() -> None:
    used_twice = "WITH c AS (SELECT who, COUNT(*) AS c, MAX(n) AS m, MIN(n) AS unused FROM log_ GROUP BY who) "
    root = plan(f"INSERT INTO shown {used_twice} SELECT who, c FROM c UNION ALL SELECT who, m FROM c")
    (aggregate,) = [node for node in n.walk(root) if isinstance(node, n.Aggregate)]
    assert [call.function for call in aggregate.calls] == ["COUNT", "MAX"]


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT id, id AS again, n FROM ups", {("id",), ("again",)}),
        ("SELECT id, n FROM ups WHERE n > 1", {("id",)}),
        ("SELECT id + 1, n FROM ups", set()),
        ("SELECT who, n FROM log_", set()),
        ("SELECT 'all' AS everything, COUNT(*) AS c FROM log_", {()}),
        ("SELECT who, t, COUNT(*) AS c FROM (SELECT who, 'x' AS t FROM ups) GROUP BY who, t", {("who", "t"), ("who",)}),
        ("SELECT 1 AS t, id FROM ups UNION ALL SELECT 2 AS t, id FROM ups", {("id", "t")}),
        ("SELECT 1 AS t, id FROM ups UNION ALL SELECT 1 AS t, id FROM ups", set()),
        ("SELECT 1 AS t, id FROM ups UNION ALL SELECT 2 AS t, CAST(n AS INT) AS id FROM log_", set()),
    ],
)
def test_unique_keys(sql: str, keys: set[tuple[str, ...]]) -> None:
    assert set(query(sql).keys) == keys
