"""Interval joins and FOR SYSTEM_TIME AS OF as plans."""

from __future__ import annotations

import pytest

from headwater.errors import SqlError, ValidationError
from headwater.plan import nodes as n
from headwater.session import Session

KAFKA = "'properties.bootstrap.servers' = 'localhost:9092', 'scan.startup.mode' = 'earliest-offset'"
TABLES = f"""
CREATE TABLE orders (id INT, currency STRING, price INT, ts TIMESTAMP(3), p AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH ('connector' = 'kafka', 'topic' = 'o', {KAFKA}, 'format' = 'json');
CREATE TABLE shipments (oid INT, at_ TIMESTAMP(3), day_ TIMESTAMP(3), WATERMARK FOR at_ AS at_)
WITH ('connector' = 'kafka', 'topic' = 's', {KAFKA}, 'format' = 'json');
CREATE TABLE rates (currency STRING, kind INT, rate INT, since TIMESTAMP(3), WATERMARK FOR since AS since,
  PRIMARY KEY (currency) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'r', 'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'raw', 'value.format' = 'json');
CREATE TABLE timeless (currency STRING, rate INT, PRIMARY KEY (currency) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'raw', 'value.format' = 'json');
CREATE TABLE out_ (id INT, x INT) WITH ('connector' = 'print');
"""


def planned(query: str) -> n.Write:
    (only,) = Session().check(f"{TABLES} INSERT INTO out_ {query}")
    return only


def joined(query: str) -> n.Node:
    kinds = n.IntervalJoin | n.TemporalJoin | n.LookupJoin | n.Join
    (found,) = [node for node in n.walk(planned(query)) if isinstance(node, kinds)]
    return found


SECOND = 1_000_000
HOURS = 3600 * SECOND


@pytest.mark.parametrize(
    ("condition", "low", "high"),
    [
        ("s.at_ BETWEEN o.ts AND o.ts + INTERVAL '4' HOUR", 0, 4 * HOURS),
        ("o.ts BETWEEN s.at_ - INTERVAL '4' HOUR AND s.at_", 0, 4 * HOURS),
        ("o.ts >= s.at_ - INTERVAL '1' HOUR AND o.ts < s.at_ + INTERVAL '5' SECOND", 1 - 5 * SECOND, HOURS),
        ("s.at_ > o.ts AND o.ts + INTERVAL '1' SECOND > s.at_ AND s.at_ < o.ts + INTERVAL '1' DAY", 1, SECOND - 1),
        ("s.at_ = o.ts", 0, 0),
    ],
)
def test_conditions_on_times_make_an_interval(condition: str, low: int, high: int) -> None:
    node = joined(f"SELECT o.id, o.price FROM orders o JOIN shipments s ON o.id = s.oid AND {condition}")
    assert isinstance(node, n.IntervalJoin)
    assert (node.left_time, node.right_time, node.low, node.high) == ("ts", "at_", low, high)
    assert (node.left_keys, node.right_keys, node.condition) == (("id",), ("oid",), None)


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
def test_outer_interval_joins(kind: str) -> None:
    on = "o.id = s.oid AND s.at_ BETWEEN o.ts AND o.ts + INTERVAL '4' HOUR AND o.price > s.oid"
    node = joined(f"SELECT o.id, o.price FROM orders o {kind} JOIN shipments s ON {on}")
    assert isinstance(node, n.IntervalJoin)
    assert node.kind == kind.lower()
    assert node.condition == n.Comparison(">", "price", "oid")
    assert node.mode is n.Mode.APPEND


@pytest.mark.parametrize(
    "query",
    [
        "SELECT o.id, o.price FROM orders o JOIN shipments s ON o.id = s.oid AND s.at_ > o.ts",
        "SELECT o.id, o.price FROM orders o JOIN shipments s ON o.id = s.oid AND s.day_ BETWEEN o.ts AND o.ts",
        "SELECT 1, 2 FROM orders o JOIN (SELECT DISTINCT oid, at_ FROM shipments) s ON id = oid AND ts = at_",
    ],
    ids=["one end", "no time attribute", "updates"],
)
def test_other_joins_are_regular(query: str) -> None:
    assert isinstance(joined(query), n.Join)


