"""A plan that Spark plans once and executes for every batch.

`DataFrame` actions plan a query each time: for a small batch that is half of its time. Here the physical plan is made
when the job starts, and a batch executes a clone of it (a clone, because a plan that ran keeps its shuffle files and
its metrics). What differs from batch to batch reaches the tasks by local properties, which belong to the thread that
executes.

This is the one place that uses methods of Spark's internal classes: SparkPlan.clone, execute and executeToIterator,
CollectMetricsExec.collect, ReuseExchangeAndSubquery. `tests/unit/execution/test_prepared.py` notices
if a release of Spark changes them. How Python reaches them is in `spark_internals`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headwater.errors import JobError
from headwater.spark_internals import activate, events_seen, executed_plan, jvm

__all__ = ["Metrics", "PreparedPlan", "Stopwatch", "chunks", "count", "spark_jobs"]

Metrics = dict[str, int]
Action = Callable[[Any], None]

TASKS_END_SECONDS = 60.0
_REUSE = "spark.sql.exchange.reuse"
_POLL_SECONDS = 0.02


class Stopwatch:
    """Adds up the time of its `with` blocks: how long this thread has waited for Spark's own jobs."""

    # Spark's status store has the times of a job, too. They are there some milliseconds after its result, and asking
    # for them takes a millisecond or more of every batch.

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.monotonic() - self._began


@dataclass(frozen=True)
class PreparedPlan:
    """The physical plan of `frame`, which must not depend on a batch. `observed`: it has metrics to ask for. `shared`:
    parts of it occur several times and are to be computed once."""

    spark: SparkSession
    plan: Any
    observed: bool = False
    shared: bool = False

    @staticmethod
    def of(frame: DataFrame, *, observed: bool = False, shared: bool = False) -> PreparedPlan:
        """Without the reuse of exchanges: in a clone, a reused exchange would still be that of the plan that was
        cloned, and give the rows of an earlier batch. Where it is wanted, it is added to each clone."""
        spark = frame.sparkSession
        spark.conf.set(_REUSE, "false")
        try:
            return PreparedPlan(spark, executed_plan(frame), observed, shared)
        finally:
            spark.conf.set(_REUSE, "true")

    def run(self, properties: Mapping[str, str], group: str, description: str, action: Action) -> Metrics:
        """Execute the plan for the batch that `properties` tell its tasks about; answers the observed metrics.

        If it fails, no task of it runs any more when this raises: one that went on could write behind its successor."""
        with spark_jobs(self.spark, properties, group, description):
            executed = self._with_reuse(self.plan.clone()) if self.shared else self.plan.clone()
            action(executed)
        return self._metrics(executed) if self.observed else {}

    def _with_reuse(self, plan: Any) -> Any:
        rules = jvm(self.spark).org.apache.spark.sql.execution.reuse
        return getattr(getattr(rules, "ReuseExchangeAndSubquery$"), "MODULE$").apply(plan)

    def _metrics(self, executed: Any) -> Metrics:
        companion = getattr(getattr(jvm(self.spark).org.apache.spark.sql.execution, "CollectMetricsExec$"), "MODULE$")
        found = companion.collect(executed)
        entries = found.toSeq()
        return {e._1(): int(e._2().getLong(0)) for e in (entries.apply(i) for i in range(entries.size()))}


def count(executed: Any, running: Stopwatch) -> tuple[int, int]:
    """Compute every row and drop it; a plan that writes gives none. Answers how many rows there were, and tasks."""
    rows = executed.execute()
    with running:
        found = int(rows.count())
    return found, int(rows.getNumPartitions())


def chunks(executed: Any, running: Stopwatch) -> Iterator[tuple[int, bytes]]:
    """Both columns of each row, one task after the other. What comes of a task comes after it has succeeded."""
    # A task hands its result over as a whole: the JVM of the driver holds the rows of one task, compressed; Python one
    # chunk of them.
    rows = executed.executeToIterator()
    while True:
        # Each task is a job of its own, which runs when its first row is asked for.
        with running:
            found = rows.hasNext()
        if not found:
            return
        row = rows.next()
        yield int(row.getInt(0)), bytes(row.getBinary(1))


@contextmanager
def spark_jobs(spark: SparkSession, properties: Mapping[str, str], group: str, description: str) -> Iterator[None]:
    """Spark jobs of this thread carry these properties, and are shown under this description. After a failure, none of
    their tasks runs any more."""
    context = spark.sparkContext
    activate(spark)
    # Group and properties belong to the thread. Jobs of other threads in the same session have their own.
    context.setJobGroup(group, description)
    for name, value in properties.items():
        context.setLocalProperty(name, value)
    try:
        yield
    except BaseException:
        # In a thread of its own, which has its own connection to the JVM: if this thread was interrupted, an answer is
        # still on its way to it, and its next call would wait behind the job that is to be cancelled, for good.
        with ThreadPoolExecutor(1, "headwater-cancel") as cancelling:
            cancelling.submit(_await_end_of_tasks, spark, group).result()
        raise


def _await_end_of_tasks(spark: SparkSession, group: str) -> None:
    """Spark reports a failed job while other tasks of it are still being stopped.

    1. Stop the jobs. 2. Wait until Spark's status tracker has seen which tasks were started: it learns of them by a
    queue, and may be behind. 3. Wait for the end of the tasks."""
    deadline = time.monotonic() + TASKS_END_SECONDS
    spark.sparkContext.cancelJobGroup(group)  # 1
    if not events_seen(spark, TASKS_END_SECONDS):  # 2
        raise _not_ended()
    while _is_active(spark, group):  # 3
        if time.monotonic() > deadline:
            raise _not_ended()
        time.sleep(_POLL_SECONDS)


def _not_ended() -> JobError:
    return JobError(
        "Tasks of a failed batch do not end, so the batch cannot be repeated safely.",
        hint="Look for executors that are cut off, then start the job again: it continues from its checkpoint.",
    )


def _is_active(spark: SparkSession, group: str) -> bool:
    tracker = spark.sparkContext.statusTracker()
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        # Spark forgets old jobs; one that is forgotten has no tasks.
        if info is None:
            continue
        stages = [about for stage in info.stageIds if (about := tracker.getStageInfo(stage)) is not None]
        # Between two stages a job has no tasks, but will have some.
        if info.status == "RUNNING" or any(about.numActiveTasks for about in stages):
            return True
    return False
