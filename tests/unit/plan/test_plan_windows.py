"""Time attributes and windows in plans: where they come from, what keeps them, and what is refused."""

from __future__ import annotations

import pytest
from plan_tables import KAFKA, session

from headwater.changelog import operator
from headwater.errors import HeadwaterError
from headwater.plan import nodes as n
from headwater.plan.time_attributes import processing_period
from headwater.sql import typed

TABLES = f"""
CREATE TABLE clicks (who STRING, n BIGINT, ts TIMESTAMP(3), pt AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH ('connector' = 'kafka', 'topic' = 'clicks', {KAFKA}, 'format' = 'json');
CREATE TABLE counts (who STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'counts', {KAFKA}, 'format' = 'json');
CREATE VIEW renamed AS SELECT UPPER(who) AS name, ts AS t, pt AS p FROM clicks WHERE n > 0;
"""
TUMBLE = "TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
SESSION = "SESSION(TABLE clicks PARTITION BY who, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"


def plan(query: str, settings: str = "") -> n.Write:
    defined = session()
    defined.sql(TABLES + settings)
    (only,) = defined.check(f"INSERT INTO counts {query}")
    return only


def shape(query: str) -> str:
    return " ".join(type(node).__name__ for node in reversed(n.walk(plan(query))))


def scan_of(root: n.Node) -> n.Scan:
    (scan,) = (node for node in n.walk(root) if isinstance(node, n.Scan))
    return scan


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT who, COUNT(*) FROM {TUMBLE} GROUP BY who, window_start, window_end",
        f"SELECT who, COUNT(*) FROM TABLE({TUMBLE}) GROUP BY window_end, who, window_start, window_time",
        (
            "SELECT who, COUNT(*) FROM HOP(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR) "
            "GROUP BY who, window_start, window_end"
        ),
        (
            "SELECT who, COUNT(*) FROM TABLE(TUMBLE(DATA => TABLE clicks, TIMECOL => DESCRIPTOR(ts), "
            "SIZE => INTERVAL '1' DAY, OFFSET => INTERVAL '8' HOUR)) GROUP BY who, window_start, window_end"
        ),
        (
            "SELECT who, COUNT(*) FROM TABLE(TUMBLE((SELECT who, ts FROM clicks WHERE n > 0), DESCRIPTOR(ts), "
            "INTERVAL '1' MINUTE)) GROUP BY who, window_start, window_end"
        ),
        (
            "SELECT who, COUNT(*) FROM TABLE(TUMBLE((SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY n "
            "ORDER BY pt) AS place FROM clicks) WHERE place = 1), DESCRIPTOR(ts), INTERVAL '1' MINUTE)) "
            "GROUP BY who, window_start, window_end"
        ),
        "SELECT who, COUNT(*) FROM clicks GROUP BY who, TUMBLE(ts, INTERVAL '1' MINUTE)",
        (
            "SELECT x, COUNT(*) FROM clicks CROSS JOIN UNNEST(ARRAY[who, 'all']) AS t (x) "
            "GROUP BY x, TUMBLE(ts, INTERVAL '1' MINUTE)"
        ),
        (
            "SELECT who, COUNT(*) FROM clicks GROUP BY HOP(ts, INTERVAL '1' MINUTE, INTERVAL '1' HOUR), who "
            "HAVING HOP_END(ts, INTERVAL '1' MINUTE, INTERVAL '1' HOUR) > TIMESTAMP '2024-01-01 00:00:00'"
        ),
        f"SELECT who, COUNT(*) FROM {SESSION} GROUP BY who, window_start, window_end",
        (
            "SELECT name, COUNT(*) FROM TABLE(TUMBLE(TABLE renamed, DESCRIPTOR(t), INTERVAL '1' MINUTE)) "
            "GROUP BY name, window_start, window_end"
        ),
        (
            "WITH all_ AS (SELECT who, ts FROM clicks UNION ALL SELECT who, ts FROM clicks WHERE n = 1) SELECT who, "
            "COUNT(*) FROM TABLE(TUMBLE(TABLE all_, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) "
            "GROUP BY who, window_start, window_end"
        ),
    ],
)
def test_a_window_is_aggregated_once_and_only_inserts(query: str) -> None:
    root = plan(query)
    assert root.mode is n.Mode.APPEND
    (aggregate,) = (node for node in n.walk(root) if isinstance(node, n.WindowAggregate))
    assert aggregate.times == {aggregate.time.name: n.TimeKind.EVENT}
    assert all(scan.placed for scan in n.walk(root) if isinstance(scan, n.Scan))
    assert any(isinstance(node, n.Watermark) for node in n.walk(root))


