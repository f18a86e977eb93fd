"""Spark's Python workers come from a daemon that has loaded what they need."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from headwater.execution.worker_daemon import ADDRESS, PRELOADED, installed_first, start_spare
from headwater.testing.spark import spark_of_tests

HOME = Path(pyspark.__file__).parent
PACKED = [str(next(HOME.glob("python/lib/pyspark.zip"))), str(next(HOME.glob("jars/spark-core_*.jar")))]
SITE = str(HOME.parent)
LOADED = """
import sys, pyspark.daemon
from headwater.execution import worker_daemon
def report():
    import os
    print(*(open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")))
    print(*sys.modules)
pyspark.daemon.manager = report
worker_daemon.main()
"""


def test_the_installed_package_is_used_instead_of_its_archives() -> None:
    assert installed_first([*PACKED, "/here", SITE]) == ["/here", SITE]


def test_archives_of_another_installation_stay_where_they_are(tmp_path: Path) -> None:
    other = tmp_path / "pyspark.zip"
    zipfile.ZipFile(other, "w").close()

    assert installed_first([str(other), SITE]) == [str(other), SITE]


def test_archives_stay_where_no_package_is_installed() -> None:
    assert installed_first([*PACKED, "/here"]) == [*PACKED, "/here"]


def test_no_thread_is_left_to_be_forked_and_no_parser_is_loaded() -> None:
    """Of OpenBLAS, which PySpark itself loads, threads know how to survive a fork; they have the process's name."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    threads, modules = done.stdout.splitlines()

    assert "jemalloc_bg_thd" not in threads
    assert set(PRELOADED) <= set(modules.split())
    assert not {"sqlglot", "headwater.catalog", "headwater.sql.parser"} & set(modules.split())


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


class Daemon:
    """As Spark starts one: it says where it listens on its standard output, and ends with its standard input."""

    def __init__(self, directory: Path, **variables: str) -> None:
        environment = {
            "PYTHON_UNIX_DOMAIN_ENABLED": "true",
            "PYTHON_WORKER_FACTORY_SOCK_DIR": str(directory),
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            ADDRESS: str(directory / "spare"),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headwater.execution.worker_daemon", "pyspark.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # where PySpark's workers complain about connections that close
            env={**os.environ, **environment, **variables},
        )
        assert self.process.stdout is not None
        size = int.from_bytes(self.process.stdout.read(4), "big")
        self.address = self.process.stdout.read(size).decode()

    def parent_of_a_worker(self) -> int:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.address)
            return parent_of(int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big"))

    def stop(self) -> None:
        self.process.communicate(timeout=30)


@pytest.fixture
def sockets() -> Iterator[Path]:
    """The path of a socket may have some hundred characters; those of pytest's directories may have more."""
    with tempfile.TemporaryDirectory(prefix="headwater-") as directory:
        yield Path(directory)


@pytest.fixture
def spare(sockets: Path) -> Iterator[subprocess.Popen[bytes]]:
    address = sockets / "spare"
    process = start_spare(str(address), sys.executable)
    deadline = time.monotonic() + 60
    while not address.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield process
    process.communicate()


def test_a_spare_daemon_takes_the_place_of_the_one_that_spark_starts(
    spare: subprocess.Popen[bytes], sockets: Path
) -> None:
    daemon = Daemon(sockets)

    assert daemon.parent_of_a_worker() == spare.pid
    daemon.stop()
    spare.wait(30)


def test_one_is_enough_for_the_first_and_the_next_loads_its_modules_itself(
    spare: subprocess.Popen[bytes], sockets: Path
) -> None:
    first, second = Daemon(sockets), Daemon(sockets)

    assert (first.parent_of_a_worker(), second.parent_of_a_worker()) == (spare.pid, second.process.pid)
    first.stop()
    second.stop()


def test_a_daemon_that_must_start_otherwise_is_not_replaced(spare: subprocess.Popen[bytes], sockets: Path) -> None:
    daemon = Daemon(sockets, OMP_NUM_THREADS="4")

    assert daemon.parent_of_a_worker() == daemon.process.pid
    daemon.stop()
    spare.wait(30)


def test_a_spare_that_nobody_needs_ends_with_whoever_has_started_it(spare: subprocess.Popen[bytes]) -> None:
    assert spare.stdin is not None
    spare.stdin.close()

    assert spare.wait(60) == 0


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return spark_of_tests()


def test_workers_come_from_it(spark: SparkSession) -> None:
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            parent = Path(f"/proc/{os.getppid()}/cmdline").read_text(encoding="utf-8")
            yield pa.RecordBatch.from_pydict({"parent": [parent], "pyspark": [sys.modules["pyspark"].__file__]})

    [row] = spark.range(1, numPartitions=1).mapInArrow(look, "parent STRING, pyspark STRING").collect()

    # The first daemon of a Spark is a spare one; if it was idle for long meanwhile, Spark has started another.
    assert "headwater.execution.worker_daemon" in row.parent.split("\0")
    assert row.pyspark == pyspark.__file__
