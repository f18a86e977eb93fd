"""All queries of TPC-H plan as streaming jobs over upsert-kafka tables."""

from __future__ import annotations

import pytest

from headwater.plan import nodes as n
from headwater.session import Session
from tpch_queries import QUERIES, tables


@pytest.mark.parametrize("number", QUERIES)
def test_query(number: int) -> None:
    session = Session()
    session.sql(tables())
    (shown,) = session.sql(f"EXPLAIN {QUERIES[number]}")
    lines = [row[0] for row in shown.rows]
    assert not any("__" in line for line in lines), "a name that the planner made is shown"
    assert not any("of all rows" in line for line in lines)


def test_a_table_that_is_read_in_several_places_is_kept_once_if_it_is_the_same() -> None:
    session = Session()
    session.sql(f"{tables()} CREATE TABLE shown (s_suppkey BIGINT, total DECIMAL(38, 4)) WITH ('connector' = 'print');")
    query = QUERIES[15].replace(
        "SELECT s_suppkey, s_name, s_address, s_phone, total_revenue", "SELECT s_suppkey, total_revenue"
    )
    (root,) = session.check(f"INSERT INTO shown {query}")
    assert len([node for node in n.walk(root) if isinstance(node, n.Aggregate)]) == 2
