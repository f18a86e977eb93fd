"""A class-data archive of Spark: the JVM maps its classes ready-made instead of parsing them, and the first result
comes in two thirds of the time.

It lies beside the jars and is optional. It belongs to one Java and one installation of PySpark; a JVM that cannot use
it starts as without it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyspark

from headwater.runtime.jars import spark_jars
from headwater.runtime.java import check_java

__all__ = ["archive_options", "has_archive", "make_archive", "publish"]

_QUIET = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
_SECONDS = 300
_TRAINING = """
CREATE TABLE rows_ (who STRING, n INT, at TIMESTAMP(3)) WITH (
  'connector' = 'datagen', 'number-of-rows' = '200', 'fields.who.length' = '1');
CREATE TABLE groups_ (who STRING, c BIGINT, d BIGINT, s BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO groups_ SELECT who, COUNT(*), COUNT(DISTINCT n), SUM(n) FROM rows_ GROUP BY who;
"""


def archive_options() -> list[str]:
    """What to tell the JVM; nothing as long as there is no archive."""
    return [f"-XX:SharedArchiveFile={_archive_file()}", *_QUIET] if has_archive() else []


def has_archive() -> bool:
    return _archive_file().is_file()


def make_archive() -> None:
    """Write the archive by running a small job once, in a process of its own. If that fails, there is none."""
    archive = _archive_file()
    with tempfile.TemporaryDirectory(prefix="headwater-") as scratch:
        fresh = Path(scratch) / archive.name
        command = [sys.executable, "-m", "headwater.runtime.archive", str(fresh)]
        subprocess.run(command, cwd=scratch, capture_output=True, timeout=_SECONDS, check=False)
        if fresh.is_file():
            publish(fresh, archive)


def publish(fresh: Path, archive: Path) -> None:
    """Copy, then rename: a JVM starting meanwhile sees no archive or a whole one."""
    beside = archive.with_suffix(f".{os.getpid()}")
    shutil.copyfile(fresh, beside)
    beside.replace(archive)


def _archive_file() -> Path:
    installation = hashlib.sha256(str(Path(pyspark.__file__).parent).encode()).hexdigest()[:10]
    return spark_jars()[0].parent / f"spark-{installation}-java-{check_java().version}.jsa"


def _train(archive: str) -> None:
    """The JVM writes the archive when it ends."""
    import headwater

    options = " ".join([f"-XX:ArchiveClassesAtExit={archive}", *_QUIET])
    session = headwater.connect(
        master="local[2]", conf={"spark.driver.extraJavaOptions": options, "spark.ui.enabled": "false"}
    )
    session.sql(_TRAINING)
    session.wait()
    spark = session.spark
    spark.sql("SELECT to_json(from_json(j, 'a INT')), from_csv(j, 'a STRING') FROM VALUES ('{}') AS t(j)").collect()
    gateway: Any = spark.sparkContext._gateway
    session.close()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_SECONDS)


if __name__ == "__main__":
    _train(sys.argv[1])
