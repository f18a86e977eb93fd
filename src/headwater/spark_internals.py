"""The parts of PySpark that are not public, all in one place.

`SparkSession._jvm` and `DataFrame._jdf` lead from Python to Spark's own classes. They exist with the classic session
alone: under Spark Connect there is no JVM to talk to, and everything here would fail. Of Spark's classes
`execution.prepared` uses the methods that it lists, `execution.lowering.base` SparkPlan.outputPartitioning. A release
that renames any of this breaks the start of every job; `tests/unit/execution/test_prepared.py` and
`test_spark_internals.py` notice it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["activate", "ended_jvm", "executed_plan", "jvm", "preload"]


def jvm(spark: SparkSession) -> Any:
    """The JVM's packages and classes by attribute: `jvm(spark).java.util.HashMap`."""
    return spark._jvm


def preload(spark: SparkSession, classes: Iterable[str]) -> None:
    """Look these classes up once. Py4J asks the JVM at every step of a dotted name, and forgets the answers."""
    view = jvm(spark)
    for name in classes:
        setattr(view, name, getattr(view, name))


def executed_plan(frame: DataFrame) -> Any:
    """Spark's physical plan (SparkPlan), ready to be executed."""
    return frame._jdf.queryExecution().executedPlan()


def activate(spark: SparkSession) -> None:
    """Make it this thread's active session in the JVM. A plan belongs to the session that is active where it is made,
    clones included."""
    jvm(spark).org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)


@contextmanager
def ended_jvm(spark: SparkSession, seconds: float) -> Iterator[None]:
    """The body stops Spark; afterwards the JVM that PySpark started has ended, and its exit hooks have run."""
    gateway: Any = spark.sparkContext._gateway
    yield
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(seconds)
