"""One Spark for all tests of expressions, with the settings that their SQL relies on."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def sql_spark() -> SparkSession:
    from headwater.sql.typed import SPARK_SETTINGS
    from headwater.testing.spark import spark_of_tests

    spark = spark_of_tests().newSession()
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    for key, value in SPARK_SETTINGS.items():
        spark.conf.set(key, value)
    return spark
