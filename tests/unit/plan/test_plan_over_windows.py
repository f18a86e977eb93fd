"""Aggregates with OVER as plans."""

from __future__ import annotations

import pytest
from test_plan_timed_joins import TABLES

from headwater.errors import SqlError, ValidationError
from headwater.plan import nodes as n
from headwater.session import Session

SECOND = 1_000_000


def overs(query: str, table: str = "out_ (id INT, x BIGINT) WITH ('connector' = 'print')") -> list[n.Node]:
    script = (
        f"{TABLES.replace('CREATE TABLE out_ (id INT, x INT)', 'CREATE TABLE unused (id INT)')} CREATE TABLE {table};"
    )
    (only,) = Session().check(f"{script} INSERT INTO out_ {query}")
    return [node for node in n.walk(only) if isinstance(node, n.OverTime | n.Over)]


@pytest.mark.parametrize(
    ("window", "frame"),
    [
        ("ORDER BY ts", n.OverFrame()),
        ("ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", n.OverFrame("rows", 2)),
        ("ORDER BY ts ROWS UNBOUNDED PRECEDING", n.OverFrame("rows")),
        ("ORDER BY ts RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW", n.OverFrame("range", 60 * SECOND)),
        ("ORDER BY p", n.OverFrame()),
    ],
)
def test_in_the_order_of_time_results_are_final(window: str, frame: n.OverFrame) -> None:
    query = f"SELECT id, COUNT(*) OVER (PARTITION BY currency {window}) FROM orders"
    (node,) = overs(query)
    assert isinstance(node, n.OverTime)
    assert node.mode is n.Mode.APPEND
    assert node.calls[0].frame == frame
    assert node.clock is (n.TimeKind.PROCESSING if " p" in window else n.TimeKind.EVENT)


@pytest.mark.parametrize(
    ("call", "frame"),
    [
        ("SUM(price) OVER (PARTITION BY currency)", n.OverFrame(following=None)),
        ("SUM(price) OVER (ORDER BY price DESC)", n.OverFrame()),
        ("LEAD(price) OVER (PARTITION BY currency ORDER BY ts)", n.OverFrame()),
        ("SUM(price) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)", n.OverFrame("rows", 1, 1)),
        ("SUM(price) OVER (ORDER BY price RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)", n.OverFrame("range", 5)),
    ],
)
def test_other_results_are_updated(call: str, frame: n.OverFrame) -> None:
    (node,) = overs(f"SELECT id, {call} FROM orders")
    assert isinstance(node, n.Over)
    assert node.calls[0].frame == frame


def test_rows_are_numbered_in_the_order_of_time() -> None:
    (node,) = overs("SELECT id, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY ts) FROM orders")
    assert isinstance(node, n.OverTime)
    assert [call.function for call in node.calls] == ["ROW_NUMBER"]


def test_windows_with_one_partition_and_order_are_one_node() -> None:
    query = (
        "SELECT id, COUNT(*) OVER w + SUM(price) OVER w + COALESCE(LAG(price, 2, 0) OVER w, 0) "
        "+ MAX(price * 2) OVER (PARTITION BY currency ORDER BY ts ROWS 1 PRECEDING) + COUNT(*) OVER (ORDER BY ts) "
        "FROM orders WINDOW w AS (PARTITION BY currency ORDER BY ts)"
    )
    found = overs(query)
    assert [type(node) for node in found] == [n.OverTime, n.OverTime]
    assert sorted(len(node.calls) for node in found if isinstance(node, n.OverTime)) == [1, 4]


def test_over_the_results_of_groups_and_over_updating_tables() -> None:
    (node,) = overs("SELECT 1, SUM(COUNT(*)) OVER (PARTITION BY currency) FROM orders GROUP BY currency, id")
    assert isinstance(node, n.Over)
    sink = "out_ (currency STRING, x BIGINT, PRIMARY KEY (currency) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', "
    sink += "'topic' = 'x', 'properties.bootstrap.servers' = 'h:1', 'key.format' = 'raw', 'value.format' = 'json')"
    (node,) = overs("SELECT currency, SUM(rate) OVER (PARTITION BY kind ORDER BY since) FROM rates", sink)
    assert isinstance(node, n.Over)
    assert node.mode is n.Mode.RETRACT
    (node,) = overs("SELECT currency, SUM(rate) OVER (PARTITION BY currency ORDER BY since) FROM rates", sink)
    assert node.mode is n.Mode.UPSERT, "without before-images: the key is that of the sink"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("COUNT(DISTINCT price) OVER (ORDER BY ts)", "DISTINCT and FILTER with OVER"),
        ("LAG(price) OVER (PARTITION BY id)", "LAG over rows needs an ORDER BY"),
        ("LAG(price, id) OVER (ORDER BY ts)", "must be a literal of 0 or more"),
        ("SUM(price) OVER (ORDER BY currency RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)", "do not fit its ORDER BY"),
        ("SUM(price) OVER nowhere", "There is no window 'nowhere'"),
    ],
)
def test_refusals(call: str, text: str) -> None:
    with pytest.raises((SqlError, ValidationError), match=text):
        overs(f"SELECT id, {call} FROM orders")
