"""State that is larger than memory: distinct pairs in a state table, in a process that may not have more than 1 GiB.

    python benchmarks/state_size.py --pairs 100000000

The process does what the tasks of a COUNT(DISTINCT) do with their state: look up a batch of keys, write the new ones,
save, and merge runs when a compaction is due. RLIMIT_DATA bounds all its memory but mapped files. Printed at every
tenth: rows, bytes on disk, memory that is not mapped files, and how long batches took.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from headwater.protocol.storage import open_storage
from headwater.state.compaction import plan_compaction
from headwater.state.files import compact, open_state, save_state
from headwater.state.manifest import RunFile
from headwater.state.table import StateTable, TableSpec

LIMIT_BYTES = 1 << 30
BATCH = 500_000
REGIONS = 1_000
SPEC = TableSpec(
    "values", pa.schema([("region", pa.int32()), ("user", pa.int64())]), pa.schema([("count", pa.int64())])
)


def main() -> None:
    options = _options()
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))
    directory = Path(tempfile.mkdtemp(prefix="headwater-state-"))
    try:
        _fill(str(directory), options.pairs)
    finally:
        shutil.rmtree(directory)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100_000_000, help="distinct pairs (default: 100 million)")
    return parser.parse_args()


def _fill(location: str, pairs: int) -> None:
    storage = open_storage(location)
    files: list[RunFile] = []
    dice = np.random.default_rng(7)
    seconds: list[float] = []
    merging = 0.0
    for number in range(pairs // BATCH):
        users = np.arange(number * BATCH, (number + 1) * BATCH, dtype=np.int64)
        began = time.monotonic()
        [table] = open_state(storage, [SPEC], {SPEC.name: files}).values()
        _step(table, users, dice.integers(0, REGIONS, BATCH, dtype=np.int32))
        files = save_state(storage, {SPEC.name: table}, f"state/op/0/{number}-0")[SPEC.name]
        seconds.append(time.monotonic() - began)
        began = time.monotonic()
        part = plan_compaction(files)
        if part is not None:  # in a job it runs beside the batches
            target = f"state/op/0/compaction-{number}.arrow"
            files[part] = [compact(storage, SPEC, files[part], target, drop_tombstones=part.start == 0)]
        merging += time.monotonic() - began
        storage.delete(*(set(storage.names("state/")) - {file.name for file in files}))
        if (number + 1) % max(1, pairs // BATCH // 10) == 0:
            _report((number + 1) * BATCH, files, seconds, merging)
            seconds, merging = [], 0.0
    assert sum(file.rows for file in files) == pairs // BATCH * BATCH


def _step(table: StateTable, users: np.ndarray, regions: np.ndarray) -> None:
    mixed = users.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    hashes = (regions.astype(np.int64) * 2_654_435_761 << 32) | (mixed >> np.uint64(32)).astype(np.int64)
    keys = [pa.array(regions), pa.array(users)]
    new = ~table.lookup(hashes, keys).hit
    assert new.all()
    table.write(hashes, keys, [pa.array(np.ones(len(users), dtype=np.int64))], np.zeros(len(users), dtype=np.bool_))


def _report(rows: int, files: list[RunFile], seconds: list[float], merging: float) -> None:
    memory = sum(
        int(line.split()[1])
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("RssAnon")
    )
    print(
        f"{rows:>11,} pairs  {len(files):>2} runs  {sum(f.bytes for f in files) >> 20:>6,} MiB on disk  "
        f"{memory >> 10:>4} MiB of memory  batch {statistics.median(seconds) * 1000:.0f} ms "
        f"(longest {max(seconds) * 1000:.0f})  compactions {merging:.0f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
