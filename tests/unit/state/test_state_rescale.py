"""Which state partition a hash belongs to, and state rewritten for another number of partitions."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_model import DirectoryStorage

from headwater.state.files import open_run, open_state, save_state
from headwater.state.manifest import RunFile
from headwater.state.partitions import partition_of
from headwater.state.rescale import rescale
from headwater.state.table import StateTable, TableSpec

SPECS = [
    TableSpec("groups", pa.schema([("k", pa.int64())]), pa.schema([("v", pa.int64())])),
    TableSpec("values1", pa.schema([("k", pa.int64()), ("x", pa.int64())]), pa.schema([("c", pa.int64())])),
    TableSpec("timers", pa.schema([("k", pa.int64())]), pa.schema([("v", pa.int64())]), by_time=True),
]
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1

hashes = st.integers(LEAST, GREATEST) | st.sampled_from([LEAST, -1, 0, 1, GREATEST])
counts = st.integers(1, 64) | st.sampled_from([1000, 1 << 20])


@settings(deadline=None)
@given(st.lists(hashes, min_size=1), counts)
def test_the_partition_is_the_upper_half_modulo_their_number(some: list[int], partitions: int) -> None:
    numbers = partition_of(np.array(some, dtype=np.int64), partitions)
    assert numbers.tolist() == [(h >> 32) % partitions for h in some]


@settings(deadline=None)
@given(hashes, st.integers(0, 0xFFFFFFFF), counts)
def test_only_the_upper_half_counts(group: int, low: int, partitions: int) -> None:
    row = ((group >> 32) << 32) | low
    ours, its = partition_of(np.array([group, row], dtype=np.int64), partitions)
    assert ours == its


def group_hashes(keys: np.ndarray) -> np.ndarray:
    return (keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)


def write(state: dict[str, StateTable], model: dict[int, int | None]) -> None:
    keys = np.array(list(model), dtype=np.int64)
    values, gone = pa.array(list(model.values()), pa.int64()), np.array([v is None for v in model.values()])
    at = group_hashes(keys)
    state["groups"].write(at, [pa.array(keys)], [values], gone)
    state["timers"].write((keys << 32) | ((at >> 32) & 0xFFFFFFFF), [pa.array(keys)], [values], gone)
    state["values1"].write(((at >> 32) << 32) | (keys & 7), [pa.array(keys), pa.array(keys + 1)], [values], gone)


def stored(storage: DirectoryStorage, tables: list[dict[str, list[RunFile]]]) -> dict[str, dict[int, int]]:
    """What the partitions hold, each key once and where it belongs."""
    found: dict[str, dict[int, int]] = {spec.name: {} for spec in SPECS}
    for number, files in enumerate(tables):
        for spec in SPECS:
            for file in files[spec.name]:
                rows = open_run(storage, spec, file).table
                # By the hash of the group, wherever a table has it: its timers must stand where its values are.
                groups = group_hashes(rows.column("k").to_numpy())
                assert set(partition_of(groups, len(tables)).tolist()) <= {number}
                for row in rows.to_pylist():
                    assert row["k"] not in found[spec.name]
                    found[spec.name][row["k"]] = row["c" if spec.name == "values1" else "v"]
    return found


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 5), (5, 1), (2, 3), (3, 2), (4, 8), (7, 64)])
def test_state_is_rewritten_for_another_number_of_partitions(before: int, after: int, tmp_path: Path) -> None:
    storage, dice, model = DirectoryStorage(tmp_path), Random(before * 100 + after), dict[int, int | None]()
    old: list[dict[str, list[RunFile]]] = [{} for _ in range(before)]
    for batch in range(12):
        changes = {dice.randrange(300): dice.choice([None, dice.randrange(99)]) for _ in range(1 + (600 >> batch))}
        model.update(changes)
        numbers = partition_of(group_hashes(np.array(list(changes))), before)
        for number in range(before):
            mine = {k: v for (k, v), n in zip(changes.items(), numbers, strict=True) if n == number}
            state = open_state(storage, SPECS, old[number])
            write(state, mine)
            old[number] = save_state(storage, state, f"state/op/{number}/{batch}-a-0")
    assert max(len(files["groups"]) for files in old) > 1
    new = rescale(storage, SPECS, old, after, lambda number: f"state/op/{number}/12-rescaled-0")
    alive = {k: v for k, v in model.items() if v is not None}
    assert stored(storage, new) == {"groups": alive, "values1": alive, "timers": alive}
    assert all(len(runs) <= 1 for files in new for runs in files.values())
    assert len(new) == after


def test_nothing_is_rewritten_to_nothing(tmp_path: Path) -> None:
    new = rescale(DirectoryStorage(tmp_path), SPECS, [{}, {}], 3, str)
    assert new == [{"groups": [], "values1": [], "timers": []}] * 3
    assert list(tmp_path.iterdir()) == []
