"""Headwater's process: one Spark that lives as long as this process, and for every job a session with a checkpoint.

python headwater_engine.py DIRECTORY        DIRECTORY takes the checkpoints
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time

from engine_protocol import Batches, serve

import headwater
from headwater.execution.job import Progress

SPARK = {"spark.driver.memory": "4g", "spark.ui.enabled": "false"}


class Headwater:
    """Jobs on two cores, each with a checkpoint directory of its own that is removed at its end."""

    def __init__(self, checkpoints: str) -> None:
        self._checkpoints = checkpoints
        self._home = headwater.connect(master="local[2]", conf=SPARK)
        self._session: headwater.Session | None = None
        self._progress: list[tuple[float, Progress]] = []

    def run(self, statements: list[str], settings: dict[str, str]) -> None:
        self.start(statements, settings)
        try:
            self._current.wait()
        finally:
            self._close_session()

    def start(self, statements: list[str], settings: dict[str, str]) -> None:
        checkpoint = tempfile.mkdtemp(dir=self._checkpoints)
        self._session = headwater.connect(self._home.spark, checkpoint=checkpoint)
        self._progress = []
        self._session.on_batch = self._note
        changes = [f"SET '{key}' = '{value}'" for key, value in settings.items()]
        self._session.sql(";\n".join([*changes, *statements]) + ";")

    def stop(self) -> Batches:
        self._close_session()
        return [(ended, batch.batch_seconds, _spark_seconds(batch)) for ended, batch in self._progress]

    def close(self) -> None:
        self._home.close()

    def _close_session(self) -> None:
        self._current.close()
        shutil.rmtree(self._current.checkpoint)
        self._session = None

    def _note(self, progress: Progress) -> None:
        """Keep what is reported at the end of a batch; other reports are about the status or the lag."""
        if progress.batches > (self._progress[-1][1].batches if self._progress else 0):
            self._progress.append((time.time(), progress))

    @property
    def _current(self) -> headwater.Session:
        if self._session is None:
            raise RuntimeError("No job was started.")
        return self._session


def _spark_seconds(progress: Progress) -> float:
    seconds = getattr(progress, "spark_seconds", None)
    if seconds is None:
        raise RuntimeError("Progress has no 'spark_seconds': the driver's time per batch cannot be measured.")
    return float(seconds)


if __name__ == "__main__":
    serve(lambda: Headwater(sys.argv[1]))
