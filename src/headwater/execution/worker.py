"""What runs in Spark's Python workers: readers, stateful operators and writers, as functions for `mapInArrow`.

A plan is prepared once, so nothing of a single batch is part of it. What a task must know of its batch (its splits, the
state files to open, the batch's number, attempt and digest) comes by Spark's local properties, as `TaskBatch`. What a
task did (state files, rows written) goes back by an accumulator, as a report under the attempt's id: a failed or
repeated task can therefore never be mistaken for the one that counts.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from headwater.changelog.columns import flat, widen
from headwater.changelog.kinds import HASH
from headwater.changelog.operator import DropsLateRows, Operator, Time
from headwater.connectors.runtime import Reader, Renderer, Split, Writer
from headwater.connectors.workers import Batches, in_worker
from headwater.errors import JobError
from headwater.execution.late_rows import late_report
from headwater.execution.watermarks import time_of
from headwater.protocol.batch_ids import BatchId
from headwater.protocol.storage import task_storage
from headwater.state.files import open_state, save_state
from headwater.state.manifest import RunFile
from headwater.state.partitions import partition_of

__all__ = [
    "BATCH",
    "INPUT",
    "OUTPUT_ROWS",
    "OperatorTask",
    "ReadTask",
    "Reports",
    "ShowTask",
    "TaskBatch",
    "WriteTask",
    "bound_reader",
    "input_column",
    "new_reports",
    "stateless",
    "task_number",
]

BATCH = "headwater.batch"
"""The local property with the `TaskBatch`."""
INPUT = "__hw_input"
"""The number of the input that a row of several belongs to."""
OUTPUT_ROWS = 50_000


@dataclass(frozen=True)
class TaskBatch:
    """The current batch, as its tasks see it. `time` is its processing time in milliseconds; `state` has, per operator
    and state partition, the files of each table as the last commit names them. `watermarks` are those of the last
    commit, per source and partition; `times` has per source the watermark before this batch and in it."""

    number: int
    attempt: str
    digest: str
    splits: Sequence[Sequence[Sequence[Split]]]
    time: int = 0
    state: Mapping[str, Mapping[str, Mapping[str, list[Any]]]] = field(default_factory=dict)
    watermarks: Sequence[Mapping[str, int]] = ()
    times: Sequence[Sequence[int | None]] = ()

    def files(self, operator: str, partition: int) -> dict[str, list[RunFile]]:
        tables = self.state.get(operator, {}).get(str(partition), {})
        return {table: [RunFile.from_json(run) for run in runs] for table, runs in tables.items()}

    def watermarks_of(self, source: int, prefix: str) -> dict[str, int]:
        """Of the partitions of a source as of the last commit, under their values of PLACE, which `prefix` stands
        before."""
        known = self.watermarks[source] if self.watermarks else {}
        return {place.removeprefix(prefix): watermark for place, watermark in known.items()}

    def to_property(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @staticmethod
    def current() -> TaskBatch:
        context = TaskContext.get()
        # A local property of the Spark job is all that differs from batch to batch: the plan, which is made once,
        # cannot carry it.
        text = context.getLocalProperty(BATCH) if context is not None else None
        if text is None:
            raise JobError("A task runs outside of a batch: a bug in Headwater.")
        return _parsed(text)


@lru_cache(maxsize=4)
def _parsed(text: str) -> TaskBatch:
    """The stages of a task share a worker process at times, and always the text."""
    return TaskBatch(**json.loads(text))


Reports = dict[tuple[str, ...], Any]
"""(attempt, 'state', operator, partition) → files of each table; (attempt, 'state task', operator, partition, task that
reports them) → None; (attempt, 'written', task) → rows; (attempt, 'watermark', source, partition of the source) →
milliseconds; (attempt, 'late', operator, state partition) → how many rows, 'late rows' → some of them as text, 'late
origins' → the ORIGIN of those that have one; (attempt, 'operator', operator, state partition) → rows in, rows out,
seconds."""


class _Merge(AccumulatorParam[Reports]):
    """Of a task that Spark repeated the later report stays: each names files that are complete."""

    def zero(self, value: Reports) -> Reports:
        del value
        return {}

    def addInPlace(self, value1: Reports, value2: Reports) -> Reports:  # noqa: N802 - Spark's name
        # Reports have the attempt in their keys: those of a failed attempt are never looked at.
        value1.update(value2)
        return value1


def new_reports(context: Any) -> Accumulator[Reports]:
    """One for a job: Spark keeps an accumulator for good."""
    reports: Accumulator[Reports] = context.accumulator({}, _Merge())
    return reports


@dataclass(frozen=True)
class ReadTask:
    """Over rows that hold task numbers: the messages or rows of each task's splits."""

    source: int
    reader: Reader

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        splits = TaskBatch.current().splits[self.source]
        yield from _read(batches, self.reader, splits)


