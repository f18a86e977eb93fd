"""How Spark is started for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["MASTER", "QUICK_ARGUMENTS", "QUICK_JVM", "QUICK_SPARK", "spark_of_tests"]

MASTER = "local[2]"

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""Small batches and a short life: compiling hard and collecting garbage in parallel would cost more than they bring.
The classes that Spark generates for many queries need room, or the JVM forgets what it has compiled."""

QUICK_SPARK = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": QUICK_JVM}

QUICK_ARGUMENTS = tuple(word for key, value in QUICK_SPARK.items() for word in ("--conf", f"{key}={value}"))
"""The same for `headwater run` and `headwater sql`. Not by variables of the environment: with those Spark's own script
starts the JVM, which takes half as long again and is not what users get."""


def spark_of_tests() -> SparkSession:
    """The only Spark of this process. A process has one JVM, so whoever asks first decides for all: everybody must ask
    for the same, or a test that needs two tasks at once waits for good behind one that wanted a single core."""
    from headwater.execution.spark import start_spark

    return start_spark(MASTER, QUICK_SPARK)