_JOINED = (
    "(SELECT o.id, o.ts, s.at_ FROM orders o JOIN shipments s ON o.id = s.oid "
    "AND s.at_ BETWEEN o.ts - INTERVAL '1' HOUR AND o.ts + INTERVAL '4' HOUR)"
)


@pytest.mark.parametrize("time", ["ts", "at_"])
def test_both_times_are_event_time_behind_an_interval_join(time: str) -> None:
    view = f"CREATE VIEW joined AS SELECT * FROM {_JOINED} UNION ALL SELECT id, ts, ts FROM orders;"
    query = f"SELECT id, CAST(COUNT(*) AS INT) FROM TUMBLE(TABLE joined, DESCRIPTOR({time}), INTERVAL '1' DAY)"
    (write,) = Session().check(f"{TABLES} {view} INSERT INTO out_ {query} GROUP BY id, window_start, window_end")
    (window,) = [node for node in n.walk(write) if isinstance(node, n.WindowAggregate)]
    assert window.input.delay == 4 * HOURS, "of a union that of the slowest"
    assert window.mode is n.Mode.APPEND


def test_delays_add_up() -> None:
    join = f"{_JOINED} j JOIN orders p ON p.id = j.id AND p.ts BETWEEN j.at_ - INTERVAL '2' HOUR AND j.at_"
    write = planned(f"SELECT j.id, p.price FROM {join} WHERE j.id > 3")
    first, second = [node for node in n.walk(write) if isinstance(node, n.IntervalJoin)]
    assert (first.delay, second.delay) == (4 * HOURS, 6 * HOURS)
    assert set(second.times) == {"at_", "ts0"}


def test_an_interval_of_processing_time_has_no_event_time() -> None:
    query = "SELECT a.id, b.price FROM orders a JOIN orders b ON a.id = b.id AND a.p BETWEEN b.p AND b.p"
    node = joined(query)
    assert isinstance(node, n.IntervalJoin)
    assert (node.times, node.delay) == ({}, 0)


def test_conditions_in_where_count() -> None:
    query = "SELECT o.id, 1 FROM orders o, shipments s WHERE o.id = s.oid AND o.ts BETWEEN s.at_ AND s.at_"
    assert isinstance(joined(query), n.IntervalJoin)


def test_versions_of_a_table() -> None:
    query = "SELECT o.id, r.rate FROM orders o {} JOIN rates FOR SYSTEM_TIME AS OF o.{} AS r ON {}"
    node = joined(query.format("LEFT", "ts", "r.currency = o.currency AND r.kind = o.id AND r.rate > 3"))
    assert isinstance(node, n.TemporalJoin)
    assert (node.kind, node.left_time, node.right_time) == ("left", "ts", "since")
    assert (node.left_keys, node.right_keys) == (("currency",), ("currency0",))
    assert isinstance(node.condition, n.Logic)
    assert node.left.mode is n.Mode.APPEND
    assert node.right.mode is n.Mode.UPSERT
    (scan,) = [one for one in n.walk(node.right) if isinstance(one, n.Scan)]
    assert scan.placed, "every version is read"
    node = joined(query.format("", "p", "r.currency = o.currency"))
    assert isinstance(node, n.LookupJoin)


def test_a_key_that_is_compared_twice() -> None:
    on = "o.currency = r.currency AND CAST(o.price AS STRING) = r.currency"
    node = joined(f"SELECT o.id, r.rate FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON {on}")
    assert isinstance(node, n.TemporalJoin)
    assert (node.left_keys, node.right_keys) == (("currency",), ("currency0",))
    assert isinstance(node.condition, n.Comparison)
    assert (node.condition.operator, node.condition.right) == ("=", "currency0")


