"""Which table is compacted next, without Spark: none waits for good, and what nobody will name is removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.errors import WorkerLostError
from headwater.execution.compaction import Compactor
from headwater.protocol.records import StateFiles
from headwater.protocol.storage import Storage, digest_of, open_storage
from headwater.state.compaction import CompactionLimits
from headwater.state.manifest import RunFile
from headwater.state.table import TableSpec

SPECS = [TableSpec(name, pa.schema([]), pa.schema([])) for name in ("busy", "quiet")]
LIMITS = CompactionLimits(inline_rows=10, most_runs=8)
BATCHES = 60


class Recording(Compactor):
    """Merges in no time: which table's turn it was is in `order`. Those of `failing` lose their worker."""

    def __init__(self, storage: Storage, failing: tuple[str, ...] = ()) -> None:
        super().__init__("totals", None, storage, lambda _: None, LIMITS)  # type: ignore[arg-type]
        self.specs = {"aggregate-1": SPECS}
        self.order: list[str] = []
        self.failing = failing

    def _execute(self, wanted: Any) -> RunFile:
        self.order.append(wanted.spec.name)
        if wanted.spec.name in self.failing:
            self._storage.staging(wanted.target).write_bytes(b"a part")
            raise WorkerLostError("It was killed.")
        path = self._storage.staging(wanted.target)
        path.write_bytes(b"merged")
        self._storage.publish(wanted.target, path)
        return RunFile(wanted.target, 12, 6, digest_of(b"merged"))


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path / "checkpoint"))


def runs_after(compactor: Recording, written: dict[str, int]) -> list[dict[str, int]]:
    """How many runs the tables have after each batch; `written` says how many a batch adds to each."""
    tables: dict[str, tuple[RunFile, ...]] = dict.fromkeys(written, ())
    found = []
    for batch in range(BATCHES):
        for name, count in written.items():
            tables[name] += tuple(RunFile(f"state/{name}-{batch}-{n}", 12, 100, "") for n in range(count))
        state: StateFiles = compactor.apply({"aggregate-1": {0: tables}})
        tables = {name: tuple(runs) for name, runs in state["aggregate-1"][0].items()}
        compactor.plan(state)
        found.append({name: len(runs) for name, runs in tables.items()})
    return found


def test_a_busy_table_does_not_keep_others_waiting(storage: Storage) -> None:
    """Of a table that stood behind a busy one, no runs were merged, and batches did not wait for it either."""
    found = runs_after(Recording(storage), {"busy": 4, "quiet": 1})
    assert max(runs["quiet"] for runs in found) <= LIMITS.most_runs + 2
    assert max(runs["busy"] for runs in found) <= 2 * LIMITS.most_runs


def test_a_table_that_fails_does_not_keep_others_waiting(storage: Storage) -> None:
    compactor = Recording(storage, failing=("busy",))
    found = runs_after(compactor, {"busy": 1, "quiet": 1})
    assert max(runs["quiet"] for runs in found) <= 2 * LIMITS.most_runs
    assert found[-1]["busy"] == BATCHES
    assert 3 <= compactor.order.count("busy") <= 7, "tried again, and more and more seldom"


def test_what_a_lost_worker_has_written_is_removed(storage: Storage) -> None:
    """Some gigabytes at each try, on a disk that may be full because of them."""
    runs_after(Recording(storage, failing=("busy", "quiet")), {"busy": 1, "quiet": 1})
    assert len(storage.names("state/")) <= 1


def test_what_comes_too_late_for_any_commit_is_removed(storage: Storage) -> None:
    compactor = Recording(storage)
    compactor.plan({"aggregate-1": {0: {"busy": tuple(RunFile(f"state/{n}", 12, 100, "") for n in range(4))}}})
    compactor.wait()
    assert len(storage.names("state/")) == 1
    compactor.close()
    assert storage.names("state/") == []
