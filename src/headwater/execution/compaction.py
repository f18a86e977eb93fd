"""Compactions of one job: large merges of state runs, as Spark jobs beside its batches.

A step of an operator merges small runs itself. What is too large for that is planned here after each commit, from the
sizes the commit names, and runs one at a time in a thread of its own: of the table with the most runs first, or a busy
one would keep the others waiting for good. The result goes into the commit of whichever batch ends next, in place of
the runs that were merged, if those still stand side by side; otherwise it is removed. One that fails changes nothing,
and is planned again.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from headwater.errors import HeadwaterError, JobError, StorageUnavailableError
from headwater.execution.failures import translate
from headwater.execution.prepared import spark_jobs
from headwater.protocol.records import StateFiles, state_name
from headwater.protocol.storage import Storage, task_storage
from headwater.sql.reserved_columns import RESERVED_PREFIX
from headwater.state.compaction import CompactionLimits, plan_compaction, swapped, too_many_runs
from headwater.state.files import compact
from headwater.state.manifest import RunFile
from headwater.state.table import TableSpec

__all__ = ["Compactor"]

POOL = {"spark.scheduler.pool": "headwater-compaction"}
_LONGEST_PAUSE = 63
_Table: TypeAlias = tuple[str, int, str]  # operator, state partition, name


@dataclass(frozen=True)
class _Compaction:
    """What is merged: neighbouring runs of one table in one state partition. A value for a worker."""

    location: str
    operator: str
    partition: int
    spec: TableSpec
    inputs: tuple[RunFile, ...]
    oldest: bool
    target: str

    @property
    def table(self) -> _Table:
        return self.operator, self.partition, self.spec.name

    def __call__(self, _: Any) -> RunFile:
        storage = task_storage(self.location)
        return compact(storage, self.spec, self.inputs, self.target, drop_tombstones=self.oldest)


class Compactor:
    """At most one compaction at a time. `specs` are the state tables of each operator; `warn` takes a sentence when one
    has failed."""

    def __init__(
        self,
        job: str,
        spark: SparkSession,
        storage: Storage,
        warn: Callable[[str], None],
        limits: CompactionLimits | None = None,
    ) -> None:
        self.specs: Mapping[str, Sequence[TableSpec]] = {}
        self._job = job
        self._spark = spark
        self._storage = storage
        self._warn = warn
        self._warned: set[type[HeadwaterError]] = set()
        self._limits = limits or CompactionLimits()
        self._thread: threading.Thread | None = None
        self._running: _Compaction | None = None
        self._result: RunFile | Exception | None = None
        self._commits = 0
        # Of each table: its failures one after the other, and at which commit it is tried again.
        self._failed: dict[_Table, tuple[int, int]] = {}

    @property
    def location(self) -> str:
        return self._storage.location

    def plan(self, state: StateFiles) -> None:
        """After a commit: begin a compaction, if one is due and none is under way."""
        self._commits += 1
        if self._running is None and (wanted := self._due(state)) is not None:
            self._running, self._result = wanted, None
            self._thread = threading.Thread(
                target=self._run, args=(wanted,), name=f"{self._job}-compaction", daemon=True
            )
            self._thread.start()

    def apply(self, state: StateFiles) -> StateFiles:
        """The state with the result of a compaction in it, if one has ended. With too many runs in any table, wait for
        that: it makes way for the next one."""
        running, thread = self._running, self._thread
        if running is None or thread is None:
            return state
        runs = state.get(running.operator, {}).get(running.partition, {}).get(running.spec.name, ())
        # Backpressure: lookups ask every run, so batches would slow down faster than compactions catch up.
        if any(too_many_runs(found, self._limits) for _, found in _tables(state)):
            thread.join()
        # Not waited for: a batch goes on with the runs as they are, and takes the merged one when it is there.
        if thread.is_alive():
            return state
        self._running = self._thread = None
        after = self._compacted(running, runs)
        if after is None:
            return state
        tables = {**state[running.operator][running.partition], running.spec.name: tuple(after)}
        return {**state, running.operator: {**state[running.operator], running.partition: tables}}

    def _compacted(self, done: _Compaction, runs: Sequence[RunFile]) -> list[RunFile] | None:
        """The runs with the result in place of its inputs; None if there is none, or its inputs are gone."""
        result = self._result
        if isinstance(result, RunFile):
            self._failed.pop(done.table, None)
            after = swapped(runs, done.inputs, result)
            if after is None:
                self._remove(done)  # batches have merged some of its inputs meanwhile
            return after
        self._remove(done)
        # Inputs that batches have merged meanwhile may be removed under a compaction: that is no failure.
        if result is not None and set(done.inputs) <= set(runs):
            failures, _ = self._failed.get(done.table, (0, 0))
            # What fails for good must not cost every batch a Spark job, nor keep other tables waiting.
            pause = min(2**failures - 1, _LONGEST_PAUSE)
            self._failed[done.table] = failures + 1, self._commits + 1 + pause
            self._warn_of(done, result)
        return None

    def _remove(self, done: _Compaction) -> None:
        """What it has written. Nobody names it, and it may be large: a worker that was killed leaves a part of it."""
        directory = done.target.rpartition("/")[0]
        # Not worth a failed batch: the next run finds what is left.
        with suppress(StorageUnavailableError):
            found = self._storage.names(f"{directory}/")
            self._storage.delete(*(name for name in found if name.startswith(done.target)))

    def _warn_of(self, failed: _Compaction, error: Exception) -> None:
        """Once per kind of failure: it is tried again and again."""
        problem = translate(error, self._job)
        if type(problem) not in self._warned:
            self._warned.add(type(problem))
            # What is not one of our errors has its reason in the detail; its fact is about a batch.
            reason = problem.detail.partition("\n")[0] if type(problem) is JobError else problem.fact
            self._warn(
                f"State table '{failed.spec.name.removeprefix(RESERVED_PREFIX)}' of operator '{failed.operator}' could "
                f"not be compacted, which is tried again after later batches: {reason or problem.fact}"
            )

    def wait(self) -> None:
        """For what is under way."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """A worker must not write into a checkpoint that is given up, and no commit takes what it has written."""
        self.wait()
        if self._running is not None:
            self._remove(self._running)

    def _due(self, state: StateFiles) -> _Compaction | None:
        specs = {(operator, spec.name): spec for operator, of in self.specs.items() for spec in of}
        ready = [
            (table, runs)
            for table, runs in _tables(state)
            if (table[0], table[2]) in specs and self._failed.get(table, (0, 0))[1] <= self._commits
        ]
        for (operator, partition, name), runs in sorted(ready, key=lambda entry: -len(entry[1])):
            part = plan_compaction(runs, self._limits)
            if part is not None:
                # Never the name of an earlier try: files are immutable, and caches on other hosts go by name.
                target = state_name(operator, partition, "compaction", f"{uuid.uuid4().hex}-{name}")
                inputs, oldest, spec = tuple(runs[part]), part.start == 0, specs[operator, name]
                return _Compaction(self._storage.location, operator, partition, spec, inputs, oldest, target)
        return None

    def _run(self, wanted: _Compaction) -> None:
        """A compaction that fails changes nothing; it is planned again after a later commit."""
        try:
            self._result = self._execute(wanted)
        except Exception as error:  # noqa: BLE001 - reported with the next batch, which still has all runs
            self._result = error

    def _execute(self, wanted: _Compaction) -> RunFile:
        description = f"{self._job}: compaction of {wanted.operator}/{wanted.partition}/{wanted.spec.name}"
        # A scheduler pool of its own, or it would wait behind, and hold up, the tasks of batches.
        with spark_jobs(self._spark, POOL, f"headwater-{wanted.target}", description):
            found: RunFile = self._spark.sparkContext.parallelize([0], 1).map(wanted).collect()[0]
            return found


def _tables(state: StateFiles) -> Iterator[tuple[_Table, Sequence[RunFile]]]:
    return (
        ((operator, partition, name), runs)
        for operator, partitions in state.items()
        for partition, tables in partitions.items()
        for name, runs in tables.items()
    )
