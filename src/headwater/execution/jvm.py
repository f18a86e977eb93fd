"""The JVM that Spark runs in, started before PySpark asks for it. Loads nothing of PySpark.

PySpark starts it by a script, which starts Python to find itself and a JVM to learn the command line of the one that
counts: 0.4 s. Here the command line is known, and the JVM starts while scripts are planned and brokers asked. Where
the environment may have a say in it (spark-env.sh, spark-defaults.conf, a cluster), the script is used.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from headwater.execution.spark_settings import JAVA_OPTIONS, is_local, properties_text, spare_address, with_jars
from headwater.execution.worker_daemon import ADDRESS
from headwater.install.class_archive import unsigned_jars
from headwater.install.class_path import other_jars, pyspark_directory, sql_class_path
from headwater.install.java import check_java
from headwater.options.secrets import is_secret
from headwater.spark_internals import CONNECTION_FILE, spark_home

__all__ = ["Connection", "Jvm", "launch", "prepare_environment"]

_SUBMIT = "PYSPARK_SUBMIT_ARGS"
_POLL_SECONDS = 0.005
# Ctrl-C is for this process, which decides what becomes of its JVM. By a shell, because code between fork and exec is
# unsafe in a process with threads.
_WITHOUT_INTERRUPTS = ("/bin/sh", "-c", 'trap "" INT; exec "$0" "$@"')
# What Spark's own launcher adds, but for the module of vectors, which only its machine learning uses: loading it takes
# a tenth of the JVM's start. `tests/unit/execution/test_jvm.py` compares them with the launcher's.
_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
_LAUNCHER_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)
# Settings and variables that the launcher looks at, and `_own_command` does not.
_LAUNCHER_SETTINGS = ("spark.driver.extraClassPath", "spark.driver.extraLibraryPath", "spark.driver.defaultJavaOptions")
_LAUNCHER_VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", _SUBMIT)
_OWN_VARIABLES = ("SPARK_LOCAL_IP", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")


@dataclass(frozen=True)
class Connection:
    """Where the gateway of a JVM listens, and the password that it asks for."""

    port: int
    secret: str


@dataclass
class Jvm:
    """One that starts. It ends with its standard input: with this process, however that ends. `errors` is the file that
    it writes its standard error to, None for that of this process."""

    process: subprocess.Popen[bytes]
    settings: Mapping[str, str]
    directory: Path
    errors: IO[bytes] | None = None
    asked: bool = False

    def connection(self) -> Connection | None:
        """When it listens; None if it has ended instead."""
        self.asked = True
        file = _connection_file(self.directory)
        try:
            while not file.is_file():
                if self.process.poll() is not None:
                    return None
                time.sleep(_POLL_SECONDS)
            said = file.read_bytes()  # a number, and a text with its length before it
            return Connection(int.from_bytes(said[:4], "big"), said[8:].decode())
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def abandon(self) -> None:
        """Kill it at once, if nobody has asked for its connection: it has nothing to clean up then.

        Where Spark's script starts it, a JVM that computes its command line may be left: it ends by itself, in less
        than a second, because nobody reads that command line any more.
        """
        if not self.asked:
            self.process.kill()
            self.process.communicate()
            shutil.rmtree(self.directory, ignore_errors=True)
            if self.errors is not None:
                self.errors.close()


def launch(settings: Mapping[str, str], errors: IO[bytes] | None = None, others: Sequence[Path] | None = None) -> Jvm:
    """Start it, and do not wait for it. `others` are jars on its class path beyond those that SQL needs: all that Spark
    has, if nothing is said."""
    prepare_environment()
    ours = _launcher_would_agree(settings)
    settings = settings if ours else with_jars(settings)
    directory = Path(tempfile.mkdtemp(prefix="headwater-"))  # which only its owner may read
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "0",  # as the script does
        "SPARK_CONNECT_MODE": "0",
        CONNECTION_FILE: str(_connection_file(directory)),
        ADDRESS: spare_address(settings) or "",
    }
    starter = _own_command(settings, other_jars() if others is None else others) if ours else _script()
    command = [*_WITHOUT_INTERRUPTS, *starter, *_arguments(settings, directory)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=errors, env=environment)
    return Jvm(process, settings, directory, errors)


def prepare_environment() -> None:
    """For Spark and its workers, which run this very Python."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # A laptop whose name resolves to an address it does not have (VPN) would fail to bind otherwise.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _connection_file(directory: Path) -> Path:
    return directory / "gateway"


def _arguments(settings: Mapping[str, str], directory: Path) -> list[str]:
    """Secret settings go through a file: everyone on the machine can read a command line."""
    secret = {key: value for key, value in settings.items() if is_secret(key)}
    arguments = [word for key, value in settings.items() if key not in secret for word in ("--conf", f"{key}={value}")]
    if secret:
        path = directory / "spark.properties"
        path.write_text(properties_text(secret), encoding="utf-8")
        arguments += ["--properties-file", str(path), "--load-spark-defaults"]
    return [*arguments, *shlex.split(os.environ.get(_SUBMIT, "pyspark-shell"))]


def _script() -> list[str]:
    check_java()
    return [str(Path(spark_home()) / "bin" / "spark-submit")]


def _launcher_would_agree(settings: Mapping[str, str]) -> bool:
    """Whether nothing is set that only Spark's launcher knows what to do with."""
    home = pyspark_directory()
    theirs = (name for name in os.environ if name.startswith("SPARK_") and name not in _OWN_VARIABLES)
    return (
        is_local(settings["spark.master"])
        and not any(theirs)
        and not any(name in os.environ for name in _LAUNCHER_VARIABLES)
        and not any(key in settings for key in _LAUNCHER_SETTINGS)
        and "-Xmx" not in settings[JAVA_OPTIONS]  # which the launcher refuses
        and not (home / "conf").exists()
        and (home / "jars").is_dir()
    )


def _own_command(settings: Mapping[str, str], others: Sequence[Path]) -> list[str]:
    return [
        str(check_java().command),
        "-cp",
        ":".join(map(str, [*sql_class_path(unsigned_jars()), *others])),
        f"-Xmx{settings['spark.driver.memory']}",
        *shlex.split(settings[JAVA_OPTIONS]),
        *_LAUNCHER_OPTIONS,
        "org.apache.spark.deploy.SparkSubmit",
    ]
