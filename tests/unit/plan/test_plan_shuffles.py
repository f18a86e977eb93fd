"""Rows that the operator below has in one task by the same key are not shuffled again."""

from __future__ import annotations

import pytest
from plan_tables import plan

from headwater.execution.lowering.base import spread_by
from headwater.plan import nodes as n

JOINED = "log_ AS a JOIN plain AS b ON a.who = b.who"


def rank(partition: str, source: str = JOINED) -> n.Rank:
    ranked = (
        f"SELECT {partition} AS k, b.n, ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY b.n) AS r FROM {source}"
    )
    root = plan(f"INSERT INTO changes SELECT CAST(k AS STRING), n FROM ({ranked}) WHERE r <= 2")
    (node,) = [node for node in n.walk(root) if isinstance(node, n.Rank)]
    return node


@pytest.mark.parametrize("source", [JOINED, JOINED.replace("JOIN", "LEFT JOIN"), f"{JOINED} AND a.n < b.n"])
def test_the_key_of_a_join(source: str) -> None:
    node = rank("a.who", source)
    assert spread_by(node.input) == node.partition


@pytest.mark.parametrize(
    ("partition", "source"),
    [
        ("b.who", JOINED),  # equal, but not what the tasks are known by
        ("b.n", JOINED),
        ("a.who || ''", JOINED),
        ("CAST(a.id AS STRING)", "log_ AS a JOIN ups AS b ON a.id = b.id"),  # other values, other hashes
        ("a.who", JOINED.replace("JOIN", "FULL JOIN")),
        ("a.who", f"{JOINED} AND a.n = b.n"),  # rows of one name are in several tasks
        ("a.x", "(SELECT CAST(n AS DOUBLE) AS x FROM log_) AS a JOIN plain AS b ON a.x = b.n"),
        ("b.who", "plain AS b"),
    ],
)
def test_other_keys(partition: str, source: str) -> None:
    node = rank(partition, source)
    assert spread_by(node.input) != node.partition
