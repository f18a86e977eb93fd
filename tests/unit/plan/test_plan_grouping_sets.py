"""GROUPING SETS, ROLLUP and CUBE as plans."""

from __future__ import annotations

import pytest
from plan_tables import explained, query

from headwater.errors import SqlError
from headwater.plan import nodes as n


def expand_of(group_by: str) -> n.Expand:
    node = query(f"SELECT COUNT(*) AS c FROM log_ GROUP BY {group_by}")
    (found,) = [one for one in n.walk(node) if isinstance(one, n.Expand)]
    return found


@pytest.mark.parametrize(
    ("group_by", "sets", "numbers"),
    [
        ("ROLLUP (id, who)", "[(id, who), (id), ()]", (0, 1, 3)),
        ("CUBE (id, who)", "[(id, who), (id), (who), ()]", (0, 1, 2, 3)),
        ("GROUPING SETS ((who, id), (n))", "[(who, id), (n)]", (1, 6)),
        ("id, GROUPING SETS ((who), ())", "[(who), ()]", (0, 1)),
        ("ROLLUP ((id, who), n)", "[(id, who, n), (id, who), ()]", (0, 1, 7)),
        ("GROUPING SETS (ROLLUP (id), who)", "[(id), (), (who)]", (1, 3, 2)),
        ("ROLLUP (UPPER(who))", "[(UPPER(who)), ()]", (0, 1)),
    ],
)
def test_sets(group_by: str, sets: str, numbers: tuple[int, ...]) -> None:
    expand = expand_of(group_by)
    assert expand.described() == f"Expand {sets}"
    assert expand.numbers == numbers


def test_one_set_is_no_expansion() -> None:
    node = query("SELECT id, COUNT(*) AS c FROM log_ GROUP BY GROUPING SETS ((id, who))")
    assert not any(isinstance(one, n.Expand) for one in n.walk(node))


def test_grouping_id_of_all_groups_is_part_of_the_key() -> None:
    node = query("SELECT id, who, GROUPING_ID(id, who) AS g, COUNT(*) AS c FROM log_ GROUP BY CUBE (id, who)")
    assert node.keys == (("id", "who", "g"),)
    node = query("SELECT id, who, GROUPING(id) AS g, COUNT(*) AS c FROM log_ GROUP BY CUBE (id, who)")
    assert node.keys == ()


def test_an_aggregate_sees_the_column_and_not_the_group() -> None:
    text = explained("INSERT INTO shown SELECT who, SUM(n) FROM ups GROUP BY ROLLUP (who, n) HAVING GROUPING(n) = 1")
    assert "Expand [(who, n), (who), ()]" in text
    assert "SUM(n)" in text
    assert "Filter (GROUPING(n) = 1)" in text


@pytest.mark.parametrize(
    ("query_", "fact"),
    [
        ("SELECT who FROM log_ GROUP BY GROUPING SETS ((who), (who))", "GROUP BY has a grouping set twice."),
        ("SELECT GROUPING(n) FROM log_ GROUP BY CUBE (who)", "GROUPING takes groups of GROUP BY."),
        ("SELECT 1 FROM log_ GROUP BY CUBE (id, who, n, d, id + 1, id + 2, id + 3)", "GROUP BY has 128 grouping sets"),
    ],
)
def test_refusals(query_: str, fact: str) -> None:
    with pytest.raises(SqlError) as caught:
        query(query_)
    assert caught.value.fact.startswith(fact)