def bound_reader(reader: Reader, splits: Sequence[Sequence[Split]]) -> Callable[[Batches], Batches]:
    """The same outside of a job, for splits that are known when the frame is made."""
    return in_worker(lambda batches: _read(batches, reader, splits))


def _read(batches: Batches, reader: Reader, splits: Sequence[Sequence[Split]]) -> Iterator[pa.RecordBatch]:
    try:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                if splits[task]:
                    yield from reader(splits[task])
    finally:
        # Spark kills a worker that has not read all of its input, and starting another takes a second.
        # Spark does not use a worker again that leaves input behind.
        deque(batches, maxlen=0)


@dataclass(frozen=True)
class OperatorTask:
    """One stateful operator. Spark has shuffled rows by key, so a task holds whole state partitions (a function of the
    key alone: a key meets its own state in every batch and after every restart); one as a rule, all of them where a
    single task reads and Spark sees no need to shuffle. For each it opens exactly the files that the last commit names,
    runs one step, and writes new runs under the attempt's name.

    Its time is that of `sources`, `delay` microseconds before it. If that has moved, a timed operator also runs in
    state partitions that have received nothing. Such an operator is behind a shuffle into `tasks`: one for each state
    partition, or one for all."""

    name: str
    operator: Operator
    partitions: int
    location: str
    reports: Accumulator[Reports]
    sources: tuple[int, ...] = ()
    tasks: int = 0
    delay: int = 0

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        batch = TaskBatch.current()
        time = time_of(batch.times, self.sources, batch.time, self.delay, batch.number)
        # The whole input of the task: a step needs all changes of a key at once, or results would depend on how Spark
        # cuts Arrow batches.
        received = [rows for rows in batches if rows.num_rows]
        for partition, inputs in self._by_partition(received, batch, time):
            changes = self._step(batch, time, partition, inputs)
            yield from changes.cast(self.operator.output).to_batches(max_chunksize=OUTPUT_ROWS)

    def _inputs(self, rows: pa.Table) -> tuple[pa.Table, ...]:
        """The rows of each input. Those of several come together: HASH, the input's number, a struct per input."""
        count = len(self.operator.inputs)
        return (rows,) if count == 1 else tuple(_rows_of_input(rows, index) for index in range(count))

    def _by_partition(
        self, received: list[pa.RecordBatch], batch: TaskBatch, time: Time
    ) -> Iterator[tuple[int, tuple[pa.Table, ...]]]:
        """State partitions with the rows of each input, and without rows those for which only time has moved."""
        found: set[int] = set()
        if received:
            rows = pa.Table.from_batches(received)
            rows = rows.cast(_utc(widen(rows.schema))).combine_chunks()
            # Computed from the hash again, not from the task's number: they differ where Spark does not shuffle.
            partitions = partition_of(flat(rows, HASH).to_numpy(), self.partitions)
            found = set(np.unique(partitions).tolist())
            for partition in sorted(found):
                mine = partitions == partition
                yield partition, self._inputs(rows if mine.all() else rows.filter(pa.array(mine)).combine_chunks())
        if self.operator.timed and time.moved:
            nothing = tuple(widen(schema).empty_table() for schema in self.operator.inputs)
            owned = range(self.partitions) if self.tasks == 1 else [task_number()]
            for partition in owned:
                # Without state there is no timer that could fire.
                if partition not in found and batch.files(self.name, partition):
                    yield partition, nothing

    def _step(self, batch: TaskBatch, time: Time, partition: int, inputs: tuple[pa.Table, ...]) -> pa.Table:
        began = monotonic()
        storage = task_storage(self.location)
        state = open_state(storage, self.operator.tables, batch.files(self.name, partition))
        # Late rows are counted in the report and not by a metric of Spark: a repeated task would be counted twice
        # there.
        if isinstance(self.operator, DropsLateRows):
            changes, late = self.operator.step_with_late(state, inputs, time)
            for kind, report in late_report(late).items():
                self.reports.add({(batch.attempt, kind, self.name, str(partition)): report})
        else:
            changes = self.operator.step(state, inputs, time)
        # The task attempt too: Spark may run a task twice at once, and both copies write.
        prefix = f"state/{self.name}/{partition}/{batch.attempt}-{_task_attempt()}"
        saved = save_state(storage, state, prefix)
        done = (sum(rows.num_rows for rows in inputs), changes.num_rows, monotonic() - began)
        self.reports.add(
            {
                (batch.attempt, "state", self.name, str(partition)): saved,
                (batch.attempt, "state task", self.name, str(partition), str(task_number())): None,
                (batch.attempt, "operator", self.name, str(partition)): done,
            }
        )
        return changes


