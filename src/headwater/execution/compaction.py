"""Compactions of one job: large merges of state runs, as Spark jobs beside its batches.

A step of an operator merges small runs itself. What is too large for that is planned here after each commit, from the
sizes the commit names, and runs one at a time in a thread of its own. The result goes into the commit of whichever
batch ends next, in place of the runs that were merged, if those still stand side by side; otherwise it is removed.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from headwater.execution.prepared import spark_jobs
from headwater.protocol.records import StateFiles, state_name
from headwater.protocol.storage import Storage, open_storage
from headwater.state.compaction import plan_compaction, swapped, too_many_runs
from headwater.state.files import compact
from headwater.state.manifest import RunFile
from headwater.state.table import TableSpec

__all__ = ["Compactor"]

POOL = {"spark.scheduler.pool": "headwater-compaction"}


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
        storage = open_storage(self.location)
        return compact(storage, self.spec, self.inputs, self.target, drop_tombstones=self.oldest)


class Compactor:
    """At most one compaction at a time. `specs` are the state tables of each operator."""

    def __init__(self, job: str, spark: SparkSession, storage: Storage) -> None:
        self.specs: Mapping[str, Sequence[TableSpec]] = {}
        self._job = job
        self._spark = spark
        self._storage = storage
        self._thread: threading.Thread | None = None
        self._running: _Compaction | None = None
        self._result: RunFile | None = None

    def plan(self, state: StateFiles) -> None:
        """After a commit: begin a compaction, if one is due and none is under way."""
        if self._running is None and (wanted := self._due(state)) is not None:
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
        if too_many_runs(runs):
            thread.join()
        # Not waited for: a batch goes on with the runs as they are, and takes the merged one when it is there.
        if thread.is_alive():
            return state
        self._running = self._thread = None
        if self._result is None:
            return state
        after = swapped(runs, running.inputs, self._result)
        if after is None:
            # Batches have merged some of its inputs meanwhile. Nobody names the file, and no other attempt's cleaning
            # would find it.
            self._storage.delete(self._result.name)
            return state
        tables = {**state[running.operator][running.partition], running.spec.name: tuple(after)}
        return {**state, running.operator: {**state[running.operator], running.partition: tables}}

    def close(self) -> None:
        """Wait for what is under way: a worker must not write into a checkpoint that is given up."""
        if self._thread is not None:
            self._thread.join()

    def _due(self, state: StateFiles) -> _Compaction | None:
        for operator, partitions in state.items():
            for partition, tables in partitions.items():
                for spec in self.specs.get(operator, ()):
                    runs = tables.get(spec.name, ())
                    part = plan_compaction(runs)
                    if part is not None:
                        # Never the name of an earlier try: files are immutable, and caches on other hosts go by name.
                        unique = f"{uuid.uuid4().hex}-{spec.name}"
                        target = state_name(operator, partition, "compaction", unique)
                        inputs, oldest = tuple(runs[part]), part.start == 0
                        location = self._storage.location
                        return _Compaction(location, operator, partition, spec, inputs, oldest, target)
        return None

    def _run(self, wanted: _Compaction) -> None:
        """A compaction that fails changes nothing; it is planned again after the next commit."""
        description = f"{self._job}: compaction of {wanted.operator}/{wanted.partition}/{wanted.spec.name}"
        try:
            # A scheduler pool of its own, or it would wait behind, and hold up, the tasks of batches.
            with spark_jobs(self._spark, POOL, f"headwater-{wanted.target}", description):
                self._result = self._spark.sparkContext.parallelize([0], 1).map(wanted).collect()[0]
        except Exception:  # noqa: BLE001 - the runs that were to be merged are all still there
            self._result = None
