"""What happens to the state beside batches: compactions, by the real `Compactor`, and rescaling, by the real
`rescale_checkpoint`. Only the work on the files is simulated: runs are JSON here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from simulated_job import OPERATOR, TABLE, Opened, partition_of_key, read_runs, store_run, without_tombstones
from simulated_world import Crashed, Process, World

from headwater.errors import WorkerLostError
from headwater.execution import compaction, rescale
from headwater.execution.compaction import Compactor
from headwater.protocol.records import RunFile
from headwater.protocol.storage import Storage
from headwater.state.compaction import CompactionLimits
from headwater.state.table import TableSpec

LIMITS = CompactionLimits(most_runs=4)
SPEC = TableSpec(TABLE, pa.schema([]), pa.schema([]))


@dataclass
class Work:
    """Stands for the thread of a compaction: its steps happen when the world lets them."""

    target: Callable[[Any], None]
    args: tuple[Any]
    name: str
    daemon: bool
    ended: bool = False
    steps: Iterator[None] = field(init=False)

    def start(self) -> None:
        compactor: SimulatedCompactor = self.target.__self__  # type: ignore[attr-defined]
        process = Process(f"compaction of {compactor.process.name}", local=compactor.process.local, driver=False)
        self.steps = self._steps(compactor, compactor.open_for(process))
        compactor.world.zombies.append((process, self.steps))

    def _steps(self, compactor: SimulatedCompactor, opened: Opened) -> Iterator[None]:
        yield
        compactor.opened = opened
        try:
            self.target(*self.args)
        finally:
            self.ended = True

    def is_alive(self) -> bool:
        return not self.ended

    def join(self) -> None:
        for _ in self.steps:
            pass


class SimulatedCompactor(Compactor):
    """The real one of a driver, which has no Spark."""

    def __init__(self, world: World, process: Process, storage: Storage, open_for: Callable[[Process], Opened]) -> None:
        super().__init__("job", None, storage, lambda _: None, LIMITS)  # type: ignore[arg-type]
        self.specs = {OPERATOR: [SPEC]}
        self.world = world
        self.process = process
        self.open_for = open_for
        self.opened: Opened

    def _execute(self, wanted: Any) -> RunFile:
        try:
            held = read_runs(self.opened, wanted.inputs)
            return store_run(self.opened, wanted.target, without_tombstones(held) if wanted.oldest else held)
        except Crashed:
            raise WorkerLostError("simulated") from None  # of the worker alone: the driver goes on


def rescale_as(opened: Opened, partitions: int, unique: Callable[[], str]) -> None:
    def rescaled(_: Storage, operator: str, old: Sequence[Any], partitions: int) -> Any:
        held = read_runs(opened, [run for tables in old for run in tables.get(TABLE, ())])
        kept = without_tombstones(held)
        new: dict[int, dict[str, tuple[RunFile, ...]]] = {}
        for number in range(partitions):
            mine = {key: value for key, value in kept.items() if partition_of_key(key, partitions) == number}
            name = f"state/{operator}/{number}/rescale-{unique()}-{TABLE}-0.arrow"
            new[number] = {TABLE: (store_run(opened, name, mine),) if mine else ()}
        return new

    with patch.object(rescale, "open_storage", lambda _: opened[0]), patch.object(rescale, "_rescaled", rescaled):
        rescale.rescale_checkpoint("", partitions)


@contextmanager
def background(world: World) -> Iterator[None]:
    """Compactions whose threads are steps of the world, of any two or more neighbours."""

    def some(runs: Sequence[RunFile], _: CompactionLimits) -> slice | None:
        if len(runs) < 2 or world.random() < 0.3:
            return None
        start = world.rng.randrange(len(runs) - 1)
        return slice(start, world.rng.randrange(start + 2, len(runs) + 1))

    threads = SimpleNamespace(Thread=Work)
    with patch.object(compaction, "threading", threads), patch.object(compaction, "plan_compaction", some):
        yield
