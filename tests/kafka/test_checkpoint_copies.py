"""An exactly-once job continued from a copy of its checkpoint, while the original has gone on or not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka_lab import Lab
from typer.testing import CliRunner

from headwater.cli import app
from headwater.errors import StaleCheckpointError
from headwater.execution.job import Job

Until = Callable[[Callable[[], object], Job | None], None]
ROWS = 20


def by_command(source: Path, target: Path) -> None:
    said = CliRunner().invoke(app, ["checkpoint", "copy", str(source), str(target)])
    assert said.exit_code == 0, said.output


class Copying:
    """`ROWS` rows a step; a run reads all there is and stops."""

    def __init__(self, lab: Lab, until: Until) -> None:
        self.lab, self._until = lab, until
        self.source, self.sink = lab.topic("in"), lab.topic("out")
        self.sent = 0
        self._script = (
            lab.ddl("source", "n INT", topic=self.source, scan__startup__mode="earliest-offset")
            + lab.ddl("copies", "n INT", topic=self.sink, sink__delivery_guarantee="exactly-once")
            + "INSERT INTO copies SELECT n FROM source;"
        )

    def produce(self) -> None:
        self.lab.produce(self.source, [{"n": n} for n in range(self.sent, self.sent + ROWS)])
        self.sent += ROWS

    def start(self, checkpoint: str) -> Job:
        session = self.lab.session(checkpoint)
        session.sql(self._script)
        [job] = session.jobs
        return job

    def run(self, checkpoint: str) -> None:
        job = self.start(checkpoint)
        self._until(lambda: sum(sum(p.values()) for p in job.progress().positions) == self.sent, job)
        job.stop()
        assert job.error is None

    def numbers(self) -> list[int]:
        return sorted(row["n"] for row in self.lab.values(self.sink))


@pytest.fixture
def copying(lab: Lab, until: Until) -> Copying:
    made = Copying(lab, until)
    made.produce()
    made.run("state")
    return made


@pytest.mark.parametrize(("copy", "batches"), [(by_command, 1), (shutil.copytree, 2)])
def test_a_copy_that_is_behind_is_refused(
    copying: Copying, until: Until, copy: Callable[[Path, Path], object], batches: int
) -> None:
    """What the copy would read as its next batch has the number of one that the sink has, and other rows."""
    directory = copying.lab.directory
    copy(directory / "state", directory / "copy")
    for _ in range(batches):
        copying.produce()
        copying.run("state")
    copying.produce()
    job = copying.start("copy")
    until(lambda: not job.running, None)
    assert isinstance(job.error, StaleCheckpointError)
    assert f"The checkpoint is an older copy: the sink has a batch {1 + batches} that it knows" in str(job.error)
    assert "The checkpoint ends with batch 1." in str(job.error)
    assert copying.numbers() == list(range(copying.sent - ROWS))
    copying.run("state")  # the original is not hurt by the attempt
    assert copying.numbers() == list(range(copying.sent))


def test_a_copy_that_is_not_behind_goes_on(copying: Copying) -> None:
    directory = copying.lab.directory
    by_command(directory / "state", directory / "copy")
    copying.produce()
    copying.run("copy")
    assert copying.numbers() == list(range(copying.sent))
