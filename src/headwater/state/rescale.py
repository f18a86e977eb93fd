"""The state of P partitions rewritten for N: every table of a new partition becomes one run.

1. The runs of each old partition are merged, and their rows split by new partition, which the stored hash tells.
2. The pieces of each new partition, one from every old partition that had rows for it, are merged.

Both stream: only a chunk of rows is in memory at any time. The pieces are named by nobody afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np
import pyarrow as pa

from headwater.state.columns import HASH
from headwater.state.files import RunWriter, compact, open_run
from headwater.state.manifest import PartitionFiles, RunFile, RunStorage
from headwater.state.merge import merged
from headwater.state.partitions import partition_of
from headwater.state.runs import TableSpec

__all__ = ["rescale"]

Name = Callable[[int], str]


def rescale(
    storage: RunStorage, specs: Sequence[TableSpec], old: Sequence[PartitionFiles], partitions: int, prefix: Name
) -> list[dict[str, list[RunFile]]]:
    """The files of the new partitions of one operator, from the files of the old ones. They are named as by
    `save_state`: `<prefix of the new partition>-<table>-<n>.arrow`. A table without rows has no file."""
    new: list[dict[str, list[RunFile]]] = [{} for _ in range(partitions)]
    for spec in specs:
        pieces: list[list[RunFile]] = [[] for _ in range(partitions)]
        for number, files in enumerate(old, start=1):  # 1
            names = [f"{prefix(partition)}-{spec.name}-{number}.arrow" for partition in range(partitions)]
            for partition, piece in _split(storage, spec, files.get(spec.name, ()), names).items():
                pieces[partition].append(piece)
        for partition, tables in enumerate(new):  # 2
            mine, target = pieces[partition], f"{prefix(partition)}-{spec.name}-0.arrow"
            tables[spec.name] = [compact(storage, spec, mine, target, drop_tombstones=True)] if mine else []
    return new


def _split(storage: RunStorage, spec: TableSpec, files: Sequence[RunFile], names: Sequence[str]) -> dict[int, RunFile]:
    """The rows of one old partition, in a file for each new partition that has some, under its name."""
    runs = [open_run(storage, spec, file) for file in files]
    writers: dict[int, RunWriter] = {}
    with ExitStack() as opened:
        for chunk in merged(spec, runs, drop_tombstones=True):
            # The stored hash has that of the partitioning key, so rows are moved without knowing the query or its keys.
            numbers = partition_of(spec.key_hashes(chunk.column(HASH).to_numpy()), len(names))
            for number in np.unique(numbers).tolist():
                if number not in writers:
                    writers[number] = opened.enter_context(RunWriter(storage, names[number], spec.run_schema))
                writers[number].write(chunk.take(pa.array(np.flatnonzero(numbers == number))))
        return {number: writer.publish() for number, writer in writers.items()}
