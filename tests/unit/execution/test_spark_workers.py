"""How the JVM and its Python workers talk, and what a worker does before and after tasks."""

from __future__ import annotations

import gc
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.connectors import workers
from headwater.execution.spark_settings import _unix_sockets, spark_settings

END = """
import io, sys
import pyspark.worker as worker
from headwater.connectors.workers import in_worker

class Closed(io.RawIOBase):
    def write(self, data):
        raise BrokenPipeError

if {prepared}:
    list(in_worker(lambda batches: batches)([]))
try:
    worker.main(io.BytesIO({received}), Closed())
except SystemExit:
    sys.exit("as PySpark ends")
"""


@pytest.mark.parametrize("master", [None, "local", "local[2]", "local[*]", "local-cluster[2,1,1024]"])
def test_sockets_are_in_a_directory_for_their_owner_alone(master: str | None) -> None:
    directory = Path(_unix_sockets(master)["spark.python.unix.domain.socket.dir"])

    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert len(str(directory / ".01234567-0123-0123-0123-0123456789ab.sock")) < 104


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host:443"])
def test_other_machines_do_not_have_the_directory(master: str) -> None:
    assert _unix_sockets(master) == {}


@pytest.mark.parametrize(("master", "conf"), [("spark://host:7077", {}), (None, {"spark.master": "yarn"})])
def test_other_machines_may_not_have_our_daemon(master: str | None, conf: dict[str, str]) -> None:
    daemon = "spark.python.daemon.module"

    assert daemon not in spark_settings(master, conf)
    assert spark_settings("local[2]", {})[daemon] == "headwater.execution.worker_daemon"
    assert spark_settings("local[2]", {daemon: "pyspark.daemon"})[daemon] == "pyspark.daemon"


def ended(prepared: bool, received: bytes) -> tuple[int, str]:
    script = END.format(prepared=prepared, received=received)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip()


def test_a_worker_whose_socket_is_closed_between_two_tasks_ends_without_a_word() -> None:
    assert ended(prepared=True, received=b"") == (0, "")
    assert ended(prepared=False, received=b"")[0] == 1  # what PySpark does: if it changes, this is not needed any more


def test_a_worker_whose_socket_is_closed_within_a_task_reports_it() -> None:
    version = "{}.{}".format(*sys.version_info).encode()
    begin_of_a_task = bytes(4) + len(version).to_bytes(4, "big") + version + bytes(1)  # partition, Python, no barrier

    assert ended(prepared=True, received=begin_of_a_task)[0] == 1


def test_modules_are_no_garbage_but_what_a_task_leaves_is() -> None:
    class Cycle:
        alive = 0

        def __init__(self) -> None:
            self.me = self
            Cycle.alive += 1

        def __del__(self) -> None:
            Cycle.alive -= 1

    try:
        workers._keep_modules()
        frozen = gc.get_freeze_count()
        Cycle()
        workers._keep_modules()  # no module was imported since

        assert gc.get_freeze_count() <= frozen
        gc.collect()
        assert Cycle.alive == 0
    finally:
        gc.unfreeze()


FREED = """
import sys
from headwater.connectors import workers

def resident():
    (line,) = (line for line in open("/proc/self/status") if line.startswith("RssAnon:"))
    return int(line.split()[1])

held = [bytes(900) for _ in range(100_000)]
last = held[-1]  # above what is freed: the C library gives back nothing by itself
del held
before = resident()
workers._TRIM_SECONDS = {seconds}
workers.prepare_worker()
print(before - resident())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_memory_that_was_freed_is_given_back_now_and_then() -> None:
    def given_back(seconds: int) -> int:
        script = FREED.format(seconds=seconds)
        return int(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)

    assert given_back(0) > 50_000
    assert given_back(60) < 10_000
