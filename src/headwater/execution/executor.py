"""One attempt at one batch, as a Spark job: the port that `protocol.batches` drives.

The plan is prepared when the job starts, and again only when it really changes: a schema was learned from a registry,
or a batch that an earlier run left pending must go the route that run has chosen. A client of the JVM (see `ScanPlan`)
cannot learn by local properties what to read: where one is used, the plan is made for every batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headwater.connectors.runtime import Sink
from headwater.connectors.workers import map_in_arrow
from headwater.errors import JobError
from headwater.execution.compaction import Compactor
from headwater.execution.inputs import Inputs
from headwater.execution.late_rows import late_origins
from headwater.execution.lowering import Lowering
from headwater.execution.prepared import Metrics, PreparedPlan, Stopwatch, chunks, count, spark_jobs
from headwater.execution.route import Route
from headwater.execution.spark import SHUFFLE_PARTITIONS
from headwater.execution.watermarks import reported_watermarks
from headwater.execution.worker import BATCH, Reports, ShowTask, TaskBatch, WriteTask, new_reports
from headwater.plan.nodes import Write
from headwater.protocol.batches import BatchOutcome
from headwater.protocol.records import Commit, Intent, StateFiles

__all__ = ["BatchExecutor"]


@dataclass(frozen=True)
class _Ready:
    """A plan that can be executed, and the sources behind its metrics. `plan` is None where it is made per batch."""

    plan: PreparedPlan | None
    bad_metrics: Mapping[str, int]
    late_metrics: tuple[str, ...] = ()


@dataclass
class _Shown:
    """Of a sink that shows rows: of which batch, how many chunks of which tasks, and how many rows."""

    batch: int = 0
    chunks: Counter[int] = field(default_factory=Counter)
    rows: int = 0


class BatchExecutor:
    """Executes intents of one job."""

    def __init__(
        self, name: str, root: Write, spark: SparkSession, inputs: Inputs, sink: Sink, compactor: Compactor
    ) -> None:
        self._name = name
        self._root = root
        self._spark = spark
        self._inputs = inputs
        self._sink = sink
        self._reports = new_reports(spark.sparkContext)
        self.compactor = compactor
        self._ready: dict[tuple[Route, int], _Ready] = {}
        self.spark_seconds = 0.0
        self.reported: Reports = {}
        self.route = ""
        self._shown = _Shown()

    def execute(self, intent: Intent, committed: Commit, attempt: str) -> BatchOutcome:
        """1. Take the plan. 2. Run it; tasks report. 3. Look after bad and late rows. 4. Put the outcome together."""
        ready = self._prepared(Route.from_json(intent.route))  # 1
        batch = TaskBatch(
            intent.batch,
            attempt,
            intent.digest,
            intent.splits,
            intent.time,
            _state_json(committed.state),
            committed.watermarks,
            intent.watermarks,
        )
        # Spark keeps an accumulator for the life of the application: one for the job, emptied before each attempt.
        self._reports.value = {}
        running = Stopwatch()
        metrics, written = self._run(ready, batch, running)  # 2
        self.spark_seconds = running.seconds
        # Before the commit: letters of a batch that is repeated may be written twice, but never lost.
        bad = self._inputs.divert_bad_records(intent.splits, self._bad_counts(ready, metrics))  # 3
        # A task of an earlier attempt may report now; what it wrote belongs to no commit.
        reports = self.reported = {key: report for key, report in self._reports.value.items() if key[0] == attempt}
        self._inputs.divert_late_rows(late_origins(reports))
        if written is None:
            written = _summed(reports, attempt, "written")
        late = sum(metrics.get(name, 0) for name in ready.late_metrics) + _summed(reports, attempt, "late")
        counts = {"in": _rows(intent), "out": written, "bad": bad, "late": late}
        # Compactions enter here, with a batch, so that there is still one writer of commits only.
        state = self.compactor.apply(self._state(committed.state, attempt))
        watermarks = reported_watermarks(committed.watermarks, len(self._inputs.sources), reports, attempt)
        return BatchOutcome(state, self._sink.facts(), watermarks, counts)  # 4

    def learn(self, intent: Intent) -> None:
        """Ask registries for the schemas of a batch's messages; the plan is then made again."""
        self._inputs.learn(intent.splits)

    def prepare(self, route: Route) -> None:
        """Plan ahead, so that the first batch does not wait for it."""
        self._prepared(route)

    def _prepared(self, route: Route) -> _Ready:
        key = (route, self._inputs.revision)
        if key not in self._ready:
            lowering = self._lowering(route)
            frame = self._frame(lowering)
            plan = (
                None
                if lowering.needs_splits or self._sink.saves
                else PreparedPlan.of(frame, observed=lowering.observed, shared=lowering.shares)
            )
            self.compactor.specs = lowering.state_tables
            self.route = _described(route, lowering, plan)
            # One plan is kept: a route changes only with a restart or a rescale, a revision with a new schema, and
            # neither comes back.
            self._ready = {key: _Ready(plan, dict(lowering.bad_metrics), tuple(lowering.late_metrics))}
        return self._ready[key]

    def _lowering(self, route: Route, batch: TaskBatch | None = None) -> Lowering:
        # Spark's own shuffles, such as that of a hash aggregation, must put every state partition into one task: their
        # number is that of the checkpoint, whatever cores and settings there are now.
        self._spark.conf.set(SHUFFLE_PARTITIONS, str(route.partitions))
        # Only for readers in the JVM; workers find their splits in the properties of the batch.
        splits = [[list(task) for task in source] for source in batch.splits] if batch is not None else None
        return Lowering(
            self._spark,
            self._root,
            self._inputs,
            route.tasks,
            route.partitions,
            self.compactor.location,
            self._reports,
            splits,
        )

    def _frame(self, lowering: Lowering) -> DataFrame:
        """The whole plan: what is left after it is nothing, chunks to show, or rows to count."""
        messages = self._sink.encode(lowering.rows())
        writer, renderer = self._sink.writer(), self._sink.renderer()
        if writer is not None:
            return map_in_arrow(messages, WriteTask(writer, self._reports), "nothing BIGINT")
        if renderer is not None:
            return map_in_arrow(messages, ShowTask(renderer), "task INT, chunk BINARY")
        return messages

    def _run(self, ready: _Ready, batch: TaskBatch, running: Stopwatch) -> tuple[Metrics, int | None]:
        """Metrics, and the number of rows written where it is not reported by tasks."""
        properties = {BATCH: batch.to_property(), "spark.scheduler.pool": self._name}
        group, description = f"headwater-{batch.attempt}", f"{self._name}: batch {batch.number}"
        counted: list[int | None] = [None]

        def act(executed: Any) -> None:
            if self._sink.shows:
                counted[0] = self._show(batch.number, chunks(executed, running))
            else:
                rows, tasks = count(executed, running)
                if self._sink.writer() is None:
                    counted[0] = rows
                else:
                    self._check_reports(batch.attempt, tasks)

        if ready.plan is not None:
            return ready.plan.run(properties, group, description, act), counted[0]
        with spark_jobs(self._spark, properties, group, description):
            lowering = self._lowering(self._route_of(ready), batch)
            frame = self._frame(lowering)
            if self._sink.saves:
                with running:
                    return {}, self._sink.save(frame)
            plan = PreparedPlan.of(frame, observed=lowering.observed, shared=lowering.shares)
            return plan.run(properties, group, description, act), counted[0]

    def _check_reports(self, attempt: str, tasks: int) -> None:
        """A task that does not report what it did, of which Spark makes no error, would leave the state as it was."""
        reported = sum(of == attempt and kind == "written" for of, kind, *_ in self._reports.value)
        if reported != tasks:
            raise JobError(
                f"Of {tasks} tasks that wrote a batch, {reported} have reported to the driver.",
                hint="Nothing of this batch is committed. Start the job again: it continues from its checkpoint.",
            )

    def _show(self, batch: int, found: Iterable[tuple[int, bytes]]) -> int:
        """How many rows of the batch were shown. What an earlier attempt at it has shown is not shown again: a repeated
        task has the rows that it had."""
        if self._shown.batch != batch:
            self._shown = _Shown(batch)
        shown, seen = self._shown, Counter[int]()
        for task, chunk in found:
            seen[task] += 1
            if seen[task] > shown.chunks[task]:
                shown.rows += self._sink.show(chunk)
                shown.chunks[task] += 1
        return shown.rows

    def _route_of(self, ready: _Ready) -> Route:
        return next(route for (route, _), known in self._ready.items() if known is ready)

    def _bad_counts(self, ready: _Ready, metrics: Metrics) -> list[int]:
        counts = [0] * len(self._inputs.sources)
        for name, place in ready.bad_metrics.items():
            counts[place] += metrics.get(name, 0)
        return counts

    def _state(self, before: StateFiles, attempt: str) -> StateFiles:
        """The state after the batch: partitions that a task has reported, and all others as they were."""
        # A state partition that received nothing reports nothing, and keeps its files.
        self._check_one_task_per_partition(attempt)
        after = {operator: dict(partitions) for operator, partitions in before.items()}
        for (of, kind, *where), report in self._reports.value.items():
            if of == attempt and kind == "state":
                operator, partition = where
                tables = {table: tuple(runs) for table, runs in report.items()}
                after.setdefault(operator, {})[int(partition)] = tables
        return after

    def _check_one_task_per_partition(self, attempt: str) -> None:
        """Of two tasks that changed one state partition, each would have left out what the other did."""
        tasks: dict[tuple[str, ...], str] = {}
        for of, kind, *where in self._reports.value:
            if of == attempt and kind == "state task":
                operator, partition, task = where
                if tasks.setdefault((operator, partition), task) != task:
                    raise JobError(
                        f"State partition {partition} of '{operator}' was changed by two tasks: a bug in Headwater.",
                        hint="Nothing of this batch is committed. Please report it, with the query and the settings.",
                    )


def _summed(reports: Reports, attempt: str, wanted: str) -> int:
    return sum(rows for (of, kind, *_), rows in reports.items() if of == attempt and kind == wanted)


def _described(route: Route, lowering: Lowering, plan: PreparedPlan | None) -> str:
    """For whoever watches the job."""
    parts = [str(route)]
    parts += [f"pre-aggregates '{name}' while reading" for name in lowering.pre_aggregated]
    return ", ".join(parts) + ("" if plan is not None else "; a client of the JVM: planned for every batch")


def _rows(intent: Intent) -> int:
    pairs = zip(intent.start, intent.end, strict=True)
    return sum(end[key] - start.get(key, 0) for start, end in pairs for key in end)


def _state_json(state: StateFiles) -> dict[str, dict[str, dict[str, list[Any]]]]:
    return {
        operator: {
            str(partition): {table: [run.to_json() for run in runs] for table, runs in tables.items()}
            for partition, tables in partitions.items()
        }
        for operator, partitions in state.items()
    }
