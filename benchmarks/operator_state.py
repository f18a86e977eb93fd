"""Does a batch cost its changes, or the state that it meets? Operators alone, on state in files, without Spark.

    python benchmarks/operator_state.py

Batches of 1,000 changes, on a small state and on a large one: Top-3 in one group of a million rows, joins with a key
that 100,000 rows of one side have, a window aggregation with a million open windows. Printed: the median of a batch in
milliseconds (open the state, step, save it) for both, and how many times longer the large one takes; goal: at most 2.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from headwater.changelog.accumulate import Accumulator
from headwater.changelog.aggregate import ROWS, AggregateOperator
from headwater.changelog.conditions import ColumnRef, Compare
from headwater.changelog.join import JoinInput, JoinKind, JoinOperator
from headwater.changelog.kinds import DELETE, HASH, INSERT, KIND, KIND_TYPE, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.operator import Operator, Time
from headwater.changelog.ordering import SortKey
from headwater.changelog.rank import RankOperator
from headwater.changelog.results import AggregateResult
from headwater.changelog.window import WindowAggregateOperator
from headwater.changelog.window_assigners import Tumble
from headwater.protocol.storage import open_storage
from headwater.state.compaction import plan_compaction
from headwater.state.files import compact, open_state, save_state
from headwater.state.manifest import RunFile

CHANGES = 1_000
BATCHES = 30
HOUR = 3_600_000_000
Inputs = tuple[pa.Table, ...]


@dataclass(frozen=True)
class Workload:
    """`batches` gives one batch that fills the state, and then those that are measured, without an end."""

    name: str
    operator: Operator
    batches: Callable[[int], Iterator[Inputs]]
    small: int
    large: int
    time: Time = Time()  # noqa: RUF009 - immutable


class Host:
    """What a task does with the state of its operator."""

    def __init__(self, operator: Operator, location: str, time: Time) -> None:
        self._operator, self._time = operator, time
        self._storage = open_storage(location)
        self._files: dict[str, list[RunFile]] = {}
        self._number = 0

    def batch(self, inputs: Inputs) -> float:
        began = time.perf_counter()
        state = open_state(self._storage, self._operator.tables, self._files)
        self._operator.step(state, inputs, self._time)
        self._files = save_state(self._storage, state, f"state/op/0/{self._number}")
        self._number += 1
        return time.perf_counter() - began

    def compact(self) -> None:
        """In a job this runs beside the batches."""
        for spec in self._operator.tables:
            files = self._files.get(spec.name, [])
            while (part := plan_compaction(files)) is not None:
                target = f"state/op/0/c{self._number}-{spec.name}-{part.start}.arrow"
                files[part] = [compact(self._storage, spec, files[part], target, drop_tombstones=part.start == 0)]


def main() -> None:
    options = _options()
    print(f"{'batch of 1,000 changes':<58}{'small':>10}{'large':>10}{'ratio':>8}")
    for workload in WORKLOADS:
        if options.only in workload.name:
            small, large = (_measured(workload, rows) for rows in (workload.small, workload.large))
            label = f"{workload.name}, {workload.small:,} / {workload.large:,}"
            print(f"{label:<58}{small * 1000:>7.1f} ms{large * 1000:>7.1f} ms{large / small:>8.2f}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="workloads with this in their name")
    return parser.parse_args()


def _measured(workload: Workload, rows: int) -> float:
    directory = Path(tempfile.mkdtemp(prefix="headwater-state-"))
    try:
        host, batches = Host(workload.operator, str(directory), workload.time), workload.batches(rows)
        host.batch(next(batches))
        for _ in range(5):  # to warm up
            host.batch(next(batches))
        seconds = []
        for _ in range(BATCHES):
            host.compact()
            seconds.append(host.batch(next(batches)))
        return statistics.median(seconds)
    finally:
        shutil.rmtree(directory)


# Top-N: rows of one group are updated, anywhere in its order

_RANKED = pa.schema([("g", pa.int64()), ("id", pa.int64()), ("score", pa.int64())])


def _ranked(rows: int) -> Iterator[Inputs]:
    dice = np.random.default_rng(1)
    scores = dice.integers(0, 1 << 40, rows)
    yield (_ranked_table(np.arange(rows), scores, np.zeros(rows, dtype=np.int8)),)
    while True:
        ids = dice.choice(rows, CHANGES // 2, replace=False)
        new = dice.integers(0, 1 << 40, len(ids))
        kinds = np.repeat([UPDATE_BEFORE, UPDATE_AFTER], len(ids)).astype(np.int8)
        yield (_ranked_table(np.concatenate([ids, ids]), np.concatenate([scores[ids], new]), kinds),)
        scores[ids] = new


def _ranked_table(ids: np.ndarray, scores: np.ndarray, kinds: np.ndarray) -> pa.Table:
    group = np.zeros(len(ids), dtype=np.int64)
    columns = [_hash(group, ids ^ scores), group, ids, scores, kinds]
    return pa.table([pa.array(c) for c in columns], schema=_changes(_RANKED))


# joins: rows of the side with the hot key come and go; one row of the other side has that key

_LEFT = pa.schema([("k", pa.int64()), ("x", pa.int64())])
_RIGHT = pa.schema([("j", pa.int64()), ("id", pa.int64()), ("y", pa.int64())])


def _hot(rows: int) -> Iterator[Inputs]:
    """Half of the changes are inserts of rows with the hot key, half delete some."""
    key = np.zeros(1, dtype=np.int64)
    left = pa.table([pa.array(c) for c in (_hash(key, key), key, key, key.astype(np.int8))], schema=_changes(_LEFT))
    yield left, _right(np.arange(rows), INSERT)
    oldest, newest, half = 0, rows, CHANGES // 2
    while True:
        new, old = np.arange(newest, newest + half), np.arange(oldest, oldest + half)
        yield left.slice(0, 0), pa.concat_tables([_right(old, DELETE), _right(new, INSERT)])
        oldest, newest = oldest + half, newest + half


def _right(ids: np.ndarray, kind: int) -> pa.Table:
    key = np.zeros(len(ids), dtype=np.int64)
    columns = [_hash(key, ids), key, ids, ids % 7, np.full(len(ids), kind, dtype=np.int8)]
    return pa.table([pa.array(c) for c in columns], schema=_changes(_RIGHT))


def _join(kind: JoinKind, *, compared: bool = False) -> JoinOperator:
    condition = Compare("<=", ColumnRef("x"), ColumnRef("y")) if compared else None
    return JoinOperator(JoinInput(_LEFT, ("k",)), JoinInput(_RIGHT, ("j",)), kind, condition)


# windows: rows come to windows of an hour that are open, one key each

_COUNTED = AggregateOperator(
    pa.schema([("k", pa.int64())]),
    (Accumulator("s", pa.int64(), "sum"), Accumulator("c", pa.int64(), "sum")),
    (AggregateResult("n", pa.int64(), "COUNT", ROWS), AggregateResult("total", pa.int64(), "SUM", "s", "c")),
    before=False,
)


def _windowed(rows: int) -> Iterator[Inputs]:
    dice = np.random.default_rng(2)
    yield (_window_rows(np.arange(rows)),)
    while True:
        yield (_window_rows(dice.integers(0, rows, CHANGES)),)


def _window_rows(keys: np.ndarray) -> pa.Table:
    one = np.ones(len(keys), dtype=np.int64)
    times = pa.array(keys % 1000 * (HOUR // 1000) + HOUR, pa.timestamp("us"))
    columns = {HASH: _hash(keys, keys), "k": keys, ROWS: one, "s": keys % 10, "c": one}
    return pa.table({**{name: pa.array(column) for name, column in columns.items()}, "ts": times})


def _hash(keys: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """As the JVM makes them: of the key in the upper half, of the row in the lower."""
    upper, lower = (_mixed(part) >> np.uint64(33) for part in (keys, rows + 1))
    return (upper.astype(np.int64) << 32) | lower.astype(np.int64)


def _mixed(numbers: np.ndarray) -> np.ndarray:
    return (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)


def _changes(columns: pa.Schema) -> pa.Schema:
    return pa.schema([(HASH, pa.int64()), *columns, (KIND, KIND_TYPE)])


_TOP3 = RankOperator(_RANKED, ("g",), (SortKey("score", descending=True, nulls_first=False),), 3, number="rn")
_OPEN = Time(0, 0, 0)
WORKLOADS = (
    Workload("Top-3 in one group", _TOP3, _ranked, 1_000, 1_000_000),
    Workload("inner join, hot key", _join("inner"), _hot, 1_000, 100_000),
    Workload("left join, hot key", _join("left"), _hot, 1_000, 100_000),
    Workload("left join with a comparison, hot key", _join("left", compared=True), _hot, 1_000, 100_000),
    Workload("full join with a comparison, hot key", _join("full", compared=True), _hot, 1_000, 100_000),
    Workload("semi join, hot key", _join("semi"), _hot, 1_000, 100_000),
    Workload("open windows", WindowAggregateOperator(_COUNTED, Tumble(HOUR), "ts"), _windowed, 1_000, 1_000_000, _OPEN),
)

if __name__ == "__main__":
    main()
