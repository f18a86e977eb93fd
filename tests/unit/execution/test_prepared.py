"""Plans that are planned once and executed for many batches: what they rely on in Spark holds."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext, cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headwater.execution.prepared import PreparedPlan, Stopwatch, chunks, count
from headwater.execution.spark import job_session
from headwater.execution.worker import new_reports
from headwater.sql.expressions import Scope, compile_expression
from headwater.sql.parser import parse_expression
from headwater.testing.spark import spark_of_tests

Batches = Iterable[pa.RecordBatch]

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return job_session(spark_of_tests(), 2, "UTC")


def _number() -> int:
    context = TaskContext.get()
    assert context is not None
    return int(context.getLocalProperty("number") or 0)


def _rows(batches: Batches) -> Iterator[pa.RecordBatch]:
    """As many rows per task as the batch's number."""
    for batch in batches:
        for task in batch.column(0).to_pylist():
            yield pa.RecordBatch.from_pydict({"k": pa.array([task % 2] * _number(), pa.int64())})


def _counted(executed: Any) -> None:
    count(executed, Stopwatch())


def _run(plan: PreparedPlan, number: int, action: Callable[[Any], None] = _counted) -> dict[str, int]:
    return plan.run({"number": str(number)}, f"group-{number}", f"batch {number}", action)


