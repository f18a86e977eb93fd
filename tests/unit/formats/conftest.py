"""One Spark for all format tests; its time zone is far from UTC, because no format may depend on it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "spark: needs a local Spark session")


@pytest.fixture(scope="session")
def format_spark() -> SparkSession:
    from headwater.runtime.spark import start_spark

    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
    spark = start_spark("local[1]", settings).newSession()
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    spark.conf.set("spark.sql.caseSensitive", "true")
    return spark
