"""A job small enough to be computed by hand: totals per key, from two source partitions, in two state partitions.

Its executor does what Spark does to it: tasks fail and are tried again, run twice, and go on after they were given up.
Its sinks are an upsert topic that may get rows twice, and one with transactions that carry the committed batch id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from simulated_storage import SimulatedDisk, SimulatedObjects
from simulated_world import Process, World

from headwater.errors import MissingFileError, StorageUnavailableError
from headwater.protocol import batch_ids
from headwater.protocol.batch_ids import BatchId
from headwater.protocol.batches import BatchOutcome
from headwater.protocol.records import Commit, Intent, RunFile, StateFiles, state_name
from headwater.protocol.storage import Storage, digest_of

KEYS = 5
TASKS = 2
"""State partitions of a new job; a rescale makes them one, two or three."""
MOST_TASKS = 3
OPERATOR, TABLE = "totals", "t"
MERGED = 0.3

ODD = "!"
"""Behind a key: a second row of the state, which is there while the total is odd, and else has a tombstone."""

Message = tuple[str, int, int]  # key, total, processing time
Run = dict[str, int | None]


class SinkError(Exception):
    """The sink could not be reached, or its answer was lost."""


class Fenced(SinkError):
    """Somebody else has opened the same transactional id."""


def row(partition: int, offset: int) -> tuple[int, int]:
    """What the source holds: a key and a value."""
    return (partition * 3 + offset * 7) % KEYS, 1 + (partition * 3 + offset) % 4


def event_time(partition: int, offset: int) -> int:
    """Of a row, which is also what its watermark is."""
    return 10 * offset + (partition * 3 + offset * 17) % 31


def places_of(intent: Intent) -> Iterator[tuple[int, int]]:
    for tasks in intent.splits:
        for splits in tasks:
            for partition, start, end in splits:
                yield from ((partition, offset) for offset in range(start, end))


def rows_of(intent: Intent) -> Iterator[tuple[int, int]]:
    yield from (row(*place) for place in places_of(intent))


def watermarks_after(before: list[dict[str, int]], intent: Intent) -> list[dict[str, int]]:
    """Of the source's partitions, as tasks would report them."""
    (after,) = ({**known} for known in before or [{}])
    for partition, offset in places_of(intent):
        found = event_time(partition, offset)
        after[str(partition)] = max(found, after.get(str(partition), found))
    return [after] if after else []


def tasks_of(intent: Intent) -> int:
    return int(intent.route["partitions"])


def partition_of_key(key: str, partitions: int) -> int:
    return int(key.rstrip(ODD)) % partitions


def step_totals(before: Mapping[str, int], intent: Intent, task: int) -> tuple[dict[str, int], list[Message]]:
    """The keys of a state partition that change, and what is sent. A batch in which time moved says so."""
    changed: dict[str, int] = {}
    for key, value in rows_of(intent):
        if key % tasks_of(intent) == task:
            changed[str(key)] = changed.get(str(key), before.get(str(key), 0)) + value
    messages = [(key, total, intent.time) for key, total in sorted(changed.items())]
    (before, now), *_ = intent.watermarks
    if task == 0 and now is not None and (before != now or intent.start == intent.end):
        messages.append(("tick", now, intent.time))
    return changed, messages


def rows_after(changed: Mapping[str, int]) -> Run:
    """What changes in the state with these totals."""
    return {**changed, **{f"{key}{ODD}": 1 if total % 2 else None for key, total in changed.items()}}


def without_tombstones(held: Mapping[str, int | None]) -> dict[str, int]:
    return {key: value for key, value in held.items() if value is not None}


class Sink(Protocol):
    def write(self, process: Process, task: int, batch: BatchId, messages: list[Message]) -> Iterator[None]:
        """Yields where it can be interrupted for a while."""
        ...

    def committed(self) -> list[BatchId]: ...


@dataclass
class UpsertSink:
    """At least once: what is sent twice is there twice."""

    world: World
    log: list[tuple[int, Message]] = field(default_factory=list)

    def write(self, process: Process, task: int, batch: BatchId, messages: list[Message]) -> Iterator[None]:
        world = self.world
        for message in messages:
            world.step(process, "send")
            world.late_writes |= process is not world.claimant
            if world.fault(world.profile.sink_error):
                if world.random() < 0.5:
                    self.log.append((batch.number, message))
                raise SinkError("simulated")
            self.log.append((batch.number, message))
            yield

    def committed(self) -> list[BatchId]:
        return []


@dataclass
class Transactions:
    """What the broker knows of one transactional id."""

    epoch: int = 0
    batch: BatchId | None = None
    log: list[tuple[int, Message]] = field(default_factory=list)


@dataclass
class ExactlyOnceSink:
    world: World
    writers: list[Transactions] = field(default_factory=lambda: [Transactions() for _ in range(MOST_TASKS)])

    def write(self, process: Process, task: int, batch: BatchId, messages: list[Message]) -> Iterator[None]:
        """1. Open, which fences all others. 2. Is it written already? 3. Rows and batch id appear together."""
        if not messages:
            return
        world, writer = self.world, self.writers[task]
        world.step(process, "open")
        writer.epoch += 1  # 1
        epoch = writer.epoch
        yield
        if batch_ids.is_written(writer.batch, batch):  # 2
            return
        world.step(process, "send")
        yield
        world.step(process, "commit transaction")
        failed = world.fault(world.profile.sink_error)
        if writer.epoch != epoch:
            raise Fenced("simulated")
        if not failed or world.random() < 0.5:
            writer.batch = batch  # 3
            writer.log += [(batch.number, message) for message in messages]
        if failed:
            raise SinkError("simulated")

    def committed(self) -> list[BatchId]:
        return [writer.batch for writer in self.writers if writer.batch is not None]


