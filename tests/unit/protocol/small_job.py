"""A job on real storage: totals per key, and a sink with real transactions (SQLite) that carry the committed batch id.

As a program it is one driver: `small_job.py LOCATION SINK ROWS` drains the source and prints how it ended.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from headwater.errors import HeadwaterError, StorageRefusedError, StorageUnavailableError
from headwater.protocol.batch_ids import BatchId, check_start, is_written
from headwater.protocol.batches import Batches, BatchOutcome
from headwater.protocol.checkpoint import Checkpoint
from headwater.protocol.records import Commit, Genesis, Intent, RunFile, StateFiles, state_name
from headwater.protocol.storage import Storage, file_digest, open_storage

KEYS = 5
MERGED_AT = 4
ROWS_PER_BATCH = 3


@dataclass
class Table:
    """What was written, each row once, in one SQLite file."""

    path: Path

    def __post_init__(self) -> None:
        with self._connected() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS sent (key TEXT, total INTEGER)")
            connection.execute("CREATE TABLE IF NOT EXISTS done (batch TEXT)")

    def write(self, batch: BatchId, totals: dict[str, int]) -> None:
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if not is_written(self._newest(connection), batch):
                connection.executemany("INSERT INTO sent VALUES (?, ?)", sorted(totals.items()))
                connection.execute("INSERT INTO done VALUES (?)", [str(batch)])
            connection.execute("COMMIT")

    def committed(self) -> list[BatchId]:
        with self._connected() as connection:
            newest = self._newest(connection)
        return [newest] if newest else []

    def sent(self) -> list[tuple[str, int]]:
        with self._connected() as connection:
            return list(connection.execute("SELECT key, total FROM sent"))

    def _newest(self, connection: sqlite3.Connection) -> BatchId | None:
        found = [BatchId.parse(text) for (text,) in connection.execute("SELECT batch FROM done")]
        return max(found, key=lambda batch: batch.number, default=None)

    def _connected(self) -> _Closing:
        return _Closing(sqlite3.connect(self.path, timeout=30, isolation_level=None))


class _Closing:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __enter__(self) -> sqlite3.Connection:
        return self.connection

    def __exit__(self, *_: object) -> None:
        self.connection.close()


@dataclass
class Totals:
    """Row n has key n % KEYS and value 1, so the totals are known without computing them."""

    storage: Storage
    sink: Table
    failing: Callable[[str], None] = lambda where: None
    opened: list[str] = field(default_factory=list)

    def execute(self, intent: Intent, committed: Commit, attempt: str) -> BatchOutcome:
        runs = committed.state.get("totals", {}).get(0, {}).get("t", ())
        before = self.load(committed.state)
        changed: dict[str, int] = {}
        for number in range(intent.start[0]["0"], intent.end[0]["0"]):
            key = str(number % KEYS)
            changed[key] = changed.get(key, before.get(key, 0)) + 1
        if changed:
            merged = len(runs) + 1 >= MERGED_AT
            run = self._store({**before, **changed} if merged else changed, attempt)
            runs = (run,) if merged else (*runs, run)
        self.failing("before the sink")
        self.sink.write(intent.id, changed)
        self.failing("after the sink")
        return BatchOutcome({"totals": {0: {"t": runs}}}, counts={"rows in": sum(1 for _ in changed)})

    def load(self, state: StateFiles) -> dict[str, int]:
        totals: dict[str, int] = {}
        for run in state.get("totals", {}).get(0, {}).get("t", ()):
            path = self.storage.local(run.name, run.bytes, run.digest)
            self.opened.append(run.name)
            totals.update(json.loads(path.read_bytes()))
        return totals

    def _store(self, changed: dict[str, int], attempt: str) -> RunFile:
        name = state_name("totals", 0, attempt, f"{uuid.uuid4().hex[:8]}-t-0")
        path = self.storage.staging(name)
        path.write_text(json.dumps(changed), encoding="utf-8")
        size, digest = path.stat().st_size, file_digest(path)
        self.storage.publish(name, path)
        return RunFile(name, len(changed), size, digest)


def on_failure(error: Exception, failures: int) -> None:
    if not isinstance(error, StorageUnavailableError) or isinstance(error, StorageRefusedError) or failures > 3:
        raise error


def genesis(rows: int) -> Genesis:
    return Genesis(uuid.uuid4().hex, "plan", 1, [{"0": 0}], [{"0": rows}])


def next_intent(committed: Commit, rows: int, most: int = ROWS_PER_BATCH) -> Intent:
    start = committed.positions[0]["0"]
    end = min(rows, start + most)
    moment = time.time_ns() // 1_000_000
    return Intent(committed.batch + 1, [{"0": start}], [{"0": end}], [{"0": rows}], [[[["0", start, end]]]], {}, moment)


@dataclass
class Driver:
    """One run of the job in this process."""

    location: str
    sink: Table
    rows: int
    failing: Callable[[str], None] = lambda where: None

    def __post_init__(self) -> None:
        self.storage = open_storage(self.location)
        self.checkpoint = Checkpoint(self.storage)
        self.job = Totals(self.storage, self.sink, self.failing)
        self.batches = Batches(self.checkpoint, self.job, on_failure)

    def start(self) -> Commit:
        if not self.checkpoint.exists():
            self.checkpoint.begin(genesis(self.rows))
        recovered = self.batches.claim()
        self.batches.with_retries(
            lambda: check_start(self.sink.committed(), recovered.committed.id, recovered.pending_id)
        )
        return self.batches.replay()

    def batch(self) -> Commit:
        return self.batches.run(next_intent(self.checkpoint.committed, self.rows))

    def drain(self) -> Commit:
        committed = self.start()
        while committed.positions != [{"0": self.rows}]:
            committed = self.batch()
        self.checkpoint.release()
        return committed


def expected(rows: int) -> dict[str, int]:
    return {str(key): len(range(key, rows, KEYS)) for key in range(min(rows, KEYS))}


def sent_once(sink: Table, rows: int) -> bool:
    """Every total from 1 on was sent at most once per key, in order, up to the last."""
    sent = sink.sent()
    in_order = all(
        [total for key, total in sent if key == k] == sorted({total for key, total in sent if key == k})
        for k in expected(rows)
    )
    return in_order and dict(sent) == expected(rows)


if __name__ == "__main__":
    driver = Driver(sys.argv[1], Table(Path(sys.argv[2])), int(sys.argv[3]))
    try:
        print(f"finished {driver.drain().batch}")  # noqa: T201 - read by the test
    except HeadwaterError as error:
        print(f"{type(error).__name__}: {error}")  # noqa: T201
