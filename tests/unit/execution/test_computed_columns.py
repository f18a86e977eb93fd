"""What workers compute of the columns of a table: as Spark would, or not at all."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.changelog.local_windows import LocalWindows
from headwater.execution.lowering.computed import ComputedBelow, computed_below
from headwater.execution.lowering.local_windows import _windows_of_table
from headwater.plan import nodes as n
from headwater.session import Session

TABLES = """
CREATE TABLE t (kind INT, name STRING, a BIGINT, r ROW<x BIGINT, s ROW<y STRING>>, c AS a + 1) WITH (
  'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json');
CREATE TABLE out_ (v BIGINT) WITH ('connector' = 'blackhole');
"""
COLUMNS = {
    "kind": pa.array([0, 1, None, 2], pa.int32()),
    "name": pa.array(["a", "b", None, "d"]),
    "a": pa.array([10, 11, 12, None], pa.int64()),
    "r": pa.array(
        [{"x": 1, "s": {"y": "p"}}, None, {"x": None, "s": None}, {"x": 4, "s": {"y": None}}],
        pa.struct([("x", pa.int64()), ("s", pa.struct([("y", pa.string())]))]),
    ),
}


def below(select: str) -> ComputedBelow | None:
    session = Session()
    session.sql(TABLES)
    (plan,) = session.check(f"INSERT INTO out_ SELECT {select}")
    return computed_below(plan.input)


def values(select: str) -> list[object] | None:
    found = below(select)
    if found is None or "v" not in found.values:
        return None
    result: list[object] = found.values["v"].evaluate(COLUMNS, 4).to_pylist()
    return result


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("a AS v FROM t", [10, 11, 12, None]),
        ("r.x AS v FROM t", [1, None, None, 4]),
        ("x AS v FROM (SELECT r.x AS x, r AS other FROM t)", [1, None, None, 4]),
        ("CASE WHEN kind = 0 THEN r.x WHEN kind > 1 THEN a ELSE a END AS v FROM t", [1, 11, 12, None]),
        ("CASE WHEN name = 'b' OR kind IS NULL THEN r.x ELSE a END AS v FROM t", [10, None, None, None]),
        ("CASE WHEN NOT kind = 0 THEN a ELSE r.x END AS v FROM t", [1, 11, None, None]),
        ("CASE WHEN k = 1 THEN a ELSE r.x END AS v FROM (SELECT kind AS k, a, r FROM t)", [1, 11, None, 4]),
    ],
)
def test_values_are_those_of_sql(select: str, expected: list[object]) -> None:
    assert values(select) == expected


@pytest.mark.parametrize(
    "select",
    [
        "c AS v FROM t",
        "ABS(a) AS v FROM t",
        "ABS(r.x) AS v FROM t",
        "CASE WHEN kind = 0 THEN a END AS v FROM t",  # its last result is a NULL, which has no type of its own
        "CASE WHEN kind = 0 THEN kind ELSE a END AS v FROM t",  # a result is cast
        "CASE WHEN UPPER(name) = 'A' THEN a ELSE r.x END AS v FROM t",
    ],
)
def test_everything_else_is_left_to_spark(select: str) -> None:
    assert values(select) is None


def test_filters_are_conditions_on_columns_of_the_table() -> None:
    found = below("r.x AS v FROM t WHERE kind < 2 AND name <> 'a'")
    assert found is not None
    assert found.where is not None
    assert found.where.evaluate(COLUMNS, 4).to_pylist() == [False, True, None, False]
    assert below("a AS v FROM t WHERE UPPER(name) = 'A'") is None
    assert below("COUNT(*) AS v FROM t") is None


def windows(column: str) -> LocalWindows | None:
    session = Session()
    session.sql(
        f"CREATE TABLE e ({column} BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH ('connector' = 'kafka', "
        "'topic' = 'e', 'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json');"
        "CREATE TABLE out_ (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole')"
    )
    (plan,) = session.check(
        f"INSERT INTO out_ SELECT {column}, COUNT(*) FROM TABLE(TUMBLE(TABLE e, DESCRIPTOR(at), INTERVAL '1' SECOND)) "
        f"WHERE {column} > 0 GROUP BY window_start, window_end, {column}"
    )
    (node,) = (node for node in n.walk(plan) if isinstance(node, n.WindowAggregate))
    found = _windows_of_table(node)
    return found[1] if found is not None else None


def test_windows_of_columns_are_computed_before_the_shuffle() -> None:
    found = windows("k")
    assert found is not None
    assert ("k", "k") in found.groups.groups
