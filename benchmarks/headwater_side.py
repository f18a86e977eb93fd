"""Headwater's process: one Spark that lives as long as this process, and for every job a session with a checkpoint.

python headwater_side.py DIRECTORY        DIRECTORY takes the checkpoints
"""

from __future__ import annotations

import shutil
import sys
import tempfile

from protocol import serve

import headwater

SPARK = {"spark.driver.memory": "4g", "spark.ui.enabled": "false"}


class Headwater:
    """Jobs on two cores, each with a checkpoint directory of its own that is removed at its end."""

    def __init__(self, checkpoints: str) -> None:
        self._checkpoints = checkpoints
        self._home = headwater.connect(master="local[2]", conf=SPARK)
        self._session: headwater.Session | None = None

    def run(self, statements: list[str], settings: dict[str, str]) -> None:
        self.start(statements, settings)
        try:
            self._current.wait()
        finally:
            self.stop()

    def start(self, statements: list[str], settings: dict[str, str]) -> None:
        checkpoint = tempfile.mkdtemp(dir=self._checkpoints)
        self._session = headwater.connect(self._home.spark, checkpoint=checkpoint)
        changes = [f"SET '{key}' = '{value}'" for key, value in settings.items()]
        self._session.sql(";\n".join([*changes, *statements]) + ";")

    def stop(self) -> None:
        self._current.close()
        shutil.rmtree(self._current.checkpoint)
        self._session = None

    def close(self) -> None:
        self._home.close()

    @property
    def _current(self) -> headwater.Session:
        if self._session is None:
            raise RuntimeError("No job was started.")
        return self._session


if __name__ == "__main__":
    serve(lambda: Headwater(sys.argv[1]))
