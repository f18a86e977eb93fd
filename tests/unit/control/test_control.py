"""Finding, asking and stopping jobs through their socket; who may, and what is left of processes that were killed."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.control.client import find_job, running_jobs, runs, stop_job
from headwater.control.monitor import Monitor
from headwater.control.registry import RUN_FILE, Registration, read_run_file, registrations
from headwater.control.server import JobServer, registered
from headwater.errors import JobError, SetupError
from headwater.execution.job import Job

MakeJob = Callable[..., Job]


@pytest.fixture
def monitor() -> Monitor:
    return Monitor("totals.sql")


@pytest.fixture
def server(monitor: Monitor) -> Iterator[JobServer]:
    running = JobServer(monitor)
    yield running
    running.close()


def started(monitor: Monitor, job: Job) -> Job:
    monitor.add(job)
    job.on_batch = monitor.saw
    job.report(status="running", batch=7, rows_in=3)
    return job


def test_a_job_is_found_by_its_name(monitor: Monitor, server: JobServer, make_job: MakeJob) -> None:
    started(monitor, make_job())
    found = find_job("totals")
    assert (found.job.status, found.job.batch, found.run.title) == ("running", 7, "totals.sql")
    assert found.run.process == os.getpid()
    with pytest.raises(JobError, match="No job 'total' is running") as caught:
        find_job("total")
    assert caught.value.hint == "Did you mean 'totals'?"
    with pytest.raises(JobError):
        find_job("totals", process=1)


def test_it_says_in_its_checkpoint_who_runs_it(monitor: Monitor, server: JobServer, make_job: MakeJob) -> None:
    job = make_job()
    monitor.add(job)
    job.on_batch = monitor.saw
    job.report(lag=1)
    assert read_run_file(job.location) is None, "it does not hold the checkpoint yet"
    job.report(status="running")
    written = read_run_file(job.location)
    assert written is not None
    assert (written.process, written.socket) == (os.getpid(), server.registration.socket)
    assert stat.S_IMODE((Path(job.location) / RUN_FILE).stat().st_mode) == 0o600
    assert find_job("totals", location=job.location).job.name == "totals"
    job.report(status="stopped")
    assert read_run_file(job.location) is None


def test_what_another_run_has_entered_stays(monitor: Monitor, server: JobServer, make_job: MakeJob) -> None:
    job = started(monitor, make_job())
    other = Registration(1, "elsewhere", "/nowhere", 5)
    other.enter(job.location)
    job.report(status="stopped")
    assert read_run_file(job.location) == other
    with pytest.raises(JobError):
        find_job("totals", location=job.location)


def test_a_stop_is_waited_for(monitor: Monitor, server: JobServer, make_job: MakeJob) -> None:
    started(monitor, make_job("busy"))
    assert stop_job(find_job("busy"), 0.3) is None, "it goes on with its batch"
    job = started(monitor, make_job())

    def end() -> None:
        job.stopping.wait(10)
        job.report(status="stopped", rows_in=5)

    threading.Thread(target=end).start()
    ended = stop_job(find_job("totals"), 10)
    assert ended is not None
    assert (ended.status, ended.rows_in) == ("stopped", 5)
    assert stop_job(find_job("totals"), 1) == ended


def test_a_process_that_ends_with_its_job_has_stopped_it(monitor: Monitor, make_job: MakeJob) -> None:
    server = JobServer(monitor)
    job = started(monitor, make_job())
    found = find_job("totals")

    def end() -> None:
        job.stopping.wait(10)
        server.close()

    ending = threading.Thread(target=end)
    ending.start()
    ended = stop_job(found, 10)
    assert ended is not None
    assert ended.status == "stopped"
    ending.join()  # its socket goes before its registration does
    assert registrations() == []


def test_only_the_owner_can_reach_it(monitor: Monitor, server: JobServer, runtime_directory: Path) -> None:
    for path in runtime_directory.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert len(list(runtime_directory.iterdir())) == 2


def test_a_directory_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch, monitor: Monitor) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1)
    with pytest.raises(SetupError, match="belongs to another user"):
        JobServer(monitor)


def test_a_long_path_gets_a_socket_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, monitor: Monitor, make_job: MakeJob
) -> None:
    monkeypatch.setenv("HEADWATER_RUNTIME_DIR", str(tmp_path / ("long" * 30)))
    server = JobServer(monitor)
    started(monitor, make_job())
    directory = Path(server.registration.socket).parent
    assert find_job("totals").job.batch == 7
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    server.close()
    assert not directory.exists()


def test_what_a_killed_process_left_is_removed(runtime_directory: Path) -> None:
    dead = (
        "import os, signal\n"
        "from headwater.control.monitor import Monitor\n"
        "from headwater.control.server import JobServer\n"
        "JobServer(Monitor())\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", dead], check=False)
    assert len(registrations()) == 1
    assert runs() == []
    assert list(runtime_directory.iterdir()) == []


def test_several_jobs_of_a_name_must_be_told_apart(monitor: Monitor, server: JobServer, make_job: MakeJob) -> None:
    started(monitor, make_job())
    other = Monitor("other.sql")
    second = JobServer(other)
    started(other, make_job())
    with pytest.raises(JobError, match="2 processes run a job 'totals'"):
        find_job("totals")
    assert len(running_jobs()) == 2
    second.close()


@pytest.mark.parametrize("line", [b"nonsense\n", b'{"ask": "what"}\n', b"[]\n", b"\n"])
def test_what_is_not_understood_does_no_harm(server: JobServer, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(server.registration.socket)
        connection.sendall(line)
        answer = connection.makefile("rb").readline()
    assert answer == b"" or "error" in json.loads(answer)
    assert len(runs()) == 1


def test_a_process_is_registered_while_it_works(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    with registered("a shell") as monitor:
        started(monitor, make_job())
        assert find_job("totals").run.title == "a shell"
    assert running_jobs() == []
    monkeypatch.setenv("HEADWATER_RUNTIME_DIR", "/dev/null/nowhere")
    with registered("a shell") as monitor:
        started(monitor, make_job())
