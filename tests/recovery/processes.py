"""`headwater run` as a process of its own, which is killed as a whole or in part, and watched by its checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from checkpoint_view import CheckpointView

from headwater.testing.spark import QUICK_ARGUMENTS

STALLED_SECONDS = 180.0

Job = subprocess.Popen[bytes]


@contextmanager
def running(script: Path, state: Path | str, variables: dict[str, str], log: Path | None = None) -> Iterator[Job]:
    """The job in a process group of its own, which is killed at the end, with Spark's JVM. `state` may be a URI."""
    command = [sys.executable, "-c", "from headwater.cli import main; main()", "run", str(script)]
    command += ["--checkpoint", str(state), "--master", "local[2]", *QUICK_ARGUMENTS]
    for name, value in variables.items():
        command += ["--var", f"{name}={value}"]
    with (log or Path(os.devnull)).open("ab") as output:
        job = subprocess.Popen(command, start_new_session=True, stdout=output, stderr=output)
    try:
        yield job
    finally:
        kill_all(job)


def kill_all(job: Job) -> None:
    """Python, and Spark's JVM, at once."""
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
    job.wait()


def kill_driver(job: Job) -> None:
    """Python alone: Spark's JVM, and the tasks in it, find out by themselves."""
    job.kill()
    job.wait()


def kill_workers(job: Job) -> None:
    """Spark's Python workers: the job lives on."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            session = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[3])
            # As a module: Spark's JVM has the name among its settings.
            is_worker = b"-m\0headwater.execution.worker_daemon" in (entry / "cmdline").read_bytes()
            if session == job.pid and is_worker:
                os.kill(int(entry.name), signal.SIGKILL)
        except (OSError, IndexError):
            continue  # it has ended meanwhile


def await_progress(job: Job, checkpoint: CheckpointView, condition: Callable[[], bool]) -> None:
    """Fails if the job ends, or if it commits nothing for a long time."""
    seen, deadline = -1, 0.0
    while not condition():
        done = checkpoint.batch
        if done > seen:
            seen, deadline = done, time.monotonic() + STALLED_SECONDS
        assert job.poll() is None, f"the job ended with code {job.returncode}"
        assert time.monotonic() < deadline, f"the job has made no progress since batch {done}"
        time.sleep(0.02)
