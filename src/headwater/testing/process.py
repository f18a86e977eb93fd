"""An engine whose jobs live in a process of their own: `kill` is SIGKILL, and only the checkpoint survives it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import IO, Any

from headwater.errors import HeadwaterError, JobError
from headwater.testing.engine import EngineJob, StatementFailed
from headwater.testing.faults import Fault
from headwater.testing.spark import QUICK_SPARK

__all__ = ["WorkerEngine"]

_CONF = {**QUICK_SPARK, "spark.driver.memory": "1g"}
_STOP_SECONDS = 60


class WorkerEngine:
    """The process is started with the first request. `worker` is the other end."""

    def __init__(self, checkpoint: str, variables: Mapping[str, str], settings: Mapping[str, str]) -> None:
        self._start = {
            "checkpoint": checkpoint,
            "variables": dict(variables),
            "settings": dict(settings),
            "conf": _CONF,
        }
        self._process: subprocess.Popen[str] | None = None

    def run(self, script: str, name: str) -> None:
        self._ask("run", script=script, name=name)

    def jobs(self) -> list[EngineJob]:
        return [EngineJob(**job) for job in self._ask("jobs")]

    def pause(self) -> None:
        self._ask("pause")

    def resume(self) -> None:
        self._ask("resume")

    def wake(self) -> None:
        self._ask("wake")

    def crash_next(self, fault: Fault) -> None:
        self._ask("crash", fault=fault.value)

    def table(self, name: str) -> list[tuple[str, ...]]:
        return [tuple(row) for row in self._ask("table", table=name)]

    def stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._ask("stop")
        self._pipe(self._process.stdin).close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._close()

    def kill(self) -> None:
        """SIGKILL to Python and Spark's JVM."""
        if self._process is None:
            return
        # The whole group: Spark's JVM would otherwise finish the batch that was to be interrupted.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._close()

    def _ask(self, what: str, **facts: Any) -> Any:
        process = self._running()
        try:
            self._send(process, {"do": what, **facts})
            line = self._pipe(process.stdout).readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise JobError(f"The process of the jobs has ended (exit code {process.wait()}).")
        answer = json.loads(line)
        if "refused" in answer:
            raise StatementFailed(answer["refused"], HeadwaterError(answer["error"]))
        if "error" in answer:
            raise JobError(answer["error"])
        return answer["value"]

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            command = [sys.executable, "-m", "headwater.testing.worker"]
            # A session of its own: the JVM is in its process group, and is killed with it.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
            self._send(self._process, self._start)
        return self._process

    def _send(self, process: subprocess.Popen[str], content: Mapping[str, Any]) -> None:
        pipe = self._pipe(process.stdin)
        pipe.write(json.dumps(content) + "\n")
        pipe.flush()

    def _close(self) -> None:
        assert self._process is not None, "only a started process is closed"
        self._pipe(self._process.stdout).close()
        with contextlib.suppress(BrokenPipeError):
            self._pipe(self._process.stdin).close()

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None, "the process is started with pipes"
        return pipe