@pytest.mark.parametrize(
    ("order", "limit", "versioned"),
    [
        ("at_ DESC", "n = 1", True),
        ("at_ DESC", "n <= 1", True),
        ("at_", "n = 1", False),
        ("at_ DESC, day_", "n = 1", False),
        ("day_ DESC", "n = 1", False),
        ("at_ DESC", "n <= 2", False),
    ],
)
def test_all_rows_of_a_versioned_view_are_versions(order: str, limit: str, versioned: bool) -> None:
    ranked = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY oid ORDER BY {order}) AS n FROM shipments"
    view = f"CREATE VIEW newest AS SELECT oid, at_, n FROM ({ranked}) WHERE {limit};"
    session = Session()
    session.sql(f"{TABLES} {view}")
    query = "SELECT o.id, v.n FROM orders o JOIN newest FOR SYSTEM_TIME AS OF o.ts AS v ON v.oid = o.id"
    if not versioned:
        with pytest.raises(SqlError, match="FOR SYSTEM_TIME AS OF"):
            session.check(f"INSERT INTO out_ SELECT id, CAST(n AS INT) FROM ({query})")
        return
    (write,) = session.check(f"INSERT INTO out_ SELECT id, CAST(n AS INT) FROM ({query})")
    (node,) = [one for one in n.walk(write) if isinstance(one, n.TemporalJoin)]
    assert (node.right_time, node.right.mode) == ("at_", n.Mode.APPEND)
    assert not any(isinstance(one, n.Rank) for one in n.walk(write))


def test_what_the_left_is_filtered_by_is_filtered_below() -> None:
    tail = "WHERE o.price > 3 AND r.rate > 1"
    write = planned(
        "SELECT o.id, r.rate FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON r.currency = o.currency "
        + tail
    )
    names = [type(node).__name__ for node in reversed(n.walk(write))]
    assert names.index("Filter") < names.index("TemporalJoin"), "a version that fails is not replaced by an older one"
    assert names.count("Filter") == 2


@pytest.mark.parametrize(
    ("join", "texts"),
    [
        ("JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON r.kind = o.id", ["an equality with the primary key"]),
        ("RIGHT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON r.currency = o.currency", ["not supported in a RIGHT"]),
        ("JOIN timeless FOR SYSTEM_TIME AS OF o.ts AS r ON r.currency = o.currency", ["no event time"]),
        ("JOIN rates FOR SYSTEM_TIME AS OF o.price AS r ON r.currency = o.currency", ["is not a time attribute"]),
    ],
)
def test_refusals(join: str, texts: list[str]) -> None:
    with pytest.raises(SqlError) as caught:
        planned(f"SELECT o.id, 1 FROM orders o {join}")
    for text in texts:
        assert text in str(caught.value)


def test_rows_of_the_left_are_inserts() -> None:
    query = "SELECT 1, r.rate FROM (SELECT currency, COUNT(*) AS n, PROCTIME() AS p FROM orders GROUP BY currency) o "
    with pytest.raises(ValidationError, match="doesn't support consuming update and delete changes"):
        planned(f"{query} JOIN rates FOR SYSTEM_TIME AS OF o.p AS r ON r.currency = o.currency")


def test_event_times_of_two_types_are_refused() -> None:
    """They differ by the session's time zone, of which an operator that compares them knows nothing."""
    local = """CREATE TABLE local_rates (currency STRING, rate INT, since TIMESTAMP_LTZ(3),
      WATERMARK FOR since AS since, PRIMARY KEY (currency) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = 'l',
      'properties.bootstrap.servers' = 'localhost:9092', 'key.format' = 'raw', 'value.format' = 'json');"""
    join = "JOIN local_rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency"
    with pytest.raises(SqlError, match="needs event times of one type") as refused:
        Session().check(f"{TABLES} {local} INSERT INTO out_ SELECT o.id, r.rate FROM orders AS o {join}")
    assert "ts is a TIMESTAMP, that of the versioned table is a TIMESTAMP_LTZ" in refused.value.detail


def test_a_watermark_does_not_decide_which_row_is_retracted() -> None:
    cdc = f"""CREATE TABLE cdc (id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
      WITH ('connector' = 'kafka', 'topic' = 'c', {KAFKA}, 'format' = 'debezium-json');"""
    on_time = "FROM cdc WHERE CURRENT_WATERMARK(ts) IS NULL OR ts > CURRENT_WATERMARK(ts)"
    in_a_query = "FROM (SELECT id, ts, CURRENT_WATERMARK(ts) AS w FROM cdc) WHERE ts > w"
    random = "FROM (SELECT id, RAND() AS r FROM cdc) WHERE r < 0.5"
    for rows in (on_time, in_a_query, random):
        with pytest.raises(ValidationError, match="non-deterministic"):
            Session().check(f"{TABLES} {cdc} INSERT INTO out_ SELECT id, 1 {rows}")
