"""What Spark's Python workers say when they fail, as errors of ours: which of them may pass by themselves."""

from __future__ import annotations

import pytest

from headwater.errors import JobError, KafkaRefusedError, KafkaUnavailableError, WorkerLostError
from headwater.execution.failures import is_transient, translate

TRACE = "\n\tat org.apache.spark.api.python.PythonWorkerFactory.create(PythonWorkerFactory.scala:1)"


@pytest.mark.parametrize(
    ("text", "kind", "passing"),
    [
        ("SparkException: Python worker exited unexpectedly (crashed)", WorkerLostError, True),
        (
            f"java.io.IOException: Stream closed\n\tat java.lang.ProcessBuilder$NullOutputStream{TRACE}",
            WorkerLostError,
            True,
        ),
        (f"java.net.SocketException: Connection reset{TRACE}", WorkerLostError, True),
        (f"headwater.errors.KafkaUnavailableError: The broker is away.\n\n{TRACE}", KafkaUnavailableError, True),
        (f"headwater.errors.KafkaRefusedError: The broker refused it.\n\n{TRACE}", KafkaRefusedError, False),
        (f"headwater.errors.JobError: Another process writes.\n\n{TRACE}", JobError, False),
        ("java.io.IOException: No space left on device", JobError, False),
    ],
)
def test_failures_of_workers(text: str, kind: type[JobError], passing: bool) -> None:
    problem = translate(RuntimeError(text), "copy")
    assert type(problem) is kind
    assert is_transient(problem) is passing
