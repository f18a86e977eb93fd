"""State larger than memory: COUNT(DISTINCT) of 100 million pairs, in workers of at most 1 GiB: `make bench-state`.

1. Start the embedded broker, and a job as `headwater run` has it, on two cores.
2. Look at the memory of its Python workers that is no mapped file: none may have more. (Not RLIMIT_DATA, which counts
   what an allocator reserves and does not use.)
3. Print at every tenth: pairs, state on disk, the largest worker's memory, and how long batches took.
4. The counts in the result must add up to the number of pairs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import threading
from pathlib import Path

from outputs import create_topic, read_outcome
from soak_samples import held_by, worker_processes

import headwater
from headwater.broker import Broker
from headwater.execution.job import Progress

LIMIT_BYTES = 1 << 30
BATCH = 500_000
REGIONS = 1_000
TOPIC = "users_per_region"
LOOK_SECONDS = 0.2
JOB = f"""
SET 'headwater.batch.max-rows' = '{BATCH}';
CREATE TABLE views (user_id BIGINT, region INT) WITH (
  'connector' = 'datagen', 'rows-per-second' = '100000000',
  'fields.user_id.kind' = 'sequence', 'fields.user_id.start' = '1', 'fields.user_id.end' = '${{pairs}}',
  'fields.region.min' = '1', 'fields.region.max' = '{REGIONS}');
CREATE TABLE {TOPIC} (region INT, users BIGINT, PRIMARY KEY (region) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{TOPIC}', 'properties.bootstrap.servers' = '${{kafka}}',
  'key.format' = 'json', 'value.format' = 'json');
INSERT INTO {TOPIC} SELECT region, COUNT(DISTINCT user_id) FROM views GROUP BY region;
"""


def main() -> None:
    options = _options()
    directory = Path(tempfile.mkdtemp(prefix="headwater-state-"))
    try:
        with Broker.start(directory / "broker", 0, die_with_parent=True) as broker:  # 1
            create_topic(broker.bootstrap_servers, TOPIC)
            peak = _count(str(directory / "checkpoint"), broker.bootstrap_servers, options.pairs)
            outcome = read_outcome(broker.bootstrap_servers, TOPIC, "json table")
        counted = sum(users for (users,) in outcome.table.values())
        print(f"The counts add up to {counted:,}.")
        if counted != options.pairs:  # 4
            raise RuntimeError(f"The counts add up to {counted:,}, not to {options.pairs:,}.")
        if peak > LIMIT_BYTES:  # 2
            raise RuntimeError(f"A worker had {peak >> 20:,} MiB of memory that is no mapped file.")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100_000_000, help="distinct pairs (default: 100 million)")
    return parser.parse_args()


def _count(checkpoint: str, servers: str, pairs: int) -> int:
    """The memory of the largest worker."""
    variables, watch = {"kafka": servers, "pairs": str(pairs)}, Watch(pairs)
    conf = {"spark.ui.enabled": "false"}
    with headwater.connect(master="local[2]", checkpoint=checkpoint, conf=conf, variables=variables) as session:
        session.on_batch = watch.note
        ended = threading.Event()
        looking = threading.Thread(target=watch.look, args=(ended,))
        looking.start()
        try:
            session.sql(JOB)
            session.wait()
        finally:
            ended.set()
            looking.join()
    return watch.peak


class Watch:
    """Batches, and the memory of the workers; a line for every tenth of the pairs."""

    def __init__(self, pairs: int) -> None:
        self._pairs, self._printed = pairs, 0
        self._batches, self._seconds = 0, list[float]()
        self._most = self.peak = 0

    def look(self, ended: threading.Event) -> None:
        while not ended.wait(LOOK_SECONDS):
            for worker in worker_processes(os.getpid()):
                self._most = max(self._most, held_by(worker).anonymous)
                self.peak = max(self.peak, self._most)

    def note(self, progress: Progress) -> None:
        if progress.batches == self._batches:  # a report of something else than a batch
            return
        self._batches = progress.batches
        self._seconds.append(progress.batch_seconds)
        if progress.rows_in * 10 >= self._pairs * (self._printed + 1):  # 3
            print(
                f"{progress.rows_in:>11,} pairs  {progress.state_bytes >> 20:>6,} MiB on disk  "
                f"{self._most >> 20:>4} MiB in the largest worker  batch {statistics.median(self._seconds):.2f} s "
                f"(longest {max(self._seconds):.2f} s)",
                flush=True,
            )
            self._printed, self._seconds, self._most = self._printed + 1, [], 0


if __name__ == "__main__":
    main()