def test_by_its_start_alone_a_window_is_a_group_like_others() -> None:
    with pytest.raises(HeadwaterError, match="doesn't support consuming update and delete changes"):
        plan(f"SELECT CAST(window_start AS STRING), COUNT(*) FROM {TUMBLE} GROUP BY window_start")


@pytest.mark.parametrize("name", ["w$start", "w$end", "w$time"])
def test_columns_of_a_group_window_meet_none_of_a_table(name: str) -> None:
    defined = session()
    defined.sql(
        f"CREATE TABLE named (`{name}` STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)"
        f" WITH ('connector' = 'kafka', 'topic' = 'named', {KAFKA}, 'format' = 'json');{TABLES}"
    )
    (root,) = defined.check(
        f"INSERT INTO counts SELECT `{name}`, COUNT(*) FROM named GROUP BY `{name}`, TUMBLE(ts, INTERVAL '1' MINUTE)"
    )
    assert scan_of(root).names == (name, "ts")


def test_a_watermark_that_nobody_uses_costs_nothing() -> None:
    assert shape("SELECT who, n FROM clicks") == "Write Project Scan"
    assert shape(f"SELECT who, n FROM {TUMBLE}") == "Write Project WindowTable Project Scan"
    assert not scan_of(plan("SELECT who, n FROM clicks")).placed


def test_the_watermark_of_a_row_can_be_asked_for() -> None:
    late = "SELECT who, n FROM clicks WHERE ts <= CURRENT_WATERMARK(ts)"
    assert shape(late) == "Write Project Filter Watermark Project Scan"
    assert scan_of(plan(late)).placed


@pytest.mark.parametrize(
    ("function", "condition", "expected"),
    [
        (TUMBLE, "window_end > TIMESTAMP '2024-01-01 00:00:00'", "WindowAggregate Filter WindowTable"),
        (SESSION, "who > 'a'", "WindowAggregate Filter WindowTable"),
        (SESSION, "window_end > window_start + INTERVAL '1' HOUR", "Filter WindowAggregate WindowTable"),
    ],
)
def test_a_filter_on_the_bounds_of_sessions_stays_above_them(function: str, condition: str, expected: str) -> None:
    query = f"SELECT who, COUNT(*) FROM TABLE({function}) GROUP BY who, window_start, window_end HAVING {condition}"
    assert expected in shape(query)


def test_processing_time() -> None:
    pt = "TUMBLE(TABLE clicks, DESCRIPTOR(pt), INTERVAL '90' SECOND)"
    root = plan(f"SELECT who, COUNT(*) FROM {pt} GROUP BY who, window_start, window_end")
    assert any(isinstance(node, n.ProcessingTime) for node in n.walk(root))
    assert processing_period(root) == 90_000
    assert processing_period(plan(f"SELECT who, COUNT(*) FROM {TUMBLE} GROUP BY who, window_start, window_end")) is None


