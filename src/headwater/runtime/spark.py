"""The Spark session: started with the right jars and Python, or the user's own, and one session of settings per job."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from headwater.options.secrets import SECRET_KEYS
from headwater.plan.expression import SPARK_SETTINGS
from headwater.runtime.archive import archive_options
from headwater.runtime.home import headwater_home
from headwater.runtime.jars import spark_jars
from headwater.runtime.java import check_java

__all__ = ["job_session", "start_spark"]

_DEFAULTS = {
    "spark.app.name": "headwater",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.driver.memory": "2g",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.session.timeZone": "UTC",
}

_JAVA = "spark.driver.extraJavaOptions"
_JAVA_OPTIONS = ("-Darrow.enable_unsafe_memory_access=true", "-Darrow.enable_null_check_for_get=false")

_JOB_SETTINGS = {
    **SPARK_SETTINGS,
    # State is found by hash partition: Spark must not merge or split partitions on its own.
    "spark.sql.adaptive.enabled": "false",
    # Small enough that a batch of large messages fits into memory; Spark's own limit in bytes is checked after every
    # row, which takes a sixth of the time of a job.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    # Spark's web page shows the options of writers: without those that are secret.
    "spark.sql.redaction.options.regex": f"{SECRET_KEYS}|url",
    # Pushing a filter below the projection that decodes a message would decode every message twice.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates",
}


# What PySpark asks the JVM for with every step of a query; each time the JVM would search its jars.
_CLASSES = ("PythonSQLUtils", "PythonUtils", "SimplePythonFunction", "UserDefinedPythonFunction", "functions")


def start_spark(master: str | None, conf: Mapping[str, str]) -> SparkSession:
    """A session of our own, quiet, with the Kafka and Avro jars, whose workers run this very Python."""
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    warehouse = {"spark.sql.warehouse.dir": str(headwater_home() / "warehouse")}
    settings = {**_DEFAULTS, **warehouse, **_logging(), **dict(conf)}
    settings[_JAVA] = " ".join([*_JAVA_OPTIONS, *archive_options(), settings.get(_JAVA, "")]).strip()
    own = ",".join(str(path) for path in spark_jars())
    settings["spark.jars"] = ",".join(filter(None, [settings.get("spark.jars", ""), own]))
    builder = SparkSession.builder.master(master or "local[*]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel(settings.get("spark.log.level", "OFF"))
    return session


def _logging() -> dict[str, str]:
    return {"spark.log.level": os.environ.get("HEADWATER_SPARK_LOG", "OFF")}


def job_session(spark: SparkSession, partitions: int, time_zone: str) -> SparkSession:
    """The same Spark with settings of its own, which other users of the session do not see."""
    session: Any = spark.newSession()
    for key, value in _JOB_SETTINGS.items():
        session.conf.set(key, value)
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    if time_zone:
        session.conf.set("spark.sql.session.timeZone", time_zone)
    for name in _CLASSES:
        setattr(session._jvm, name, getattr(session._jvm, name))
    own: SparkSession = session
    return own
