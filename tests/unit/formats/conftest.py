"""One Spark for all format tests; its time zone is far from UTC, because no format may depend on it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from registered import MakeRegistered, Registered

from headwater.sql.typed import SPARK_SETTINGS
from headwater.testing.registry import SchemaRegistry


@pytest.fixture(scope="session")
def format_spark() -> SparkSession:
    from headwater.testing.spark import spark_of_tests

    spark = spark_of_tests().newSession()
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    for key, value in SPARK_SETTINGS.items():
        spark.conf.set(key, value)
    return spark


@pytest.fixture(scope="session")
def compiled_spark(format_spark: SparkSession) -> SparkSession:
    """Spark computes over literal rows on its own, without compiling anything; here it must compile, as jobs do."""
    spark = format_spark.newSession()
    for key in ("spark.sql.session.timeZone", *SPARK_SETTINGS):
        spark.conf.set(key, format_spark.conf.get(key))
    spark.conf.set(
        "spark.sql.optimizer.excludedRules", "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
    )
    spark.conf.set("spark.sql.codegen.fallback", "false")
    return spark


@pytest.fixture
def registered_table(format_spark: SparkSession, schema_registry: SchemaRegistry) -> MakeRegistered:
    """A table whose schemas are in the registry."""

    def make(columns: str, format_name: str = "avro-confluent", **given: str) -> Registered:
        options = {key.replace("_", "-"): value for key, value in given.items()}
        return Registered(format_spark, schema_registry.url, columns, format_name, options)

    return make
