"""The engines as a benchmark sees them: a process each, started here, asked over `engine_protocol`, always stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flink_home import flink_environment, flink_python

__all__ = ["Batch", "EngineProcess", "start_flink", "start_headwater"]

HERE = Path(__file__).parent
HEAP = "4g"


@dataclass(frozen=True)
class Batch:
    """One micro-batch: when it ended (as time.time()), its seconds, and those of Spark's own job in it."""

    ended: float
    seconds: float
    spark_seconds: float

    @property
    def driver_seconds(self) -> float:
        return self.seconds - self.spark_seconds


class EngineProcess:
    """One engine. What it logs is in `log`."""

    def __init__(self, name: str, command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **environment},
                text=True,
                start_new_session=True,
            )
        self._answer()

    def run(self, statements: Sequence[str]) -> float:
        """Run a bounded job; the seconds from its submission to its end."""
        return float(self._ask({"do": "run", "statements": list(statements), "settings": {}})["seconds"])

    def start(self, statements: Sequence[str], settings: Mapping[str, str]) -> None:
        self._ask({"do": "start", "statements": list(statements), "settings": dict(settings)})

    def stop(self) -> list[Batch]:
        """End the job that was started; its micro-batches, if the engine has any."""
        return [Batch(*batch) for batch in self._ask({"do": "stop"})["batches"]]

    def close(self) -> None:
        """End the process: by closing its input, else by force."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        for force in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(20)
                return
            except subprocess.TimeoutExpired:
                force()
        self._process.wait()

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended unexpectedly:\n{self.log.read_text(errors='replace')[-4000:]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.name} failed:\n{answer['error']}")
        return answer


def start_headwater(directory: Path) -> EngineProcess:
    checkpoints = directory / "headwater"
    checkpoints.mkdir()
    command = [sys.executable, str(HERE / "headwater_engine.py"), str(checkpoints)]
    return EngineProcess("headwater", command, directory, {})


def start_flink(directory: Path) -> EngineProcess:
    checkpoints = directory / "flink"
    checkpoints.mkdir()
    python = flink_python()
    environment = {
        "JVM_ARGS": f"-Xmx{HEAP} -Djava.net.preferIPv4Stack=true",
        **flink_environment(python, directory / "flink-lib"),
        "FLINK_LOG_DIR": str(directory),
    }
    command = [str(python), str(HERE / "flink_engine.py"), str(checkpoints)]
    return EngineProcess("flink", command, directory, environment)
