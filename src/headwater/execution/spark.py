"""The Spark session: started with the right jars and Python, or the user's own, and one session of settings per job."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pyspark.errors import PySparkRuntimeError
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from headwater.execution.jvm import Jvm, launch, prepare_environment
from headwater.execution.spark_settings import (
    ARROW_ROWS,
    check_master,
    java_options,
    spare_address,
    spark_settings,
    with_jars,
)
from headwater.execution.worker_daemon import start_spare
from headwater.options.secrets import SECRET_KEYS, is_secret
from headwater.spark_internals import has_jvm, preload, use_jvm
from headwater.sql.typed import SPARK_SETTINGS

__all__ = ["SHUFFLE_PARTITIONS", "check_master", "java_options", "job_session", "start_spark"]

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"

_JOB_SETTINGS = {
    **SPARK_SETTINGS,
    # State is found by hash partition: Spark must not merge or split partitions on its own.
    "spark.sql.adaptive.enabled": "false",
    # Spark's own limit in bytes is checked after every row, which takes a sixth of the time of a job.
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS),
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


_spares: list[subprocess.Popen[bytes]] = []  # kept: one that nobody needs ends with its standard input


def start_spark(master: str | None, conf: Mapping[str, str], jvm: Jvm | None = None) -> SparkSession:
    """A session of our own, quiet, with the Kafka and Avro jars, whose workers run this very Python. `jvm` is one that
    was launched for it; a process has one JVM, so where there is one already, that is used."""
    _hush_query_errors()
    if jvm is None and not has_jvm():
        jvm = launch(spark_settings(master, conf))
    settings = jvm.settings if jvm is not None else with_jars(spark_settings(master, conf))
    if jvm is not None:
        _connect(jvm)
    prepare_environment()
    builder = SparkSession.builder
    for key, value in settings.items():
        if not is_secret(key):
            builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel(settings.get("spark.log.level", "OFF"))
    return session


def _connect(jvm: Jvm) -> None:
    address = spare_address(jvm.settings)
    if address is not None:
        with suppress(OSError):  # Spark says what is wrong with this Python
            _spares.append(start_spare(address, os.environ["PYSPARK_PYTHON"]))
    connection = jvm.connection()
    if connection is None:
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
    use_jvm(connection.port, connection.secret, jvm.process)


def _hush_query_errors() -> None:
    """PySpark writes the trace of every failed query to standard error, as one line of JSON of many kilobytes. What
    failed is in the error that is raised."""
    if os.environ.get("HEADWATER_DEBUG") != "1":
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def job_session(spark: SparkSession, partitions: int, time_zone: str) -> SparkSession:
    """The same Spark with settings of its own, which other users of the session do not see."""
    session: Any = spark.newSession()
    for key, value in _JOB_SETTINGS.items():
        session.conf.set(key, value)
    session.conf.set(SHUFFLE_PARTITIONS, str(partitions))
    if time_zone:
        session.conf.set("spark.sql.session.timeZone", time_zone)
    # Loaded while the job starts, and not within its first batch.
    preload(session, _CLASSES)
    own: SparkSession = session
    return own
