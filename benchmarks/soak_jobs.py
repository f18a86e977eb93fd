"""The process of a soak: three jobs in one session, as `headwater run` has them, which tells about each batch.

    python soak_jobs.py SCRIPT CHECKPOINT LOCAL_DIRECTORY SERVERS COLLECTION_SECONDS

Writes one JSON object per line to standard output, and ends in order when standard input ends:

    {"time": …, "job": "totals", "status": "running", "batches": 7, "seconds": 0.2, "read": 7000, "error": ""}
    {"time": …, "heap": …, "non_heap": …}        bytes used in Spark's JVM
    {"time": …, "live": …}                       of the heap, after a full garbage collection
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

import headwater
from headwater.execution.job import Progress

HEAP = "1g"
JVM_SECONDS = 5.0


def main(script: Path, checkpoint: str, local_directory: str, servers: str, collection_seconds: float) -> None:
    # Whatever Spark and its JVM print must not get between the lines.
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    conf = {
        "spark.driver.memory": HEAP,
        # The whole heap from the start: growth of the process is then growth of something else.
        "spark.driver.extraJavaOptions": f"-Xms{HEAP} -XX:+AlwaysPreTouch",
        "spark.local.dir": local_directory,
        "spark.ui.enabled": "false",
    }
    told, ended = Told(output), threading.Event()
    variables = {"kafka": servers}
    with headwater.connect(master="local[2]", checkpoint=checkpoint, conf=conf, variables=variables) as session:
        told.session = session
        session.on_batch = told.progress
        session.sql(script.read_text(encoding="utf-8"))
        memory = session.spark._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
        watching = [
            threading.Thread(target=_watch_jvm, args=(memory, told, ended), daemon=True),
            threading.Thread(target=_collect_garbage, args=(memory, told, ended, collection_seconds), daemon=True),
        ]
        for thread in watching:
            thread.start()
        sys.stdin.read()
        ended.set()
        for thread in watching:
            thread.join()


class Told:
    """Lines from several threads."""

    session: headwater.Session

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._lock = threading.Lock()

    def progress(self, progress: Progress) -> None:
        errors = [str(job.error) for job in self.session.jobs if job.name == progress.name and job.error is not None]
        self.line(
            job=progress.name,
            status=progress.status,
            batches=progress.batches,
            seconds=progress.batch_seconds,
            read=sum(offset for position in progress.positions for offset in position.values()),
            error="".join(errors),
        )

    def line(self, **facts: Any) -> None:
        with self._lock:
            self._output.write(json.dumps({"time": time.time(), **facts}) + "\n")
            self._output.flush()


def _watch_jvm(memory: Any, told: Told, ended: threading.Event) -> None:
    while not ended.wait(JVM_SECONDS):
        heap, other = memory.getHeapMemoryUsage().getUsed(), memory.getNonHeapMemoryUsage().getUsed()
        told.line(heap=int(heap), non_heap=int(other))


def _collect_garbage(memory: Any, told: Told, ended: threading.Event, seconds: float) -> None:
    """What is left after a full collection is what something still refers to: the heap in use says little without."""
    while not ended.wait(seconds):
        memory.gc()
        told.line(live=int(memory.getHeapMemoryUsage().getUsed()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:5], float(sys.argv[5]))
