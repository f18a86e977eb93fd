"""What Spark's own expressions compute for the state room and for exact sums, against numpy."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from aggregate_model import exact_sum
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headwater.changelog.exact_sums import LEAST, LIMIT, ExactSums
from headwater.changelog.exact_sums_sql import DoubleSum, partial_columns, partial_keys, partial_sums, salted
from headwater.state.partitions import hash_sql, partition_of

PARTITIONS = 5


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    from headwater.execution.spark import job_session
    from headwater.testing.spark import spark_of_tests

    return job_session(spark_of_tests(), PARTITIONS, "")


def values(random: Random) -> float:
    bounds = [LEAST, math.nextafter(LEAST, 0), LIMIT, -math.nextafter(LIMIT, 0), 0.0, -0.0]
    extreme = [5e-324, -1e308, 1.7e308, math.inf, -math.inf, math.nan]
    return random.choice(
        [random.uniform(-100, 100), random.gauss(0, 1e12), random.choice(bounds), random.choice(extreme)]
    )


def test_partial_sums_are_exact_and_stay_in_the_partition_of_their_group(spark: SparkSession) -> None:
    random = Random(1)
    rows = [
        (
            random.choice(["a", "b", "c", "", None, "much longer"]),
            random.randrange(3),
            values(random),
            random.choice([None, values(random)]),
            random.choice([1, 1, -1]),
        )
        for _ in range(2_000)
    ]
    frame = spark.createDataFrame(rows, "g STRING, h INT, x DOUBLE, y DOUBLE, w BIGINT").repartition(3)
    sums = [DoubleSum("s", "x", "w"), DoubleSum("t", "y * 2D")]
    groups = ["`g`", "`h`"]
    for projection in partial_sums(sums, groups, ["w"]):
        frame = frame.selectExpr(*projection)
    totals = [F.expr(f"sum({name})").alias(name) for name in ["w", *partial_columns(["s", "t"])]]
    partial = frame.groupBy(*groups, *partial_keys(["s", "t"])).agg(*totals)
    found = partial.selectExpr("*", f"{hash_sql(groups)} AS hash", "spark_partition_id() AS at").toArrow()
    assert partition_of(found.column("hash").to_numpy(), PARTITIONS).tolist() == found.column("at").to_pylist()
    keys = sorted({(g, h) for g, h, *_ in rows}, key=repr)
    numbers = np.array([keys.index((r["g"], r["h"])) for r in found.select(["g", "h"]).to_pylist()], dtype=np.int64)
    for name, column in (("s", 2), ("t", 3)):
        shown = ExactSums.of_rows(found, name, numbers, len(keys)).rounded().to_pylist()
        for key, total in zip(keys, shown, strict=True):
            weighted = [(row[column], row[4] if name == "s" else 1) for row in rows if row[:2] == key]
            given = [(v if name == "s" else v * 2, w) for v, w in weighted if v is not None]
            assert same(total, recounted(given))
    assert sum(found.column("w").to_pylist()) == sum(row[4] for row in rows)


def test_partial_sums_that_came_as_such_stay_in_the_partition_of_their_group(spark: SparkSession) -> None:
    """From tasks that pre-aggregate: a value beside sums of limbs."""
    rows = [(str(n % 40), None if n % 3 else n * 0.1, n) for n in range(400)]
    frame = spark.createDataFrame(rows, "g STRING, s DOUBLE, s_0 BIGINT")
    for projection in salted(["s"], ["`g`"], ["s", "s_0"]):
        frame = frame.selectExpr(*projection)
    partial = frame.groupBy("g", *partial_keys(["s"])).agg(F.expr("sum(s_0)").alias("s_0"))
    found = partial.selectExpr(f"{hash_sql(['`g`'])} AS hash", "spark_partition_id() AS at").toArrow()
    assert partition_of(found.column("hash").to_numpy(), PARTITIONS).tolist() == found.column("at").to_pylist()


def recounted(weighted: list[tuple[float, int]]) -> float:
    """Infinities and NaN that are retracted more often than they came count as none."""
    net: dict[str, int] = {}
    for value, weight in weighted:
        if not math.isfinite(value):
            net[repr(value)] = net.get(repr(value), 0) + weight
    special = [float(text) for text, count in net.items() if count > 0]
    return exact_sum(special or [value * weight for value, weight in weighted if math.isfinite(value)])


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def test_without_groups_all_partial_sums_meet(spark: SparkSession) -> None:
    rows = [(v,) for v in (1.0, 0.1, math.inf, 1e300, -1e300, 5e-324)]
    frame = spark.createDataFrame(rows, "x DOUBLE").repartition(3)
    for projection in partial_sums([DoubleSum("s", "x")], [], []):
        frame = frame.selectExpr(*projection)
    totals = [F.expr(f"sum({name})").alias(name) for name in partial_columns(["s"])]
    partial = frame.groupBy(*partial_keys(["s"])).agg(*totals).selectExpr("*", "spark_partition_id() AS at")
    found = partial.toArrow()
    assert len(set(found.column("at").to_pylist())) == 1
    total = ExactSums.of_rows(found, "s", np.zeros(found.num_rows, np.int64), 1)
    assert (
        total.stored()
        == ExactSums.of_rows(pa.table({"s": [v for (v,) in rows]}), "s", np.zeros(6, np.int64), 1).stored()
    )


def test_the_state_partition_is_where_spark_shuffles_to(spark: SparkSession) -> None:
    frame = spark.range(500).selectExpr("CAST(id AS STRING) AS g", "IF(id % 7 = 0, NULL, id * 3) AS h")
    groups = ["`g`", "`h`"]
    shuffled = frame.repartition(PARTITIONS, *groups)
    found = shuffled.selectExpr(
        f"{hash_sql(groups)} AS hash", f"{hash_sql(groups, '`h`')} AS of_value", "spark_partition_id() AS at"
    ).toArrow()
    for name in ("hash", "of_value"):
        assert partition_of(found.column(name).to_numpy(), PARTITIONS).tolist() == found.column("at").to_pylist()
