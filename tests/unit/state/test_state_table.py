"""The keyed table made of sorted runs, against a dict."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_model import small_hash

from headwater.state.columns import HASH
from headwater.state.compaction import MERGE_FACTOR
from headwater.state.manifest import RunFile
from headwater.state.runs import TOMBSTONE, Run
from headwater.state.table import StateTable, TableSpec

KEYS = pa.schema([("k", pa.string()), ("n", pa.int64())])
VALUES = pa.schema([("v", pa.int64()), ("s", pa.string())])
SPEC = TableSpec("rows", KEYS, VALUES)
Key = tuple[str | None, int | None]
Value = tuple[int | None, str | None]


def put(table: StateTable, entries: dict[Key, Value | None], spread: int = 1 << 40) -> None:
    keys = list(entries)
    values = [entries[k] or (None, None) for k in keys]
    table.write(
        hashes(keys, spread),
        [pa.array([k for k, _ in keys], pa.string()), pa.array([n for _, n in keys], pa.int64())],
        [pa.array([v for v, _ in values], pa.int64()), pa.array([s for _, s in values], pa.string())],
        np.array([entries[k] is None for k in keys], dtype=np.bool_),
    )


def hashes(keys: list[Key], spread: int) -> np.ndarray:
    return np.array([small_hash(k, spread) for k in keys], dtype=np.int64)


def get(table: StateTable, keys: list[Key], spread: int = 1 << 40) -> list[Value | None]:
    found = table.lookup(
        hashes(keys, spread),
        [pa.array([k for k, _ in keys], pa.string()), pa.array([n for _, n in keys], pa.int64())],
    )
    rows = zip(found.values.column("v").to_pylist(), found.values.column("s").to_pylist(), strict=True)
    for hit, row in zip(found.hit, rows, strict=True):
        assert hit or row == (None, None)
    rows = zip(found.values.column("v").to_pylist(), found.values.column("s").to_pylist(), strict=True)
    return [row if hit else None for hit, row in zip(found.hit, rows, strict=True)]


keys = st.tuples(st.none() | st.sampled_from("abcdefgh"), st.none() | st.integers(0, 2))
values = st.tuples(st.none() | st.integers(0, 3), st.none() | st.sampled_from(["x", ""]))
batches = st.lists(st.dictionaries(keys, st.none() | values, min_size=1, max_size=12), max_size=12)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(batches, st.sampled_from([1, 2, 7, 1 << 40]))
def test_it_is_a_dict_however_many_hashes_collide(history: list[dict[Key, Value | None]], spread: int) -> None:
    table, model = StateTable(SPEC), dict[Key, Value | None]()
    asked: list[Key] = [(k, n) for k in (None, *"abcdefgh") for n in (None, 0, 1, 2)]
    for entries in history:
        put(table, entries, spread)
        model.update(entries)
        assert get(table, asked, spread) == [model.get(key) for key in asked]
        check_runs(table, spread)


def check_runs(table: StateTable, spread: int) -> None:
    """Sorted by hash, each key once, no tombstones in the oldest run, sizes falling geometrically."""
    for number, run in enumerate(table.runs):
        stored_hashes = run.table.column(HASH).to_numpy()
        assert (np.diff(stored_hashes) >= 0).all()
        stored = list(zip(*(run.table.column(n).to_pylist() for n in KEYS.names), strict=True))
        assert len(set(stored)) == len(stored)
        assert stored_hashes.tolist() == [small_hash(k, spread) for k in stored]
        if number == 0:
            assert not any(run.table.column(TOMBSTONE).to_pylist())
        else:
            assert run.rows * MERGE_FACTOR < table.runs[number - 1].rows


def test_nothing_is_found_in_an_empty_table() -> None:
    table = StateTable(SPEC)
    assert get(table, [("a", 1)]) == [None]
    assert get(table, []) == []
    assert table.rows == 0


def test_writing_nothing_adds_no_run() -> None:
    table = StateTable(SPEC)
    put(table, {})
    assert table.runs == []


def test_a_table_whose_keys_are_all_deleted_is_empty() -> None:
    table = StateTable(SPEC)
    put(table, {("a", 1): (1, "x"), ("b", 1): (1, "x")})
    put(table, {("a", 1): None, ("b", 1): None})
    assert table.rows == 0
    assert table.runs == []


def test_a_small_change_leaves_the_big_run_alone() -> None:
    table = StateTable(SPEC)
    put(table, {("a", n): (n, "x") for n in range(100)})
    big = table.runs[0]
    put(table, {("a", 5): None, ("a", 200): (1, "y")})
    assert [run.rows for run in table.runs] == [100, 2]
    assert table.runs[0] is big
    assert get(table, [("a", 5), ("a", 6), ("a", 200)]) == [None, (6, "x"), (1, "y")]


def test_runs_stay_few_and_keys_are_rewritten_seldom() -> None:
    table, written = StateTable(SPEC), 0
    for n in range(400):
        before = {id(run) for run in table.runs}
        put(table, {("k", n): (n, "x")})
        written += sum(run.rows for run in table.runs if id(run) not in before)
    assert len(table.runs) <= 6
    assert written < 400 * 14, "a key is written O(log n) times"
    assert get(table, [("k", n) for n in range(400)]) == [(n, "x") for n in range(400)]


def test_a_version_keeps_its_runs_while_the_next_is_written() -> None:
    table = StateTable(SPEC)
    put(table, {("a", 1): (1, "x")})
    before = StateTable(SPEC, table.runs)
    put(table, {("a", 1): (2, "y")})
    assert get(before, [("a", 1)]) == [(1, "x")]
    assert get(table, [("a", 1)]) == [(2, "y")]


@pytest.mark.parametrize("dtype", [pa.float64(), pa.float32()])
def test_nan_is_a_key_like_any_other_even_where_hashes_collide(dtype: pa.DataType) -> None:
    spec = TableSpec("t", pa.schema([("k", dtype)]), pa.schema([("v", pa.int64())]))
    table = StateTable(spec)
    for value in (1, 2):
        key = pa.array([1.0, float("nan"), 2.0], dtype)
        table.write(np.zeros(3, np.int64), [key], [pa.array([value] * 3)], np.zeros(3, np.bool_))
    found = table.lookup(np.zeros(1, np.int64), [pa.array([float("nan")], dtype)])
    assert found.values.column("v").to_pylist() == [2]
    assert table.rows == 3


PREFIXED = TableSpec("p", pa.schema([("g", pa.string()), ("x", pa.int64())]), pa.schema([("c", pa.int64())]))


def prefixed(group: str, low: int) -> int:
    return (small_hash(group, 5) << 32) | low


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    st.lists(
        st.dictionaries(
            st.tuples(st.sampled_from("abcdef"), st.integers(0, 5)), st.none() | st.integers(1, 9), min_size=1
        ),
        min_size=1,
        max_size=8,
    ),
    st.sets(st.sampled_from("abcdef"), min_size=1),
)
def test_a_prefix_finds_all_rows_of_its_groups(
    history: list[dict[tuple[str, int], int | None]], wanted: set[str]
) -> None:
    table, model = StateTable(PREFIXED), dict[tuple[str, int], int | None]()
    for entries in history:
        model.update(entries)
        # the lower half of the hash collides on purpose
        at = np.array([prefixed(g, x % 3) for g, x in entries], dtype=np.int64)
        columns = [pa.array([g for g, _ in entries]), pa.array([x for _, x in entries], pa.int64())]
        gone = np.array([c is None for c in entries.values()], dtype=np.bool_)
        table.write(at, columns, [pa.array(list(entries.values()), pa.int64())], gone)
    prefixes = np.unique([small_hash(g, 5) for g in wanted]).astype(np.int64)
    rows = [row for batch in table.scan_prefix(prefixes) for row in batch.to_pylist()]
    found = {(row["g"], row["x"]): row["c"] for row in rows}
    assert len(found) == len(rows)
    assert found == {k: c for k, c in model.items() if c is not None and small_hash(k[0], 5) in prefixes}


def test_runs_can_be_handed_in() -> None:
    schema = SPEC.run_schema
    rows = pa.table([[0], [False], ["a"], [1], [7], ["x"]], names=schema.names).cast(schema)
    file = RunFile("stored", 1, 0, "")
    table = StateTable(SPEC, [Run(schema, rows.to_batches(), file)])
    assert table.rows == 1
    assert table.runs[0].file is file
