"""What a small batch asks of an object store, counted between the client and a real server."""

from __future__ import annotations

import os
import re
import socket
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.changelog.kinds import HASH, INSERT, KIND, KIND_TYPE
from headwater.changelog.normalize import NormalizeOperator
from headwater.changelog.operator import Time
from headwater.execution.worker import OperatorTask, TaskBatch
from headwater.protocol.batches import Batches, BatchOutcome
from headwater.protocol.checkpoint import Checkpoint
from headwater.protocol.records import Commit, Genesis, Intent
from headwater.protocol.storage import open_storage
from object_server import ObjectServer

PARTITIONS = 4
OPERATOR = "normalize-1"
_REQUEST = re.compile(rb"(GET|HEAD|PUT|POST|DELETE) /")


@dataclass
class Counting:
    """Hands everything on to a server. A request begins where the client sends again: it waits for each answer."""

    server: int
    requests: Counter[str] = field(default_factory=Counter)
    connections: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self._start(self._accept)

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def counted(self) -> tuple[dict[str, int], int]:
        """Requests and new connections since the last call."""
        found = dict(self.requests), self.connections
        self.requests.clear()
        self.connections = 0
        return found

    def close(self) -> None:
        for each in self._sockets:
            _end(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            server = socket.create_connection(("127.0.0.1", self.server))
            self._sockets += [client, server]
            self._start(self._forward, client, server)
            self._start(self._forward, server, client)

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                if found := _REQUEST.match(data):
                    self.requests[found[1].decode()] += 1
                target.sendall(data)
        except OSError:
            pass
        _end(target)

    @staticmethod
    def _start(work: Any, *arguments: Any) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()


def _end(ended: socket.socket) -> None:
    """A plain close would not wake the thread that waits for it."""
    with suppress(OSError):
        ended.shutdown(socket.SHUT_RDWR)
    ended.close()


class Reported(dict[tuple[str, ...], Any]):
    """In place of Spark's accumulator."""

    add = dict.update


class Steps:
    """Executes a batch as the tasks of one worker do: one step for each state partition."""

    def __init__(self, location: str) -> None:
        keys, values = pa.schema([("k", pa.int64())]), pa.schema([("v", pa.int64())])
        operator = NormalizeOperator(keys, values, before=True)
        self._reports: Any = Reported()
        self._task = OperatorTask(OPERATOR, operator, PARTITIONS, location, self._reports)

    def execute(self, intent: Intent, committed: Commit, attempt: str) -> BatchOutcome:
        before = {
            operator: {
                str(p): {t: [run.to_json() for run in runs] for t, runs in tables.items()} for p, tables in of.items()
            }
            for operator, of in committed.state.items()
        }
        batch = TaskBatch(intent.batch, attempt, intent.digest, [], 0, before)
        state: dict[int, dict[str, tuple[Any, ...]]] = {}
        for partition in range(PARTITIONS):
            self._task._step(batch, Time(batch=intent.batch), partition, (_rows(intent.batch),))
            saved = self._reports[attempt, "state", OPERATOR, str(partition)]
            state[partition] = {table: tuple(runs) for table, runs in saved.items()}
        return BatchOutcome({OPERATOR: state})


def _rows(batch: int) -> pa.Table:
    keys = pa.array(range(20 * batch, 20 * batch + 20), pa.int64())
    return pa.table({HASH: keys, "k": keys, "v": keys, KIND: pa.array([INSERT] * 20, KIND_TYPE)})


@pytest.fixture
def counting(object_server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # copies of this host
    made = Counting(object_server.port)
    yield made
    made.close()


def _fail(error: Exception, failures: int) -> None:
    raise error


@pytest.mark.long
def test_a_batch_puts_its_files_and_asks_nothing(counting: Counting) -> None:
    """An intent, a file for each state partition, a commit; at most two requests more remove what they replace."""
    location = ObjectServer("", Path(), counting.port).location(uuid.uuid4().hex)
    checkpoint = Checkpoint(open_storage(location))
    batches = Batches(checkpoint, Steps(location), _fail)
    checkpoint.begin(Genesis(uuid.uuid4().hex, "plan", PARTITIONS, [{"0": 0}], [None]))
    batches.claim()
    for number in range(1, 9):
        if number == 4:  # from here on there is something to remove
            counting.counted()
            old = Path(tempfile.gettempdir()) / f"headwater-cache-{os.geteuid()}" / "old"
            old.touch()
            os.utime(old, (1, 1))
        batches.run(Intent(number, [{"0": number - 1}], [{"0": number}], [None], [], {}, 0))
    requests, connections = counting.counted()
    assert requests.pop("PUT") == 5 * (PARTITIONS + 2)
    assert requests.pop("POST") <= 5 * 2
    assert requests == {}
    # With one client for all batches 0 or 1, measured; 20 with one for each state partition.
    assert connections <= 2
    assert old.exists(), "copies that nobody uses are not looked for in every step"
