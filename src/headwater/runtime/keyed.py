"""The host of stateful operators inside Spark's Python workers.

Spark shuffles rows by key into partitions. A task gets its whole partition, splits it by state bucket (a function of
the key alone, so a key meets its own state in every batch and after every restart), loads the bucket as of the batch
before, runs one step, saves the bucket under this batch's number, and passes the changes on.
"""

from __future__ import annotations

import gc
import zipimport
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from headwater.changelog.columns import flat, widen
from headwater.changelog.operator import Operator
from headwater.runtime.layers import Bucket

__all__ = ["BUCKET", "Stage", "host", "in_worker", "stateless"]

BUCKET = "__bucket"
OUTPUT_ROWS = 50_000

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class Stage:
    """Where an operator's state lives, the number of the batch being computed, and which run of it this is."""

    location: str
    version: int
    run: str


def host(operator: Operator, stage: Stage) -> Callable[[Batches], Batches]:
    """A function for `mapInArrow` that runs `operator` on one partition."""

    def run(batches: Batches) -> Batches:
        context = TaskContext.get()
        partition = context.partitionId() if context else 0
        received = list(batches)
        if not any(batch.num_rows for batch in received):
            return
        rows = pa.Table.from_batches(received)
        rows = rows.cast(_utc(widen(rows.schema))).combine_chunks()
        buckets = flat(rows, BUCKET).to_numpy()
        for number in np.unique(buckets):
            mine = rows if (buckets == number).all() else rows.filter(pa.array(buckets == number))
            bucket = Bucket(stage.location, int(number))
            state = bucket.load(operator.tables, stage.version)
            changes = operator.step(state, mine.combine_chunks())
            bucket.save(state, stage.version, stage.run, partition)
            yield from changes.cast(operator.output).to_batches(max_chunksize=OUTPUT_ROWS)

    return in_worker(run)


def stateless(step: Callable[[pa.Table], pa.Table], output: pa.Schema) -> Callable[[Batches], Batches]:
    """A function for `mapInArrow` that sees its whole partition at once but remembers nothing."""

    def run(batches: Batches) -> Batches:
        received = list(batches)
        if any(batch.num_rows for batch in received):
            rows = pa.Table.from_batches(received)
            changes = step(rows.cast(_utc(widen(rows.schema))).combine_chunks())
            yield from changes.cast(output).to_batches(max_chunksize=OUTPUT_ROWS)

    return in_worker(run)


def in_worker(step: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """`step` as a function for `mapInArrow`."""

    def run(batches: Batches) -> Batches:
        _keep_what_stays()
        yield from step(batches)

    return run


def _utc(schema: pa.Schema) -> pa.Schema:
    """Instants in UTC, whatever the session's time zone: state must not depend on it."""
    return pa.schema(
        [f.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(f.type) and f.type.tz else f for f in schema]
    )


def _keep_what_stays() -> None:
    """Once in a worker. Before each task Spark invalidates all import caches, and Python then rereads the directory of
    pyspark.zip (5,000 entries, about 100 ms); that archive never changes during a job. After each task Spark collects
    garbage, and looks for it among all that modules have made (100,000 objects, about 50 ms); those stay."""
    if zipimport.zipimporter.invalidate_caches is not _nothing:
        zipimport.zipimporter.invalidate_caches = _nothing  # type: ignore[assignment,method-assign]
        gc.freeze()


def _nothing(importer: zipimport.zipimporter) -> None:
    del importer
