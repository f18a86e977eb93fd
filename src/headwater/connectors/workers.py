"""What every function does first that runs in one of Spark's Python workers.

This is the one place that reaches into how PySpark runs a worker: `zipimport` caches, garbage collection, and its end.
If a release changes that, nothing breaks, but small batches become slower, or standard error less quiet.
"""

from __future__ import annotations

import gc
import os
import sys
import zipimport
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["Batches", "in_worker", "map_in_arrow", "prepare_worker"]

Batches = Iterable["pa.RecordBatch"]


def in_worker(step: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """`step` as a function for `mapInArrow`."""

    def run(batches: Batches) -> Batches:
        prepare_worker()
        yield from step(batches)

    return run


def map_in_arrow(frame: DataFrame, step: Callable[[Batches], Batches], schema: StructType | str) -> DataFrame:
    """`frame.mapInArrow` with `step` in the workers, whatever the columns are called.

    PySpark looks its columns up by names that it reads as paths, so it fails on a dot or a backquote in one. Such
    columns travel under numbers, and have their names again where `step` sees them."""
    names = frame.columns
    if not any("." in name or "`" in name for name in names):
        return frame.mapInArrow(in_worker(step), schema)

    def renamed(batches: Batches) -> Batches:
        return step(batch.rename_columns(names) for batch in batches)

    return frame.toDF(*(f"c{i}" for i in range(len(names)))).mapInArrow(in_worker(renamed), schema)


def prepare_worker() -> None:
    """Before each task, or more often."""
    _keep_modules()
    _end_silently(sys.modules.get("pyspark.worker"))


# How many modules were loaded when their objects were last put out of the collector's way.
_modules = 0


def _keep_modules() -> None:
    """Before each task Spark invalidates all import caches, and Python then rereads the directory of pyspark.zip (5,000
    entries, about 100 ms); that archive never changes during a job. After each task Spark collects garbage, and looks
    for it among all that modules have made (100,000 objects, about 50 ms); those stay. Tasks import more modules as
    they run, so this is looked at before each of them; what a task leaves behind is collected as ever."""
    global _modules  # noqa: PLW0603 - a fact about this process
    zipimport.zipimporter.invalidate_caches = _nothing  # type: ignore[assignment,method-assign]
    if len(sys.modules) > _modules:
        gc.freeze()
        _modules = len(sys.modules)


def _nothing(importer: zipimport.zipimporter) -> None:
    del importer


def _end_silently(worker: Any) -> None:
    """Spark ends a worker by closing its socket, after a minute without a task and when it stops. The worker takes that
    for an error, which it cannot report to the closed socket either, and prints both."""
    report = getattr(worker, "handle_worker_exception", None)
    if report is None or getattr(report, "silent", False):
        return

    def handle(error: BaseException, *rest: Any) -> None:
        if isinstance(error, EOFError) and worker.TaskContext.get() is None:  # between two tasks
            os._exit(0)
        report(error, *rest)

    handle.silent = True  # type: ignore[attr-defined]
    worker.handle_worker_exception = handle
