"""The Spark session: started with the right jars and Python, or the user's own, and one session of settings per job."""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from headwater.errors import SetupError
from headwater.install.class_archive import archive_options
from headwater.install.home import headwater_home
from headwater.install.jars import spark_jars
from headwater.install.java import check_java
from headwater.options.closest import did_you_mean
from headwater.options.secrets import SECRET_KEYS, is_secret
from headwater.spark_internals import preload
from headwater.sql.typed import SPARK_SETTINGS

__all__ = ["check_master", "java_options", "job_session", "start_spark"]

_DEFAULTS = {
    "spark.app.name": "headwater",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.driver.memory": "2g",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.session.timeZone": "UTC",
}

_SHORT_PATH = "/tmp"  # the path of a socket has at most 104 characters; those of TMPDIR may be longer
_SUBMIT = "PYSPARK_SUBMIT_ARGS"
_JAVA = "spark.driver.extraJavaOptions"
_JAVA_OPTIONS = (
    "-Darrow.enable_unsafe_memory_access=true",
    "-Darrow.enable_null_check_for_get=false",
    # Spark compiles a class per query stage. In Java's default of 240 MB (48 MB with TieredStopAtLevel=1) a process
    # that runs for long gets "CodeCache is full. Compiler has been disabled" and is slow from then on. Only reserved.
    "-XX:ReservedCodeCacheSize=512m",
)

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


_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|yarn|(spark|k8s|mesos)://.+")


def check_master(master: str | None) -> None:
    """Raises before Spark does, which would show a trace of Java."""
    if master is None or _MASTER.fullmatch(master):
        return
    raise SetupError(
        f"'{master}' is not the address of a Spark master.",
        detail=did_you_mean(master, ("local", "yarn")),
        hint="It is local, local[4], local[*], spark://host:port, k8s://https://host:port or yarn.",
    )


def start_spark(master: str | None, conf: Mapping[str, str]) -> SparkSession:
    """A session of our own, quiet, with the Kafka and Avro jars, whose workers run this very Python."""
    check_master(master)
    check_java()
    _hush_query_errors()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # A laptop whose name resolves to an address it does not have (VPN) would fail to bind otherwise.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    warehouse = {"spark.sql.warehouse.dir": str(headwater_home() / "warehouse")}
    settings = {**_DEFAULTS, **_unix_sockets(master), **warehouse, **_logging(), **dict(conf)}
    # The JVM starts with the first session of a process; options set later are ignored without a word.
    settings[_JAVA] = java_options(settings.get(_JAVA, ""))
    own = ",".join(str(path) for path in spark_jars())
    settings["spark.jars"] = ",".join(filter(None, [settings.get("spark.jars", ""), own]))
    builder = SparkSession.builder.master(master or "local[*]")
    for key, value in settings.items():
        if not is_secret(key):
            builder = builder.config(key, value)
    with _secret_settings({key: value for key, value in settings.items() if is_secret(key)}):
        session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel(settings.get("spark.log.level", "OFF"))
    return session


def _hush_query_errors() -> None:
    """PySpark writes the trace of every failed query to standard error, as one line of JSON of many kilobytes. What
    failed is in the error that is raised."""
    if os.environ.get("HEADWATER_DEBUG") != "1":
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _unix_sockets(master: str | None) -> dict[str, str]:
    """Between the JVM and its Python workers. Over TCP, which Spark prefers, every hop of a small batch waits 40 ms:
    what is sent in two pieces meets Nagle's algorithm on one side and delayed acknowledgements on the other. Other
    machines of a cluster would not have the directory, which is private because such sockets ask for no password."""
    if os.name != "posix" or not (master or "local").startswith("local"):
        return {}
    directory = tempfile.mkdtemp(prefix="headwater-", dir=_SHORT_PATH)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": directory}


@contextmanager
def _secret_settings(settings: Mapping[str, str]) -> Iterator[None]:
    """PySpark puts settings on the command line of the JVM that it starts, where everyone on the machine can read them.
    Secret ones go through a file, which is there while Spark starts."""
    if not settings:
        yield
        return
    before = os.environ.get(_SUBMIT)
    with tempfile.TemporaryDirectory(prefix="headwater-") as directory:  # which only its owner may read
        path = Path(directory) / "spark.properties"
        path.write_text("".join(f"{key}={_escaped(value)}\n" for key, value in settings.items()), encoding="utf-8")
        os.environ[_SUBMIT] = f"--properties-file {path} --load-spark-defaults {before or 'pyspark-shell'}"
        try:
            yield
        finally:
            os.environ.pop(_SUBMIT)
            if before is not None:
                os.environ[_SUBMIT] = before


def _escaped(value: str) -> str:
    """As Java's properties write it."""
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    text = "".join(c if c.isascii() else "".join(f"\\u{unit:04x}" for unit in _units(c)) for c in text)
    return f"\\{text}" if text.startswith(" ") else text


def _units(character: str) -> list[int]:
    """The UTF-16 code units of a character."""
    encoded = character.encode("utf-16-be")
    return [int.from_bytes(encoded[i : i + 2], "big") for i in range(0, len(encoded), 2)]


def java_options(given: str) -> str:
    """Those that are given come last: of two that contradict each other Java takes the last one."""
    return " ".join([*_JAVA_OPTIONS, *archive_options(), given]).strip()


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
    # Loaded while the job starts, and not within its first batch.
    preload(session, _CLASSES)
    own: SparkSession = session
    return own
