"""What every function does first that runs in one of Spark's Python workers.

This is the one place that reaches into how PySpark runs a worker: how it reads its input, `zipimport` caches, garbage
collection, memory, and its end.
If a release changes the latter, nothing breaks, but small batches become slower, or standard error less quiet. How
input is read decides on exactly-once: `tests/unit/execution/test_cut_input.py` notices a change.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
import zipimport
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["Batches", "InputCutError", "in_worker", "map_in_arrow", "prepare_worker"]

Batches = Iterable["pa.RecordBatch"]


class InputCutError(EOFError):
    """The input of a task has ended before its end: what computes it has failed, or the task was killed."""


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
    """Before each task, before its input is read."""
    _read_whole_streams()
    _keep_modules()
    _trim_memory()
    _end_silently(sys.modules.get("pyspark.worker"))


class _WholeStream:
    """A file that Arrow reads, which must not end by itself: a stream of Arrow has a mark at its end, behind which
    nothing is read."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        data: bytes = self._file.read(size)
        if len(data) < size:
            raise InputCutError("The input of this task was cut off: what computes it has failed.")
        return data


def _read_whole_streams() -> None:
    """If what computes the input of a task fails, Spark closes the socket to its worker. Arrow takes the end of a file
    between two record batches for the end of the stream, and PySpark's loop over it ends as if all had come: a sink
    would commit a part of its rows as the whole batch."""
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer

    if not hasattr(ArrowStreamSerializer.load_stream, "whole"):
        ArrowStreamSerializer.load_stream = _load_whole_stream  # type: ignore[method-assign]


def _load_whole_stream(serializer: Any, stream: Any) -> Batches:
    import pyarrow as pa

    del serializer
    yield from pa.ipc.open_stream(_WholeStream(stream))


_load_whole_stream.whole = True  # type: ignore[attr-defined]

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


_TRIM_SECONDS = 60.0
_trimmed = time.monotonic()


def _trim_memory() -> None:
    """Once a minute. The C library keeps memory that was freed, for each thread that has used any, and the threads of
    Kafka clients come and go with their connections: 5 MB per worker after a few restarts of a broker."""
    global _trimmed  # noqa: PLW0603 - a fact about this process
    if time.monotonic() - _trimmed < _TRIM_SECONDS:
        return
    _trimmed = time.monotonic()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if trim is not None:
        trim(0)


def _nothing(importer: zipimport.zipimporter) -> None:
    del importer


def _end_silently(worker: Any) -> None:
    """Spark ends a worker by closing its socket, after a minute without a task and when it stops. The worker takes that
    for an error, which it cannot report to the closed socket either, and prints both. Nobody waits for a task whose
    input was cut off, either."""
    report = getattr(worker, "handle_worker_exception", None)
    if report is None or getattr(report, "silent", False):
        return

    def handle(error: BaseException, *rest: Any) -> None:
        between_tasks = isinstance(error, EOFError) and worker.TaskContext.get() is None
        if between_tasks or isinstance(error, InputCutError):
            os._exit(0)
        report(error, *rest)

    handle.silent = True  # type: ignore[attr-defined]
    worker.handle_worker_exception = handle
