"""Runs in many record batches: searched, cut and merged in chunks, against plain lists and dicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_model import small_hash

from headwater.state.columns import HASH
from headwater.state.merge import merged
from headwater.state.runs import TOMBSTONE, Run, TableSpec
from headwater.state.table import StateTable

SPEC = TableSpec("t", pa.schema([("k", pa.string())]), pa.schema([("v", pa.int64())]))
Entries = dict[str, int | None]

entries = st.dictionaries(st.text("abc", max_size=3), st.none() | st.integers(0, 9), min_size=1, max_size=30)


def run_of(rows: Entries, spread: int, batch: int) -> Run:
    """A run in record batches of `batch` rows; None is a tombstone."""
    ordered = sorted(rows.items(), key=lambda item: small_hash(item[0], spread))
    columns = [
        pa.array([small_hash(k, spread) for k, _ in ordered], pa.int64()),
        pa.array([v is None for _, v in ordered]),
        pa.array([k for k, _ in ordered], pa.large_string()),
        pa.array([v for _, v in ordered], pa.int64()),
    ]
    return Run(SPEC.run_schema, pa.table(columns, schema=SPEC.run_schema).to_batches(max_chunksize=batch))


def contents(batches: list[pa.RecordBatch]) -> list[tuple[int, str, int | None]]:
    return [(row[HASH], row["k"], row["v"]) for batch in batches for row in batch.to_pylist()]


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(entries, min_size=1, max_size=5), st.sampled_from([1, 3, 1 << 30]), st.integers(1, 7), st.booleans())
def test_the_newest_row_of_every_key_is_left(history: list[Entries], spread: int, size: int, drop: bool) -> None:
    runs = [run_of(rows, spread, size) for rows in history]
    found = contents(list(merged(SPEC, runs, drop_tombstones=drop, chunk_rows=size)))
    model: Entries = {}
    for rows in history:
        model.update(rows)
    assert {k: v for _, k, v in found} == {k: v for k, v in model.items() if not drop or v is not None}
    assert len({k for _, k, _ in found}) == len(found)
    assert [h for h, _, _ in found] == sorted(small_hash(k, spread) for _, k, _ in found)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(entries, st.sampled_from([2, 9, 1 << 30]), st.integers(1, 7))
def test_a_run_in_pieces_is_searched_as_if_it_were_one(rows: Entries, spread: int, size: int) -> None:
    run, whole = run_of(rows, spread, size), run_of(rows, spread, 1 << 20)
    hashes = whole.table.column(HASH).to_numpy()
    asked = np.unique(np.concatenate([hashes, hashes + 1, hashes - 1]))
    assert run.rank(asked).tolist() == np.searchsorted(hashes, asked).tolist()
    assert run.rank(asked, "right").tolist() == np.searchsorted(hashes, asked, "right").tolist()
    every_other = np.arange(0, run.rows, 2)
    assert run.hashes_at(every_other).tolist() == hashes[every_other].tolist()
    assert run.take(every_other) == whole.table.take(pa.array(every_other))
    for start in range(run.rows + 1):
        for stop in range(start, run.rows + 1):
            assert contents(run.between(start, stop)) == contents(whole.table.slice(start, stop - start).to_batches())


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.lists(entries, min_size=1, max_size=4), st.sampled_from([1, 5, 1 << 30]), st.integers(1, 7))
def test_lookups_and_scans_over_pieces(history: list[Entries], spread: int, size: int) -> None:
    table = StateTable(SPEC, [run_of(rows, spread, size) for rows in history])
    model: Entries = {}
    for rows in history:
        model.update(rows)
    keys = [*model, "never"]
    found = table.lookup(np.array([small_hash(k, spread) for k in keys]), [pa.array(keys, pa.large_string())])
    assert found.values.column("v").to_pylist() == [model.get(k) for k in keys]
    low, high = np.array([-20, 0, 50]), np.array([-5, 3, 1 << 40])
    scanned = contents(list(table.scan_range(low, high)))
    ranges = list(zip(low, high, strict=True))
    alive = {k: v for k, v in model.items() if v is not None}
    assert {k: v for _, k, v in scanned} == {
        k: v for k, v in alive.items() if any(a <= small_hash(k, spread) <= b for a, b in ranges)
    }
    assert [h for h, _, _ in scanned] == sorted(h for h, _, _ in scanned)


def test_part_of_the_runs_can_be_merged() -> None:
    runs = [run_of({"a": 1, "b": 2, "c": 3}, 1 << 30, 2), run_of({"a": 4, "c": None}, 1 << 30, 2)]
    found = contents(list(merged(SPEC, runs, drop_tombstones=False, ranges=[(0, 1), (0, 1)])))
    assert [(k, v) for _, k, v in found] == [("a", 4)]
    assert list(merged(SPEC, runs, drop_tombstones=False, ranges=[(0, 0), (2, 2)])) == []


def test_merging_takes_no_more_memory_than_a_chunk() -> None:
    """Nothing is built as a whole: in chunks of 1,000 rows a merge of 200,000 allocates no more than a few of them."""
    count = 100_000
    runs = []
    for offset in range(2):
        hashes = pa.array(np.arange(offset, 2 * count, 2))
        columns: list[Any] = [hashes, pa.repeat(False, count), hashes.cast(pa.large_string()), hashes]
        runs.append(Run(SPEC.run_schema, pa.table(columns, schema=SPEC.run_schema).to_batches(max_chunksize=5_000)))
    whole, before, rows = sum(run.bytes for run in runs), pa.total_allocated_bytes(), 0
    for batch in merged(SPEC, runs, drop_tombstones=True, chunk_rows=1_000):
        rows += batch.num_rows
        assert pa.total_allocated_bytes() - before < whole / 20
    assert rows == 2 * count


@pytest.mark.parametrize("with_some", [True, False])
def test_tombstones_are_dropped(with_some: bool) -> None:
    run = run_of({"a": 1, "b": None if with_some else 2, "c": 3}, 1 << 30, 2)
    kept = run.without_tombstones()
    assert (kept is run) is not with_some
    assert not any(kept.table.column(TOMBSTONE).to_pylist())
    assert kept.rows == (2 if with_some else 3)


@pytest.mark.timeout(60)
def test_very_many_keys_may_share_a_hash() -> None:
    """As the rows of one window do that wait for its end: what a merge takes grows with their number, not its square
    (with which it would take an hour)."""
    count = 40_000
    written = {f"k{number}": number for number in range(count)}
    removed: Entries = {f"k{number}": None for number in range(0, count, 2)}
    runs = [run_of(rows, 1, 1 << 19) for rows in (written, removed)]
    found = contents(list(merged(SPEC, runs, drop_tombstones=True)))
    assert {k: v for _, k, v in found} == {f"k{number}": number for number in range(1, count, 2)}
    assert len(found) == count // 2
