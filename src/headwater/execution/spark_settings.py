"""What Spark is started with: its settings, and where secret ones go. Loads nothing of PySpark."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Mapping

from headwater.errors import SetupError
from headwater.install.class_archive import archive_options
from headwater.install.home import headwater_home
from headwater.install.jars import spark_jars
from headwater.options.closest import did_you_mean

__all__ = [
    "ARROW_ROWS",
    "JAVA_OPTIONS",
    "check_master",
    "is_local",
    "java_options",
    "properties_text",
    "spare_address",
    "spark_settings",
    "with_jars",
]

_DEFAULTS = {
    "spark.app.name": "headwater",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.driver.memory": "2g",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.session.timeZone": "UTC",
}

ARROW_ROWS = 4096
"""So many rows Spark hands to a Python worker at a time: few enough that large ones fit into memory."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
"""The setting with the options of the JVM."""
# The path of a Unix socket has at most 104 characters; TMPDIR may be longer.
_SHORT_PATH = "/tmp"
_JAVA_OPTIONS = (
    "-Darrow.enable_unsafe_memory_access=true",
    "-Darrow.enable_null_check_for_get=false",
    # Spark compiles a class per query stage. In Java's default of 240 MB (48 MB with TieredStopAtLevel=1) a process
    # that runs for long gets "CodeCache is full. Compiler has been disabled" and is slow from then on. Only reserved.
    "-XX:ReservedCodeCacheSize=512m",
)
# What the JVM itself takes beside its heap, its compiler above all, it gives back to the C library, which keeps it: a
# JVM that runs for long grows in steps. So it asks the library once a minute to give unused memory back to the system,
# where the library can (glibc) and the JVM knows how (17.0.9, 21.0.1; others pass over the option).
_TRIM = "-XX:TrimNativeHeapInterval=60000"
_DAEMON = {"spark.python.daemon.module": "headwater.execution.worker_daemon"}
_SOCKETS = "spark.python.unix.domain.socket.dir"
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


def is_local(master: str | None) -> bool:
    """Whether the JVM that is started is all of Spark."""
    return re.match(r"local(\[|$)", master or "local") is not None


def spark_settings(master: str | None, conf: Mapping[str, str]) -> dict[str, str]:
    """Those of a session. Those that are given go before ours."""
    master = conf.get("spark.master", master)
    check_master(master)
    warehouse = {"spark.sql.warehouse.dir": str(headwater_home() / "warehouse")}
    logged = {"spark.log.level": os.environ.get("HEADWATER_SPARK_LOG", "OFF")}
    where = {"spark.master": master or "local[*]"}
    settings = {**_DEFAULTS, **where, **_for_workers(master), **warehouse, **logged, **conf}
    # The JVM starts with the first session of a process; options set later are ignored without a word.
    settings[JAVA_OPTIONS] = java_options(settings.get(JAVA_OPTIONS, ""))
    return settings


def with_jars(settings: Mapping[str, str]) -> dict[str, str]:
    """For a JVM whose class path is not ours."""
    own = ",".join(str(path) for path in spark_jars())
    return {**settings, "spark.jars": ",".join(filter(None, [settings.get("spark.jars", ""), own]))}


def java_options(given: str) -> str:
    """Those that are given come last: of two that contradict each other Java takes the last one."""
    trim = [_TRIM] if "CS_GNU_LIBC_VERSION" in os.confstr_names else []
    return " ".join([*_JAVA_OPTIONS, *trim, *archive_options(), given]).strip()


def _for_workers(master: str | None) -> dict[str, str]:
    # Executors on other machines may get this package by --py-files, which a daemon does not see yet.
    return {**_unix_sockets(master), **(_DAEMON if is_local(master) and os.name == "posix" else {})}


def _unix_sockets(master: str | None) -> dict[str, str]:
    """Between the JVM and its Python workers. Over TCP, which Spark prefers, every hop of a small batch waits 40 ms:
    what is sent in two pieces meets Nagle's algorithm on one side and delayed acknowledgements on the other. Other
    machines of a cluster would not have the directory, which is private because such sockets ask for no password."""
    if os.name != "posix" or not (master or "local").startswith("local"):
        return {}
    directory = tempfile.mkdtemp(prefix="headwater-", dir=_SHORT_PATH)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return {"spark.python.unix.domain.socket.enabled": "true", _SOCKETS: directory}


def spare_address(settings: Mapping[str, str]) -> str | None:
    """Where a spare daemon waits (see `worker_daemon`); None where Spark's daemon is another one."""
    ours = _DAEMON.items() <= settings.items() and _SOCKETS in settings
    return f"{settings[_SOCKETS]}/spare" if ours else None


def properties_text(settings: Mapping[str, str]) -> str:
    """As a file of Java's properties."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(value: str) -> str:
    """As Java's properties write it."""
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    text = "".join(c if c.isascii() else "".join(f"\\u{unit:04x}" for unit in _units(c)) for c in text)
    return f"\\{text}" if text.startswith(" ") else text


def _units(character: str) -> list[int]:
    """The UTF-16 code units of a character."""
    encoded = character.encode("utf-16-be")
    return [int.from_bytes(encoded[i : i + 2], "big") for i in range(0, len(encoded), 2)]
