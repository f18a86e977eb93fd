"""How Spark is started for tests."""

from __future__ import annotations

__all__ = ["QUICK_JVM", "QUICK_SPARK"]

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""Small batches and a short life: compiling hard and collecting garbage in parallel would cost more than they bring.
The classes that Spark generates for many queries need room, or the JVM forgets what it has compiled."""

QUICK_SPARK = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": QUICK_JVM}
