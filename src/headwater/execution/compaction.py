"""Compactions of one job: large merges of state runs, as Spark jobs beside its batches.

A step of an operator merges small runs itself. What is too large for that is planned here after each commit, from the
sizes the commit names, and runs one at a time in a thread of its own. The result goes into the commit of whichever
batch ends next, in place of the runs that were merged, if those still stand side by side; otherwise it is removed. One
that fails changes nothing, and is planned again.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from headwater.errors import HeadwaterError, JobError
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
        self._failures = 0  # one after the other
        self._pause = 0  # so many commits pass before the next try

    @property
    def location(self) -> str:
        return self._storage.location

    def plan(self, state: StateFiles) -> None:
        """After a commit: begin a compaction, if one is due and none is under way."""
        if self._pause > 0:
            self._pause -= 1
        elif self._running is None and (wanted := self._due(state)) is not None:
            self._running, self._result = wanted, None
            self._thread = threading.Thread(
                target=self._run, args=(wanted,), name=f"{self._job}-compaction", daemon=True
            )
            self._thread.start()

    def apply(self, state: StateFiles) -> StateFiles:
        """The state with the result of a compaction in it, if one has ended. With too many runs, wait for that."""
        running, thread = self._running, self._thread
        if running is None or thread is None:
            return state
        runs = state.get(running.operator, {}).get(running.partition, {}).get(running.spec.name, ())
        # Backpressure: lookups ask every run, so batches would slow down faster than compactions catch up.
        if too_many_runs(runs, self._limits):
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
            self._failures = 0
            after = swapped(runs, done.inputs, result)
            if after is None:
                # Batches have merged some of its inputs meanwhile. Nobody names the file, and no other attempt's
                # cleaning would find it.
                self._storage.delete(result.name)
            return after
        # Inputs that batches have merged meanwhile may be removed under a compaction: that is no failure.
        if result is not None and set(done.inputs) <= set(runs):
            # What fails for good must not cost every batch a Spark job.
            self._pause, self._failures = min(2**self._failures - 1, _LONGEST_PAUSE), self._failures + 1
            self._warn_of(done, result)
        return None

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

    def close(self) -> None:
        """Wait for what is under way: a worker must not write into a checkpoint that is given up."""
        if self._thread is not None:
            self._thread.join()

    def _due(self, state: StateFiles) -> _Compaction | None:
        for operator, partitions in state.items():
            for partition, tables in partitions.items():
                for spec in self.specs.get(operator, ()):
                    runs = tables.get(spec.name, ())
                    part = plan_compaction(runs, self._limits)
                    if part is not None:
                        # Never the name of an earlier try: files are immutable, and caches on other hosts go by name.
                        unique = f"{uuid.uuid4().hex}-{spec.name}"
                        target = state_name(operator, partition, "compaction", unique)
                        inputs, oldest = tuple(runs[part]), part.start == 0
                        location = self._storage.location
                        return _Compaction(location, operator, partition, spec, inputs, oldest, target)
        return None

    def _run(self, wanted: _Compaction) -> None:
        """A compaction that fails changes nothing; it is planned again after a later commit."""
        description = f"{self._job}: compaction of {wanted.operator}/{wanted.partition}/{wanted.spec.name}"
        try:
            # A scheduler pool of its own, or it would wait behind, and hold up, the tasks of batches.
            with spark_jobs(self._spark, POOL, f"headwater-{wanted.target}", description):
                self._result = self._spark.sparkContext.parallelize([0], 1).map(wanted).collect()[0]
        except Exception as error:  # noqa: BLE001 - reported with the next batch, which still has all runs
            self._result = error
