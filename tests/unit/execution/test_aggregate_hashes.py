"""Values that a group remembers lie beside it in the state: their hashes begin with that of the group."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from headwater.changelog.kinds import HASH
from headwater.execution.lowering.aggregate import _with_hashes
from headwater.testing.spark import spark_of_tests

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return spark_of_tests()


@pytest.mark.parametrize("given", ["rows", "partials"])
@pytest.mark.parametrize("group", ["v", "__v", "e", "x_value", "HASH"])
def test_a_group_may_have_any_name(spark: SparkSession, given: str, group: str) -> None:
    kind = "ARRAY<BIGINT>" if given == "partials" else "BIGINT"
    values = [[7, 8], [9]] if given == "partials" else [7, 9]
    rows = spark.createDataFrame(list(zip(["a", "b"], values, strict=True)), f"`{group}` STRING, x_value {kind}")
    if group == "x_value":
        rows = rows.toDF(group, "y_value")
    partials = SimpleNamespace(given=given, multisets={(): rows.columns[1].removesuffix("_value")}, ordered={})
    hashed = _with_hashes(rows, [f"`{group}`"], partials).collect()  # type: ignore[arg-type]
    for row in hashed:
        found = row[f"{rows.columns[1].removesuffix('_value')}_hash"]
        for one in found if given == "partials" else [found]:
            assert one >> 32 == row[HASH] >> 32
