"""Tables for the tests of plans, and the ways from SQL to a plan and to its EXPLAIN."""

from __future__ import annotations

from headwater.catalog.tables import View
from headwater.plan import nodes as n
from headwater.plan.build import Builder
from headwater.session import Session

KAFKA = "'properties.bootstrap.servers' = 'localhost:9092'"
UPSERT = f"'connector' = 'upsert-kafka', {KAFKA}, 'key.format' = 'json', 'value.format' = 'json'"
TABLES = f"""
CREATE TABLE log_ (id INT, who STRING, n BIGINT, d DECIMAL(10, 2), tags ARRAY<STRING>)
WITH ('connector' = 'kafka', 'topic' = 'log', {KAFKA}, 'format' = 'json');
CREATE TABLE ups (id INT, who STRING, n BIGINT, extra STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ({UPSERT}, 'topic' = 'ups');
CREATE TABLE by_id (id INT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ({UPSERT}, 'topic' = 'by_id');
CREATE TABLE by_id_n (id INT, n BIGINT, PRIMARY KEY (n, id) NOT ENFORCED) WITH ({UPSERT}, 'topic' = 'by_id_n');
CREATE TABLE by_who (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH ({UPSERT}, 'topic' = 'by_who');
CREATE TABLE plain (who STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'plain', {KAFKA}, 'format' = 'json');
CREATE TABLE keyed (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED)
WITH ('connector' = 'kafka', 'topic' = 'keyed', {KAFKA}, 'format' = 'json');
CREATE TABLE changes (who STRING, n BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'changes', {KAFKA}, 'format' = 'json', 'sink.changelog' = 'retract');
CREATE TABLE keyed_changes (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED)
WITH ({UPSERT}, 'topic' = 'keyed_changes', 'sink.changelog' = 'retract');
CREATE TABLE shown (who STRING, n BIGINT) WITH ('connector' = 'print');
"""


def session() -> Session:
    defined = Session()
    defined.sql(TABLES)
    return defined


def plan(sql: str) -> n.Write:
    (only,) = session().check(sql)
    return only


def query(sql: str) -> n.Node:
    """The plan of a query alone, as it is built."""
    defined = session()
    defined.sql(f"CREATE VIEW query AS {sql}")
    catalog = defined._definitions().catalog
    view = catalog.get("query", None)
    assert isinstance(view, View)
    return Builder(catalog, lambda _: None).view(view)


def explained(sql: str) -> str:
    return session().explain(sql)


def shape(sql: str) -> str:
    """The operators from the root down: 'Write Consolidate Filter Aggregate Scan'."""
    return " ".join(type(node).__name__ for node in reversed(n.walk(plan(sql))))
