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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.install.class_path import pyspark_directory, write_unsigned_jars
from headwater.install.jars import spark_jars
from headwater.install.java import check_java

__all__ = ["QUIET", "archive_options", "has_archive", "make_archive", "new_archive", "unsigned_jars"]

QUIET = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
_SECONDS = 300
_TRAINING_MODULE = "headwater.cli.train_archive"


def archive_options() -> list[str]:
    """What to tell the JVM; nothing as long as there is no archive."""
    return [f"-XX:SharedArchiveFile={_archive_file()}", *QUIET] if has_archive() else []


def has_archive() -> bool:
    return _archive_file().is_file()


def unsigned_jars() -> Path:
    """The directory of what `write_unsigned_jars` has copied; it need not exist."""
    return spark_jars()[0].parent / f"unsigned-{_installation()}"


def make_archive() -> None:
    """Write the archive by running a small job once, in a process of its own. If that fails, there is none."""
    write_unsigned_jars(unsigned_jars())
    with new_archive(_archive_file()) as fresh:
        command = [sys.executable, "-m", _TRAINING_MODULE, str(fresh)]
        subprocess.run(command, cwd=fresh.parent, capture_output=True, timeout=_SECONDS, check=False)


@contextmanager
def new_archive(archive: Path) -> Iterator[Path]:
    """Where the body writes it, in a directory of its own; published if it is there afterwards."""
    with tempfile.TemporaryDirectory(prefix="headwater-") as scratch:
        fresh = Path(scratch) / archive.name
        yield fresh
        if fresh.is_file():
            # Copy, then rename: a JVM that starts meanwhile sees no archive or a whole one.
            beside = archive.with_suffix(f".{os.getpid()}")
            shutil.copyfile(fresh, beside)
            beside.replace(archive)


def _archive_file() -> Path:
    # A JVM refuses an archive of another Java build or another class path, so each has one of its own.
    return spark_jars()[0].parent / f"spark-sql-{_installation()}-java-{check_java().version}.jsa"


def _installation() -> str:
    return hashlib.sha256(str(pyspark_directory()).encode()).hexdigest()[:10]
