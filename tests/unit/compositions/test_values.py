"""Values that are equal without looking the same, and values that are lists, as a whole query treats them."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from histories import KAFKA
from played_job import Job

from headwater.session import Session

NAN = float("nan")
OTHER_NAN = -NAN  # the sign bit is set: what 0.0 / 0.0 gives on x86
COLUMNS = pa.schema([("k", pa.string()), ("d", pa.float64()), ("arr", pa.list_(pa.int64()))])
SCRIPT = f"""
CREATE TABLE t (k STRING, d DOUBLE, arr ARRAY<BIGINT>)
WITH ('connector' = 'kafka', 'topic' = 't', {KAFKA}, 'format' = 'json');
CREATE TABLE out_ (a STRING, n BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'o', {KAFKA}, 'format' = 'json', 'sink.changelog' = 'retract');
"""
ROWS = [("x", 0.0, [1, 2]), ("x", -0.0, [1, 2]), ("x", NAN, []), ("x", OTHER_NAN, [2, 1]), ("x", None, None)]


def result(query: str) -> list[dict[str, Any]]:
    """Of the rows in one batch, and of one after the other."""
    session = Session()
    session.sql(SCRIPT)
    (plan,) = session.check(f"INSERT INTO out_ {query}")
    job = Job(plan, {"t": COLUMNS}, Random(1))
    table = pa.Table.from_pylist([dict(zip(COLUMNS.names, row, strict=True)) for row in ROWS], COLUMNS)
    found: list[dict[str, Any]] = job.batch({"t": table}).to_pylist()
    slowly = Job(plan, {"t": COLUMNS}, Random(1))
    live: list[dict[str, Any]] = []
    for place in range(table.num_rows):
        for change in slowly.batch({"t": table.slice(place, 1)}).to_pylist():
            kind = change.pop("__hw_kind", 0)
            if kind in (0, 2):
                live.append(change)
            else:
                live.remove(change)
    in_one = [{name: value for name, value in row.items() if name != "__hw_kind"} for row in found]
    assert sorted(map(str, in_one)) == sorted(map(str, live))
    return in_one


@pytest.mark.parametrize("more", ["COUNT(*)", "COUNT(DISTINCT arr) * 0 + COUNT(*)"])
def test_zeros_are_one_group_and_so_is_nan(more: str) -> None:
    counts = [
        row["n"]
        for row in result(f"SELECT CAST(d AS STRING) || k, n FROM (SELECT d, k, {more} AS n FROM t GROUP BY d, k)")
    ]
    assert sorted(counts) == [1, 2, 2]


def test_zeros_are_one_value_and_so_is_nan() -> None:
    assert result("SELECT k, COUNT(DISTINCT d) FROM t GROUP BY k") == [{"a": "x", "n": 2}]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT k, rn FROM (SELECT k, ROW_NUMBER() OVER (PARTITION BY d ORDER BY k) AS rn FROM t) WHERE rn = 1", 3),
        ("SELECT k, rn FROM (SELECT k, ROW_NUMBER() OVER (PARTITION BY d ORDER BY k) AS rn FROM t) WHERE rn <= 2", 5),
        ("SELECT k, 1 FROM (SELECT k, ROW_NUMBER() OVER (PARTITION BY d ORDER BY k) AS rn FROM t) WHERE rn = 1", 3),
        ("SELECT CAST(d AS STRING), 1 FROM (SELECT d FROM t INTERSECT SELECT d FROM t)", 3),
        ("SELECT CAST(d AS STRING), 1 FROM (SELECT d FROM t EXCEPT ALL SELECT d FROM t WHERE d = 0)", 3),
        ("SELECT CAST(d AS STRING), 1 FROM (SELECT DISTINCT d FROM t)", 3),
        ("SELECT a.k, 1 FROM t AS a JOIN t AS b ON a.d = b.d", 8),
    ],
)
def test_equal_numbers_are_one_key(query: str, rows: int) -> None:
    assert len(result(query)) == rows


def test_partitions_of_over() -> None:
    frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    found = result(f"SELECT k, COUNT(*) OVER (PARTITION BY d ORDER BY k {frame}) FROM t")
    assert sorted(row["n"] for row in found) == [1, 1, 1, 2, 2]


def test_an_array_is_one_value() -> None:
    assert result("SELECT k, COUNT(DISTINCT arr) FROM t GROUP BY k") == [{"a": "x", "n": 3}]