@dataclass
class Wrong:
    """What mutations make the executor do."""

    retry_sees_failed_state: bool = False
    missing_is_empty: bool = False
    ends_early: bool = False
    left_state: StateFiles = field(default_factory=dict)


Opened = tuple[Storage, SimulatedDisk | SimulatedObjects]
"""A storage, and what is below its retries, which takes the content of staging paths."""


def read_runs(opened: Opened, runs: Sequence[RunFile]) -> Run:
    """The newest of each key, tombstones included."""
    held: Run = {}
    for run in runs:
        opened[0].local(run.name, run.bytes, run.digest)
        held.update(json.loads(opened[0].read(run.name)))
    return held


def store_run(opened: Opened, name: str, rows: Run | dict[str, int]) -> RunFile:
    content = json.dumps(rows, sort_keys=True).encode()
    path = opened[0].staging(name)
    opened[1].stage(path, content)
    opened[0].publish(name, path)
    return RunFile(name, len(rows), len(content), digest_of(content))


@dataclass
class Job:
    """The executor of one process. Tasks of its attempts that outlive it open the storage for themselves."""

    world: World
    process: Process
    opened: Opened
    open_for: Callable[[Process], Opened]
    sink: Sink
    wrong: Wrong
    compacted: Callable[[StateFiles], StateFiles]
    """The state with what a compaction has made of it."""

    def execute(self, intent: Intent, committed: Commit, attempt: str) -> BatchOutcome:
        base = committed.state
        if self.wrong.retry_sees_failed_state and self.wrong.left_state:
            base = self.wrong.left_state
        reported: dict[int, dict[str, tuple[RunFile, ...]]] = {}
        try:
            for task in range(tasks_of(intent)):
                reported[task] = self._reported(intent, base, attempt, task)
        except BaseException:
            self.wrong.left_state = {OPERATOR: {**base.get(OPERATOR, {}), **reported}}
            self._leave_behind(intent, base, attempt)
            raise
        self.wrong.left_state = {}
        state = self.compacted({OPERATOR: reported})
        return BatchOutcome(state, {}, watermarks_after(committed.watermarks, intent))

    def _reported(self, intent: Intent, base: StateFiles, attempt: str, task: int) -> dict[str, tuple[RunFile, ...]]:
        """What Spark takes as the result of a task: of its first success, although there may be more."""
        world, profile = self.world, self.world.profile
        copies = 2 if world.fault(profile.duplicate) else 1
        results = [self._tried(intent, base, attempt, task) for _ in range(copies)]
        return results[world.rng.randrange(copies) if copies > 1 else 0]

    def _tried(self, intent: Intent, base: StateFiles, attempt: str, task: int) -> dict[str, tuple[RunFile, ...]]:
        """Spark tries a task again within the same attempt, half of the time here."""
        try:
            return self._run(intent, base, attempt, task)
        except (SinkError, StorageUnavailableError):
            if self.world.random() < 0.5:
                raise
            return self._run(intent, base, attempt, task)

    def _run(self, intent: Intent, base: StateFiles, attempt: str, task: int) -> dict[str, tuple[RunFile, ...]]:
        runs: list[RunFile] = []
        for _ in self._task(self.process, intent, base, f"{attempt}-{self.world.unique()}", task, runs):
            pass
        if self.world.fault(self.world.profile.task_error):
            raise SinkError("the worker is lost")
        return {TABLE: tuple(runs)}

    def _task(
        self, process: Process, intent: Intent, base: StateFiles, attempt: str, task: int, runs: list[RunFile]
    ) -> Iterator[None]:
        """A generator, so that it can be left where it is and go on later. `runs` is what it reports."""
        before = base.get(OPERATOR, {}).get(task, {}).get(TABLE, ())
        totals = self._load(before)
        yield
        read = intent
        if self.wrong.ends_early and self.world.random() < 0.2:
            read = Intent.from_json({**intent.to_json(), "splits": intent.splits[:-1]})
        changed, messages = step_totals(totals, read, task)
        runs[:] = before
        if changed:
            # As a step of an operator does: new rows are a run, and are merged with some of the newest at times.
            first = self.world.rng.randrange(len(before)) if before and self.world.random() < MERGED else len(before)
            held = {**read_runs(self.opened, before[first:]), **rows_after(changed)}
            name = state_name(OPERATOR, task, attempt, "t-0")
            stored = store_run(self.opened, name, held if first else without_tombstones(held))
            runs[:] = [*before[:first], stored]
        yield
        yield from self.sink.write(process, task, intent.id, messages)

    def _load(self, runs: tuple[RunFile, ...]) -> dict[str, int]:
        held: Run = {}
        for run in runs:
            try:
                held.update(read_runs(self.opened, [run]))
            except MissingFileError:
                if not self.wrong.missing_is_empty:
                    raise
        return without_tombstones(held)

    def _leave_behind(self, intent: Intent, base: StateFiles, attempt: str) -> None:
        """Some tasks of a failed attempt go on. They are on other hosts, unless the storage is a local disk."""
        world = self.world
        for task in range(0 if self.process.lost_machine else tasks_of(intent)):
            if world.profile.zombie and world.random() < world.profile.zombie:
                unique = world.unique()
                process = Process(f"zombie-{unique[-3:]}", local=self.process.local, driver=False)
                zombie = replace(self, process=process, opened=self.open_for(process))
                world.zombies.append((process, zombie._task(process, intent, base, f"{attempt}-{unique}", task, [])))