def input_column(index: int) -> str:
    """The struct with the columns of an input, where rows of several come together."""
    return f"{INPUT}{index}"


def _rows_of_input(rows: pa.Table, index: int) -> pa.Table:
    # Both inputs of a join come through one shuffle, so that their rows of a key meet in one task without a second
    # stage.
    mine = rows.filter(pc.equal(rows.column(INPUT), index)).combine_chunks()
    struct = flat(mine, input_column(index))
    fields = pa.schema([pa.field(HASH, pa.int64()), *struct.type])
    found = pa.table([mine.column(HASH), *struct.flatten()], schema=fields)
    return found.cast(_utc(widen(found.schema)))


@dataclass(frozen=True)
class WriteTask:
    """The end of a plan: the messages of one task go to the sink; nothing but a report comes out."""

    writer: Writer
    reports: Accumulator[Reports]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        batch = TaskBatch.current()
        task = task_number()
        try:
            # The digest tells a repeated batch from another one of the same number: an exactly-once sink must not take
            # one for the other.
            written = self.writer(task, BatchId(batch.number, batch.digest), batches)
        finally:
            deque(batches, maxlen=0)
        self.reports.add({(batch.attempt, "written", str(task)): written})
        yield from ()


@dataclass(frozen=True)
class ShowTask:
    """The end of a plan whose rows are shown by the driver: chunks of them, each with the number of the task."""

    renderer: Renderer

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        task = task_number()
        for chunk in self.renderer(task, batches):
            columns = {"task": pa.array([task], pa.int32()), "chunk": pa.array([chunk], pa.binary())}
            yield pa.RecordBatch.from_pydict(columns)


def stateless(step: Callable[[pa.Table], pa.Table], output: pa.Schema) -> Callable[[Batches], Batches]:
    """A function for `map_in_arrow` that sees its whole partition at once but keeps no state."""

    def run(batches: Batches) -> Batches:
        received = [batch for batch in batches if batch.num_rows]
        if received:
            rows = pa.Table.from_batches(received)
            changes = step(rows.cast(_utc(widen(rows.schema))).combine_chunks())
            yield from changes.cast(output).to_batches(max_chunksize=OUTPUT_ROWS)

    return run


def task_number() -> int:
    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def _task_attempt() -> int:
    context = TaskContext.get()
    return context.taskAttemptId() if context is not None else 0


def _utc(schema: pa.Schema) -> pa.Schema:
    """Instants in UTC, whatever the session's time zone: state must not depend on it."""
    return pa.schema(
        [f.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(f.type) and f.type.tz else f for f in schema]
    )
