"""Where a call of a Python function is in Spark's plan: in the stage that is there anyway, with its neighbours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame

import headwater
from headwater.execution.prepared import PreparedPlan
from headwater.testing.spark import spark_of_tests

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests

TABLES = """
CREATE TABLE t (n BIGINT, m BIGINT) WITH (
  'connector' = 'datagen', 'scan.parallelism' = '2', 'number-of-rows' = '2', 'fields.m.max' = '9');
CREATE TABLE s (a BIGINT, b BIGINT) WITH ('connector' = 'blackhole');
SET 'table.dml-sync' = 'true';
"""


def half(value: int) -> int:
    return value // 2


@pytest.mark.parametrize(
    ("query", "evaluations", "like"),
    [
        ("SELECT half(n), m FROM t", 1, "SELECT n, m FROM t"),
        ("SELECT half(n), half(m) FROM t", 1, "SELECT n, m FROM t"),
        ("SELECT half(half(n)), m FROM t", 1, "SELECT n, m FROM t"),
        # what is between them is Spark's
        ("SELECT half(half(n) + 1), m FROM t", 2, "SELECT n, m FROM t"),
        ("SELECT half(m), SUM(half(m)) FROM t GROUP BY half(m)", 1, "SELECT m, SUM(m) FROM t GROUP BY m"),
        ("SELECT m, half(SUM(m)) FROM t GROUP BY m", 1, "SELECT m, SUM(m) FROM t GROUP BY m"),
    ],
)
def test_a_call_adds_no_stage(
    query: str, evaluations: int, like: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plans: list[str] = []
    prepared = PreparedPlan.of

    def of(frame: DataFrame, **how: bool) -> PreparedPlan:
        plan = prepared(frame, **how)
        plans.append(str(plan.plan.toString()))
        return plan

    monkeypatch.setattr(PreparedPlan, "of", staticmethod(of))
    with headwater.connect(spark_of_tests(), checkpoint=str(tmp_path)) as session:
        session.register("half", half)
        session.sql(TABLES)
        session.sql(f"SET 'pipeline.name' = 'with'; INSERT INTO s {query}")
        session.sql(f"SET 'pipeline.name' = 'without'; INSERT INTO s {like}")
    called, plain = plans
    assert called.count("ArrowEvalPython") == evaluations
    assert called.count("Exchange") == plain.count("Exchange")