def test_each_batch_sees_its_own_properties_behind_a_shuffle(spark: SparkSession) -> None:
    reports = new_reports(spark.sparkContext)

    def added(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = sum(batch.num_rows for batch in batches)
        context = TaskContext.get()
        assert context is not None
        reports.add({(str(_number()), str(context.partitionId())): rows})
        yield from ()

    frame = spark.range(0, 3, 1, 3).mapInArrow(_rows, "k BIGINT").repartition(2, "k").mapInArrow(added, "n BIGINT")
    plan = PreparedPlan.of(frame)
    for number in (1, 5, 0, 20):
        reports.value = {}
        _run(plan, number)
        found = {key: rows for key, rows in reports.value.items() if key[0] == str(number)}
        assert sum(found.values()) == 3 * number, f"of batch {number}: {reports.value}"


@pytest.mark.parametrize("call", ["CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "UUID()", "RAND()", "RAND_INTEGER(999999)"])
def test_what_changes_by_itself_is_new_in_every_batch(spark: SparkSession, call: str) -> None:
    """Spark's own current_timestamp(), uuid() and rand() are fixed when a plan is made."""
    sql = compile_expression(parse_expression(call), Scope(()), lambda _: None).sql
    plan = PreparedPlan.of(spark.range(0, 1, 1, 1).selectExpr("0", f"CAST(CAST({sql} AS STRING) AS BINARY)"))
    seen: list[bytes] = []
    for number in range(3):
        _run(plan, number, lambda executed: seen.extend(chunk for _, chunk in chunks(executed, Stopwatch())))
        time.sleep(0.002)
    assert len(set(seen)) == 3


@pytest.mark.parametrize("shared", [False, True])
def test_what_is_used_twice_is_of_the_same_batch_and_computed_once(spark: SparkSession, shared: bool) -> None:
    reports = new_reports(spark.sparkContext)

    def operator(batches: Batches) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        reports.add({(str(_number()), str(context.taskAttemptId())): 1})
        yield from batches

    rows = spark.range(0, 3, 1, 3).mapInArrow(_rows, "k BIGINT").repartition(2, "k").mapInArrow(operator, "k BIGINT")
    used = rows.repartition(2, "k")
    frame = used.selectExpr("k", "0 AS tag").union(used.selectExpr("k + 1", "1 AS tag")).repartition(2, "k")
    plan = PreparedPlan.of(frame, shared=shared)
    for number in (1, 5, 2):
        reports.value = {}
        counted: list[int] = []
        _run(plan, number, lambda executed, to=counted: to.append(count(executed, Stopwatch())[0]))
        assert counted == [2 * 3 * number]
        assert len(reports.value) == (2 if shared else 4)


def test_a_plan_runs_in_another_thread_than_it_was_made_in(spark: SparkSession) -> None:
    plan = PreparedPlan.of(spark.range(0, 3, 1, 3).mapInArrow(_rows, "k BIGINT").repartition(2, "k"))
    counted: list[int] = []

    def run() -> None:
        _run(plan, 7, lambda executed: counted.append(count(executed, Stopwatch())[0]))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert counted == [21]


def test_metrics_are_those_of_one_batch(spark: SparkSession) -> None:
    rows = spark.range(0, 2, 1, 2).mapInArrow(_rows, "k BIGINT").observe("odd", F.expr("count_if(k = 1)").alias("bad"))
    plan = PreparedPlan.of(rows, observed=True)
    assert [_run(plan, number) for number in (3, 0, 10)] == [{"odd": 3}, {"odd": 0}, {"odd": 10}]


def test_chunks_come_one_by_one(spark: SparkSession) -> None:
    rows = spark.range(0, 4, 1, 2).selectExpr("spark_partition_id()", "CAST(CAST(id AS STRING) AS BINARY)")
    seen: list[tuple[int, bytes]] = []
    _run(PreparedPlan.of(rows), 0, lambda executed: seen.extend(chunks(executed, Stopwatch())))
    assert seen == [(0, b"0"), (0, b"1"), (1, b"2"), (1, b"3")]


@pytest.mark.parametrize("action", [count, lambda executed, running: list(chunks(executed, running))])
def test_the_time_of_spark_is_that_of_its_job_alone(spark: SparkSession, action: Callable[..., object]) -> None:
    """Tasks have reported nothing when the stopwatch starts, and all of it when it stops."""
    reports = new_reports(spark.sparkContext)

    def reporting(batches: Batches) -> Iterator[pa.RecordBatch]:
        reports.add({(str(_number()), "ran"): 1})
        for batch in batches:
            numbers = pa.array([0] * batch.num_rows, pa.int32())
            yield pa.RecordBatch.from_pydict({"task": numbers, "chunk": [b"x"] * batch.num_rows})

    class Observed(Stopwatch):
        def __enter__(self) -> None:
            seen.append(len(reports.value))
            super().__enter__()

        def __exit__(self, *_: object) -> None:
            super().__exit__(*_)
            seen.append(len(reports.value))

    plan = PreparedPlan.of(spark.range(0, 2, 1, 1).mapInArrow(reporting, "task INT, chunk BINARY"))
    seen: list[int] = []
    running = Observed()
    _run(plan, 1, lambda executed: action(executed, running))
    assert seen[:2] == [0, 1]
    assert running.seconds > 0


def _failing(file: Path) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """One task fails while the other writes a line every few milliseconds."""

    def step(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.column(0).to_pylist() == [0]:
                while not file.exists():  # until the other one is at work
                    time.sleep(0.01)
                raise ValueError("it fails")
            for _ in range(1_000):
                with file.open("a") as lines:
                    lines.write("x")
                time.sleep(0.01)
        yield from ()

    return step


def test_after_a_failure_no_task_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "written"
    plan = PreparedPlan.of(spark.range(0, 2, 1, 2).mapInArrow(_failing(file), "n BIGINT"))
    with pytest.raises(Exception, match="it fails"):
        _run(plan, 1)
    size = file.stat().st_size
    time.sleep(0.5)
    assert file.stat().st_size == size > 0


@pytest.mark.long
def test_no_task_goes_on_either_if_spark_is_behind_with_its_events(tmp_path: Path) -> None:
    """What its status tracker knows of jobs and tasks comes by a queue. In a process of its own: Spark keeps the
    listener that holds it up."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("behind_with_events.py")), str(tmp_path / "written")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split() == ["stopped"], done.stderr[-2000:]
