"""Changes are read with what tells their order only where something above takes it."""

from __future__ import annotations

import pytest
from plan_tables import KAFKA, session

from headwater.execution.lowering.reading import takes_order
from headwater.plan import nodes as n

CDC = f"""
CREATE TABLE cdc (id INT, who STRING, n BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'kafka', 'topic' = 'cdc', {KAFKA}, 'format' = 'debezium-json');
CREATE TABLE rates (id INT, n BIGINT, at TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR at AS at)
WITH ('connector' = 'kafka', 'topic' = 'rates', {KAFKA}, 'format' = 'debezium-json');
CREATE TABLE sales (id INT, at TIMESTAMP(3), WATERMARK FOR at AS at)
WITH ('connector' = 'kafka', 'topic' = 'sales', {KAFKA}, 'format' = 'json');
"""


def taken(sql: str, table: str = "cdc") -> bool:
    defined = session()
    defined.sql(CDC)
    (root,) = defined.check(f"INSERT INTO {sql}")
    (scan,) = (node for node in n.walk(root) if isinstance(node, n.Scan) and node.table.name == table)
    return takes_order(root, scan)


@pytest.mark.parametrize("sql", ["by_id SELECT id, n FROM cdc", "by_id SELECT id, n + 1 FROM cdc WHERE n > 1"])
def test_the_key_of_a_sink_needs_the_order_of_its_changes(sql: str) -> None:
    assert taken(sql)


def test_the_state_of_an_upsert_table_needs_it() -> None:
    assert taken("by_who SELECT who, COUNT(*) FROM ups GROUP BY who", "ups")


@pytest.mark.parametrize(
    "sql",
    [
        "shown SELECT who, n FROM cdc",
        "shown SELECT UPPER(who), n FROM cdc WHERE n > 1",
        "changes SELECT who, n FROM cdc",
        "by_who SELECT who, COUNT(*) FROM cdc GROUP BY who",
        "shown SELECT a.who, b.n FROM cdc AS a JOIN log_ AS b ON a.id = b.id",
        "shown SELECT who, n FROM cdc UNION ALL SELECT who, n FROM log_",
    ],
)
def test_sums_joins_and_sinks_without_a_key_do_not(sql: str) -> None:
    assert not taken(sql)


def test_versions_of_a_temporal_join_need_it() -> None:
    assert taken(
        "by_id SELECT s.id, r.n FROM sales AS s JOIN rates FOR SYSTEM_TIME AS OF s.at AS r ON s.id = r.id", "rates"
    )
