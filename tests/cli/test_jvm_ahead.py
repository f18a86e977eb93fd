"""The JVM of Spark starts before a script is planned and checked. However a run ends, no process is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from run_lab import Start

from headwater.testing.spark import QUICK_ARGUMENTS

QUERY = "SELECT n FROM (VALUES (1), (2)) AS t(n);\n"
KAFKA = """\
CREATE TABLE t (n INT) WITH (
  'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = '127.0.0.1:1', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
SELECT * FROM t;
"""


def processes(session: int) -> list[str]:
    """The commands of the processes of a session: workers have a process group of their own."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            facts = (path / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(facts[3]) == session and facts[0] != "Z":
                found.append((path / "cmdline").read_text(encoding="utf-8").replace("\0", " "))
        except OSError:  # it has ended meanwhile
            continue
    return found


def until(happened: Callable[[], bool], seconds: float = 100) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def has_jvm(process: subprocess.Popen[str]) -> bool:
    return any("SparkSubmit" in command for command in processes(process.pid))


@pytest.mark.parametrize(
    ("script", "error"),
    [("SELECT * FROM nowhere;", "nowhere"), (KAFKA, "127.0.0.1:1"), (f"{QUERY}SELEC 1;", "SELEC")],
    ids=["plan", "broker", "syntax"],
)
def test_after_an_error_no_process_is_left(script: str, error: str, started: Start, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(script, encoding="utf-8")
    process = started("run", "q.sql")
    out, err = process.communicate(timeout=100)

    until(lambda: processes(process.pid) == [])
    assert process.returncode == 1
    assert error in err
    assert "Starting Spark" not in err
    assert out == ""


def test_the_jvm_starts_while_the_brokers_are_asked(started: Start, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(KAFKA, encoding="utf-8")
    process = started("run", "q.sql")

    until(lambda: has_jvm(process))
    assert process.poll() is None
    process.communicate(timeout=100)
    assert process.returncode == 1


def test_ctrl_c_while_a_script_is_checked_leaves_no_process(started: Start, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(KAFKA, encoding="utf-8")
    process = started("run", "q.sql")
    until(lambda: has_jvm(process))

    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=100)

    until(lambda: processes(process.pid) == [])


def test_a_second_ctrl_c_while_spark_starts_leaves_no_process(started: Start, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(QUERY, encoding="utf-8")
    process = started("run", "q.sql")
    assert process.stderr is not None
    until(lambda: "Starting Spark" in process.stderr.readline())  # type: ignore[union-attr]

    def interrupted() -> bool:
        os.killpg(process.pid, signal.SIGINT)  # again and again: two at once would be one
        return process.poll() is not None

    until(interrupted)
    process.communicate(timeout=100)

    assert process.returncode == 130
    until(lambda: processes(process.pid) == [])  # the JVM hears of it when it listens


def test_after_its_rows_a_query_ends_and_so_does_spark(started: Start, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(QUERY, encoding="utf-8")
    process = started("run", "q.sql", "--format", "csv", *QUICK_ARGUMENTS)
    out, err = process.communicate(timeout=200)

    assert (process.returncode, out.split()) == (0, ["n", "1", "2"]), err
    until(lambda: processes(process.pid) == [])
