"""What the tests of the Kafka connector share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka_lab import Lab

from headwater.broker import Broker
from headwater.execution.job import Job
from headwater.testing import CaseRunner

PATIENCE = 60.0


@pytest.fixture
def lab(case_runner: CaseRunner, broker: Broker, tmp_path: Path) -> Iterator[Lab]:
    made = Lab(case_runner, tmp_path)
    yield made
    made.close()


@pytest.fixture
def until() -> Callable[[Callable[[], object], Job | None], None]:
    """Waits for a condition as long as the job runs; a job that failed raises its error."""

    def wait(condition: Callable[[], object], job: Job | None = None) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if job is not None and job.error is not None:
                raise job.error
            assert time.monotonic() < deadline, "the time is up"
            time.sleep(0.05)

    return wait
