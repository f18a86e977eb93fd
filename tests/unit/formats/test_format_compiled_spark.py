"""The same answers from compiled plans, for the cases that say most about a format."""

from __future__ import annotations

import pytest
from golden_rows import check_decoded, check_encoded, golden_cases
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CASES = [
    ("json", "nested"),
    ("json", "nested ignore errors"),
    ("json", "decimals"),
    ("csv", "scalars"),
    ("csv", "null literal"),
    ("csv", "arrays"),
    ("avro", "nested"),
    ("raw", "BIGINT little-endian"),
    ("raw", "DOUBLE big-endian"),
]


@pytest.mark.parametrize(("format_name", "name"), CASES)
def test_compiled_plans_answer_alike(compiled_spark: SparkSession, format_name: str, name: str) -> None:
    [case] = [c for c in golden_cases(format_name) if c.name == name]
    if case.encode:
        check_encoded(compiled_spark, case)
    if case.decode:
        check_decoded(compiled_spark, case, {})
