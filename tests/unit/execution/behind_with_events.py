"""A batch fails while Spark's listeners are behind. Writes whether its other task was 'stopped' or 'goes on'.

python behind_with_events.py FILE        FILE is written by that task
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.java_gateway import ensure_callback_server_started

from headwater.execution.prepared import PreparedPlan, Stopwatch, count
from headwater.execution.spark import job_session
from headwater.testing.spark import spark_of_tests

FILE = Path(sys.argv[1])

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests


class SlowListener:
    """Holds up Spark's own listener to jobs and tasks for a while whenever a job has ended."""

    def onJobEnd(self, _: object) -> None:  # noqa: N802 - Spark's name
        time.sleep(3)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("on"):
            return lambda *_: None
        raise AttributeError(name)

    class Java:
        implements = ("org.apache.spark.scheduler.SparkListenerInterface",)


def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One task fails while the other writes every few milliseconds."""
    for batch in batches:
        if batch.column(0).to_pylist() == [0]:
            while not FILE.exists():  # until the other one is at work
                time.sleep(0.01)
            raise ValueError("it fails")
        for _ in range(1_000):
            with FILE.open("a") as lines:
                lines.write("x")
            time.sleep(0.01)
    yield from ()


def main() -> None:
    spark = job_session(spark_of_tests(), 2, "UTC")
    plan = PreparedPlan.of(spark.range(0, 2, 1, 2).mapInArrow(step, "n BIGINT"))
    ensure_callback_server_started(spark.sparkContext._gateway)
    spark.sparkContext._jsc.sc().listenerBus().addToQueue(SlowListener(), "appStatus")
    assert spark.range(1).count() == 1
    with pytest.raises(Exception, match="it fails"):
        plan.run({}, "group", "batch", lambda executed: count(executed, Stopwatch()))
    size = FILE.stat().st_size
    time.sleep(0.5)
    sys.stdout.write("stopped" if FILE.stat().st_size == size else "goes on")
    sys.stdout.flush()
    os._exit(0)  # Spark would wait for its listeners


if __name__ == "__main__":
    main()