def test_early_results_update() -> None:
    early = "SET 'table.exec.emit.early-fire.enabled' = 'true';"
    with pytest.raises(HeadwaterError, match="which are produced by GROUP BY who"):
        plan("SELECT who, COUNT(*) FROM clicks GROUP BY who, TUMBLE(ts, INTERVAL '1' MINUTE)", early)
    with pytest.raises(HeadwaterError, match=r"requires 'table\.exec\.emit\.allow-lateness'"):
        plan("SELECT who, n FROM clicks", "SET 'table.exec.emit.late-fire.enabled' = 'true';")


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (
            "SELECT who, n FROM TUMBLE(TABLE clicks, DESCRIPTOR(n), INTERVAL '1' MINUTE)",
            "requires a time attribute, but n is BIGINT",
        ),
        (
            (
                "SELECT who, n FROM (SELECT *, CAST(ts AS TIMESTAMP(3)) AS c FROM clicks) "
                "WHERE n IN (SELECT n FROM TUMBLE(TABLE nothing, DESCRIPTOR(c), INTERVAL '1' MINUTE))"
            ),
            "nothing",
        ),
        ("SELECT who, n FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts))", "TUMBLE takes other arguments"),
        (
            "SELECT who, n FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MONTH)",
            "intervals of days to milliseconds",
        ),
        ("SELECT who, n FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '0' SECOND)", "must be longer than zero"),
        (
            "SELECT who, n FROM CUMULATE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '7' SECOND, INTERVAL '1' MINUTE)",
            "integral multiple of its step",
        ),
        (
            "SELECT who, n FROM TUMBLE(TABLE clicks PARTITION BY who, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
            "TUMBLE takes no PARTITION BY",
        ),
        ("SELECT who, n FROM TUMBLE(DATA => TABLE clicks, TIME => DESCRIPTOR(ts))", "TUMBLE has no argument TIME"),
        (f"SELECT who, n FROM {SESSION}", "known when it has ended"),
        (
            f"SELECT who, COUNT(*) FROM {SESSION} WHERE window_end > ts GROUP BY who, window_start, window_end",
            "known when it has ended",
        ),
        (
            f"SELECT 'x', COUNT(*) FROM {SESSION} GROUP BY window_start, window_end",
            "must be grouped by what they are partitioned by",
        ),
        (
            (
                "SELECT who, COUNT(*) FROM clicks "
                "GROUP BY who, TUMBLE(ts, INTERVAL '1' MINUTE), TUMBLE(ts, INTERVAL '2' MINUTE)"
            ),
            "GROUP BY takes one window function",
        ),
        (
            (
                "SELECT who, COUNT(*) FROM clicks GROUP BY who, TUMBLE(ts, INTERVAL '1' MINUTE) "
                "HAVING TUMBLE_END(ts, INTERVAL '2' MINUTE) > ts"
            ),
            "TUMBLE_END",
        ),
        (
            (
                "SELECT who, n FROM (SELECT who, COUNT(*) AS n, MAX(ts) AS ts FROM clicks GROUP BY who) "
                "WHERE ts > CURRENT_WATERMARK(ts)"
            ),
            "CURRENT_WATERMARK takes the event time of a table",
        ),
    ],
)
def test_it_is_refused_with_the_reason(query: str, problem: str) -> None:
    with pytest.raises(HeadwaterError) as caught:
        plan(query)
    assert problem in str(caught.value)


def test_the_column_with_watermarks_has_one_name() -> None:
    assert operator.OWN_WATERMARK == typed.OWN_WATERMARK


@pytest.mark.parametrize("order", ["pt DESC", "ts", "ts DESC", "who"])
def test_rows_that_others_replace_have_no_time(order: str) -> None:
    ranked = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY n ORDER BY {order}) AS place FROM clicks"
    with pytest.raises(HeadwaterError, match="requires a time attribute") as caught:
        plan(f"SELECT who, COUNT(*) FROM ({ranked}) WHERE place = 1 GROUP BY who, TUMBLE(ts, INTERVAL '1' MINUTE)")
    assert "Keep the first of each key to come" in caught.value.hint
