"""One Spark for all tests of expressions, with the settings that their SQL relies on."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "spark: needs a local Spark session")


@pytest.fixture(scope="session")
def sql_spark() -> SparkSession:
    from headwater.execution.spark import start_spark
    from headwater.sql.typed import SPARK_SETTINGS

    # Every expression runs once: compiling the JVM's code well would take longer than running it.
    quick_start = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", **quick_start}
    spark = start_spark("local[1]", settings).newSession()
    for key, value in SPARK_SETTINGS.items():
        spark.conf.set(key, value)
    return spark
