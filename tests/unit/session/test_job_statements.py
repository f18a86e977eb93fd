"""SHOW JOBS and STOP JOB, of jobs in other processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from headwater.control.client import running_jobs
from headwater.errors import SqlError
from headwater.session import Session

ELSEWHERE = """
import sys, time
from typing import Any, cast
from headwater.control.monitor import Monitor
from headwater.control.server import JobServer
from headwater.session.definitions import Definitions
from headwater.execution.job import Job, JobSettings
from headwater.sql.parser import parse_script

script = "CREATE TABLE a (x INT) WITH ('connector' = 'blackhole'); INSERT INTO a VALUES (1);"
definitions = Definitions()
(planned,) = [job for statement in parse_script(script) for job in definitions.apply(statement)]
monitor = Monitor("a.sql")
server = JobServer(monitor)
job = Job("a", planned.plan, cast(Any, None), sys.argv[1], JobSettings())
monitor.add(job)
job.on_batch = monitor.saw
job.report(status="running", rows_in=3, rows_out=2, lag=1, batch=9)
print("up", flush=True)
job.stopping.wait(60)
job.report(status="stopped")
server.close()
"""


@pytest.fixture
def elsewhere(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[subprocess.Popen[str]]:
    monkeypatch.setenv("HEADWATER_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    location = str(tmp_path_factory.mktemp("state"))
    process = subprocess.Popen([sys.executable, "-c", ELSEWHERE, location], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    yield process
    process.kill()
    process.communicate()


def test_jobs_elsewhere_are_shown_and_stopped(elsewhere: subprocess.Popen[str]) -> None:
    session = Session()
    [shown] = session.sql("SHOW JOBS;")
    assert shown.header == ("job name", "status", "rows in", "rows out", "lag", "batch", "process")
    assert shown.rows == (("a", "running", "3", "2", "1", "9", str(elsewhere.pid)),)
    assert elsewhere.pid != os.getpid()
    with pytest.raises(SqlError, match="No job 'b' is running"):
        session.sql("STOP JOB 'b';")
    session.sql("STOP JOB 'a';")
    assert elsewhere.wait(20) == 0
    assert running_jobs() == []
