"""The parts of PySpark that are not public, all in one place.

`SparkSession._jvm` and `DataFrame._jdf` lead from Python to Spark's own classes. They exist with the classic session
alone: under Spark Connect there is no JVM to talk to, and everything here would fail. Of Spark's classes
`execution.prepared` uses the methods that it lists, `execution.lowering.base` SparkPlan.outputPartitioning, and
`planned_once` LogicalQueryStage, which adaptive execution made for itself; of its context `events_seen` uses
LiveListenerBus.waitUntilEmpty. A release that renames any of this breaks
the start of every job; `tests/unit/execution/test_prepared.py`, `test_spark_internals.py` and `test_jvm.py` notice it
first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from subprocess import Popen
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "CONNECTION_FILE",
    "activate",
    "ended_jvm",
    "events_seen",
    "executed_plan",
    "has_jvm",
    "is_classic",
    "jvm",
    "planned_once",
    "preload",
    "spark_home",
    "use_jvm",
]

CONNECTION_FILE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The variable with the file that a JVM for PySpark writes its port and password to."""

# Where PySpark looks for a JVM that has been started for it; spark-submit tells programs in Python so.
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"


def spark_home() -> str:
    """The directory of the Spark that PySpark would start: its own, or that of SPARK_HOME."""
    from pyspark.find_spark_home import _find_spark_home

    return str(_find_spark_home())  # type: ignore[no-untyped-call]


def has_jvm() -> bool:
    """Whether this process talks to a JVM, or was started by spark-submit to talk to one."""
    if _PORT in os.environ:
        return True
    if "pyspark" not in sys.modules:
        return False
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def is_classic(spark: object) -> bool:
    """Whether it is a session with a JVM. One of Spark Connect has this attribute, too, and raises when it is read."""
    return getattr(spark, "_jvm", None) is not None


def use_jvm(port: int, secret: str, process: Popen[bytes]) -> None:
    """PySpark takes this JVM instead of starting one."""
    from pyspark import SparkContext

    os.environ.update({_PORT: str(port), _SECRET: secret})
    try:
        SparkContext._ensure_initialized()
    finally:
        # Not for the processes that are started from here: it is a password.
        del os.environ[_PORT], os.environ[_SECRET]
    gateway: Any = SparkContext._gateway
    gateway.proc = process


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


def planned_once(frame: DataFrame) -> DataFrame:
    """The same rows, by a plan that is a leaf for whoever uses the frame. Otherwise Spark optimizes one copy per user,
    moves a filter or a choice of columns into one of them, and does not see any more that they are the same."""
    from pyspark.sql import DataFrame

    spark, execution = frame.sparkSession, frame._jdf.queryExecution()
    stage = jvm(spark).org.apache.spark.sql.execution.adaptive.LogicalQueryStage(
        execution.optimizedPlan(), execution.sparkPlan()
    )
    rows = jvm(spark).org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, stage)
    return DataFrame(rows, spark)


def events_seen(spark: SparkSession, seconds: float) -> bool:
    """Whether Spark's listeners, its status tracker among them, have come to all that has happened until now."""
    try:
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(int(seconds * 1000))
    except Py4JJavaError:  # its TimeoutException
        return False
    return True


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
    # PySpark's JVM ends when its standard input does.
    gateway.proc.stdin.close()
    gateway.proc.wait(seconds)
