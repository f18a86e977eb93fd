"""Runs as files: what a commit names is opened, and nothing else; what is not named any more is closed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from state_model import DirectoryStorage

from headwater.errors import IncompatibleCheckpointError, StorageUnavailableError
from headwater.state.files import MappedRuns, open_run, open_state, save_state, spec_of
from headwater.state.manifest import PartitionFiles, RunFile
from headwater.state.table import StateTable, TableSpec

SPEC = TableSpec("rows", pa.schema([("k", pa.int64())]), pa.schema([("v", pa.int64())]))


def spread(keys: np.ndarray) -> np.ndarray:
    """Hashes over the whole range."""
    return (keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)


def put(table: StateTable, entries: dict[int, int | None]) -> None:
    keys = np.array(list(entries), dtype=np.int64)
    gone = np.array([v is None for v in entries.values()], dtype=np.bool_)
    table.write(spread(keys), [pa.array(keys)], [pa.array(list(entries.values()), pa.int64())], gone)


def get(table: StateTable, keys: range) -> dict[int, int]:
    asked = np.array(keys, dtype=np.int64)
    found = table.lookup(spread(asked), [pa.array(asked)])
    return {k: v for k, v, hit in zip(keys, found.values.column("v").to_pylist(), found.hit, strict=True) if hit}


def test_state_is_what_the_files_say(tmp_path: Path) -> None:
    dice, model, storage = Random(1), dict[int, int | None](), DirectoryStorage(tmp_path)
    files: PartitionFiles = {}
    for batch in range(60):
        state = open_state(storage, [SPEC], files)
        changes = {dice.randrange(90): dice.choice([None, dice.randrange(9)]) for _ in range(dice.randrange(1, 20))}
        put(state["rows"], changes)
        model.update(changes)
        files = save_state(storage, state, f"state/op/0/{batch}-attempt-1")
        opened = open_state(DirectoryStorage(tmp_path), [SPEC], files)["rows"]
        assert get(opened, range(90)) == {k: v for k, v in model.items() if v is not None}
        assert all(run.file for run in opened.runs)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    [file] = _one_file(tmp_path)["rows"]
    (tmp_path / file.name).unlink()
    with pytest.raises(IncompatibleCheckpointError, match=f"'{file.name}' .* missing"):
        open_state(DirectoryStorage(tmp_path), [SPEC], {"rows": [file]})


class Vanishing(DirectoryStorage):
    """Another process removes the local copy of a file after it was asked for, a few times."""

    def __init__(self, path: Path, times: int) -> None:
        super().__init__(path)
        self.times = times

    def local(self, name: str, size: int, digest: str) -> Path:
        found = super().local(name, size, digest)
        self.times -= 1
        return found if self.times < 0 else found.with_name("removed")


def test_a_copy_that_is_removed_before_it_is_mapped_is_fetched_again(tmp_path: Path) -> None:
    [file] = _one_file(tmp_path)["rows"]
    assert open_run(Vanishing(tmp_path, times=2), SPEC, file).file == file
    with pytest.raises(IncompatibleCheckpointError, match="missing"):
        open_run(Vanishing(tmp_path, times=9), SPEC, file)


def test_a_file_of_another_size_is_an_error_that_names_it(tmp_path: Path) -> None:
    [file] = _one_file(tmp_path)["rows"]
    content = (tmp_path / file.name).read_bytes()
    (tmp_path / file.name).write_bytes(content[:-8])
    with pytest.raises(IncompatibleCheckpointError, match=f"'{file.name}' .* {file.bytes - 8} bytes instead of"):
        open_state(DirectoryStorage(tmp_path), [SPEC], {"rows": [file]})
    (tmp_path / file.name).write_bytes(b"x" * file.bytes)
    with pytest.raises(IncompatibleCheckpointError, match="no Arrow file"):
        open_state(DirectoryStorage(tmp_path), [SPEC], {"rows": [file]})


def test_a_file_of_another_table_is_an_error_that_names_it(tmp_path: Path) -> None:
    [file] = _one_file(tmp_path)["rows"]
    other = TableSpec("rows", SPEC.keys, pa.schema([("v", pa.string())]))
    with pytest.raises(IncompatibleCheckpointError, match="other columns"):
        open_state(DirectoryStorage(tmp_path), [other], {"rows": [file]})
    wrong = RunFile(file.name, 7, file.bytes, file.digest)
    with pytest.raises(IncompatibleCheckpointError, match="not 7 rows"):
        open_state(DirectoryStorage(tmp_path), [SPEC], {"rows": [wrong]})


def _two_rows() -> dict[str, StateTable]:
    state = {"rows": StateTable(SPEC)}
    put(state["rows"], {1: 1, 2: 2})
    return state


def _one_file(root: Path, prefix: str = "state/op/0/1-a-1") -> dict[str, list[RunFile]]:
    return save_state(DirectoryStorage(root), _two_rows(), prefix)


def mapped_files(root: Path) -> list[str]:
    with Path("/proc/self/maps").open() as maps:
        return [line.split(maxsplit=5)[5].strip() for line in maps if str(root) in line]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux lists the maps of a process")
def test_what_is_not_named_any_more_is_unmapped(tmp_path: Path) -> None:
    """500 small batches over four partitions, whose old files are removed as the driver does."""
    dice, storage, most = Random(2), DirectoryStorage(tmp_path), 0
    files: list[PartitionFiles] = [{}] * 4
    for batch in range(500):
        number = batch % 4
        state = open_state(DirectoryStorage(tmp_path, storage.forgotten), [SPEC], files[number])
        put(state["rows"], {dice.randrange(2_000): batch for _ in range(20)})
        files[number] = save_state(storage, state, f"state/op/{number}/{batch}-a-1")
        del state
        named = {file.name for of in files for file in of.get("rows", [])}
        for path in tmp_path.rglob("*.arrow"):
            if str(path.relative_to(tmp_path)) not in named:
                path.unlink()
        most = max(most, len(mapped_files(tmp_path)))
    assert most <= 4 * 12
    for of in files:
        open_state(storage, [SPEC], of)
    assert sorted(mapped_files(tmp_path)) == sorted(str(tmp_path / name) for name in named)
    assert not named & set(storage.forgotten)
    assert len(set(storage.forgotten)) > 300, "the storage may drop its local copies"


def test_maps_that_nobody_asks_for_are_closed(tmp_path: Path) -> None:
    storage, maps = DirectoryStorage(tmp_path), MappedRuns(limit=3, idle=3600)
    files = [_one_file(tmp_path, f"state/op/{number}/1-a-1")["rows"][0] for number in range(6)]
    for file in files:
        maps.get(storage, SPEC, file)
        maps.release(storage, [file.name])
    assert len(maps) == 3
    assert storage.forgotten == [file.name for file in files[:3]]
    impatient = MappedRuns(idle=0)
    for file in files[:2]:
        impatient.get(storage, SPEC, file)
    impatient.release(storage, [files[1].name])
    assert len(impatient) == 1
    assert impatient.get(storage, SPEC, files[1]).file == files[1]


def test_a_map_is_of_the_bytes_that_the_commit_names(tmp_path: Path) -> None:
    """Not of those that the name stood for before a checkpoint was restored from a copy."""
    storage, maps = DirectoryStorage(tmp_path), MappedRuns()
    [before] = _one_file(tmp_path)["rows"]
    maps.get(storage, SPEC, before)
    (tmp_path / before.name).unlink()
    state = {"rows": StateTable(SPEC)}
    put(state["rows"], {1: 7})
    [after] = save_state(storage, state, "state/op/0/1-a-1")["rows"]
    assert after.name == before.name
    assert maps.get(storage, SPEC, after).table.column("v").to_pylist() == [7]


def test_checkpoints_do_not_close_each_others_files(tmp_path: Path) -> None:
    maps = MappedRuns()
    storages = [DirectoryStorage(tmp_path / name) for name in "ab"]
    files = [_one_file(storage.root)["rows"][0] for storage in storages]
    for storage, file in zip(storages, files, strict=True):
        maps.get(storage, SPEC, file)
        maps.release(storage, [file.name])
    assert len(maps) == 2


class FullDisk(DirectoryStorage):
    """Nothing more can be written where files are staged."""

    def staging(self, name: str) -> Path:
        path = super().staging(name)
        path.symlink_to("/dev/full")
        return path


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_is_waited_for_and_nothing_is_left_on_it(tmp_path: Path) -> None:
    """A trace of Python ended the job; what was written of the file stayed, so that the disk stayed full."""
    tmp_path.joinpath("state").mkdir()
    with pytest.raises(StorageUnavailableError, match=r"1-a-1-rows-0.arrow' could not be written\.") as full:
        save_state(FullDisk(tmp_path), _two_rows(), "state/op/0/1-a-1")
    assert full.value.detail == "No space left on device"
    assert [path for path in tmp_path.rglob("*") if path.is_symlink()] == []


def test_what_is_not_published_is_removed(tmp_path: Path) -> None:
    class Away(DirectoryStorage):
        def publish(self, name: str, path: Path) -> None:
            raise StorageUnavailableError("simulated")

    with pytest.raises(StorageUnavailableError, match="simulated"):
        save_state(Away(tmp_path), _two_rows(), "state/op/0/1-a-1")
    assert list(tmp_path.iterdir()) == []


def test_changed_bytes_are_never_a_trace(tmp_path: Path) -> None:
    """Arrow raises many kinds of errors about them. (Values that were changed are what `verify` looks for.)"""
    [file] = _one_file(tmp_path)["rows"]
    storage, path, dice = DirectoryStorage(tmp_path), tmp_path / file.name, Random(3)
    content, facts = path.read_bytes(), list[str]()
    for opening in (lambda: open_run(storage, SPEC, file), lambda: spec_of(storage, "rows", file)):
        for _ in range(300):
            changed = bytearray(content)
            changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
            path.write_bytes(changed)
            try:
                opening()
            except IncompatibleCheckpointError as error:
                facts.append(error.fact)
    assert len(facts) > 60
    assert all(f"'{file.name}' of the checkpoint cannot be used: it " in fact for fact in facts)
