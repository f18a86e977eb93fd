"""One schedule per seed: the real protocol, on simulated storage and sinks, with faults at any of its steps.

    python tests/unit/protocol/simulation.py 0 10000        # seeds from, to
    python tests/unit/protocol/simulation.py 4711           # one seed, step by step

After the faults a last run finishes the input undisturbed. Then the state, and what the sink holds, are compared with a
plain computation over the batches that were committed.
"""

from __future__ import annotations

import json
import random
import sys
import time
import traceback
from collections.abc import Iterable
from dataclasses import replace

from simulated_background import SimulatedCompactor, background, rescale_as
from simulated_checks import SOURCE, check_garbage, check_results, entries_of, positions_of, require
from simulated_files import Backend, DiskBackend, ObjectsBackend
from simulated_job import MOST_TASKS, TASKS, ExactlyOnceSink, Job, Opened, SinkError, UpsertSink, Wrong
from simulated_world import Crashed, Process, Profile, World

from headwater.errors import (
    CheckpointTakenError,
    DamagedCheckpointError,
    HeadwaterError,
    IncompatibleCheckpointError,
    StaleCheckpointError,
    StorageRefusedError,
    StorageUnavailableError,
)
from headwater.execution.watermarks import END
from headwater.protocol import batch_ids
from headwater.protocol.batches import Batches
from headwater.protocol.checkpoint import Checkpoint
from headwater.protocol.entries import entry_name
from headwater.protocol.records import Commit, Genesis, Intent
from headwater.protocol.storage_retries import RetryingStorage

CALM = Profile()
MOST_RUNS = 8
RETRIES = 2
Outcome = BaseException | None


def profile_of(rng: random.Random) -> Profile:
    """Each schedule has its own mixture; in many only few kinds of faults happen."""

    def sometimes(*rates: float) -> float:
        return rng.choice(rates) if rng.random() < 0.5 else 0.0

    return Profile(
        crash=sometimes(0.005, 0.02, 0.08),
        machine=rng.choice([0.0, 0.5, 1.0]),
        switch=rng.choice([0.02, 0.1, 0.3]),
        storage_error=sometimes(0.01, 0.05, 0.2),
        outage=rng.choice([0.0, 0.5]),
        sink_error=sometimes(0.05, 0.3),
        task_error=sometimes(0.1),
        duplicate=sometimes(0.1),
        zombie=sometimes(0.5),
        landing=rng.choice([0.01, 0.1]),
        conflict=rng.choice([0.0, 0.5]),
    )


class Schedule:
    """`wrong` is what mutations of the executor change; others patch the protocol before this is made."""

    def __init__(self, seed: int, wrong: Wrong | None = None, traced: bool = False) -> None:
        self.world = World(seed, CALM, 0, traced)
        rng = self.rng = self.world.rng
        self.wrong = replace(wrong or Wrong(), left_state={})
        self.rows = [rng.randrange(1, 7) for _ in range(2)]
        self.kept = rng.randrange(1, 4)
        self.largest = rng.randrange(1, 4)
        self.log: dict[int, bytes] = {}  # entries by number, also those that are removed by now
        self.sink = ExactlyOnceSink(self.world) if rng.random() < 0.6 else UpsertSink(self.world)
        backend = DiskBackend if rng.random() < 0.5 else ObjectsBackend
        self.files: Backend = backend(self.world, self._created)
        self.copy: tuple[dict[str, bytes], dict[int, bytes]] | None = None
        self.copy_at = rng.randrange(1, 12) if rng.random() < 0.3 else 0
        self.drivers = 0

    def run(self) -> None:
        """1. Runs with faults, one after the other or some at a time, until the input is drained.
        2. One undisturbed run must finish.
        3. Whatever was given up long ago happens.
        4. Compare.
        """
        world, rng = self.world, self.rng
        with world.own_ids(), background(world):
            for _ in range(MOST_RUNS):  # 1
                world.faults, world.profile = rng.randrange(1, 4), profile_of(rng)
                drained = self._runs()
                world.profile, world.outage = replace(CALM, landing=world.profile.landing), 0
                self._between_runs()
                if drained:
                    break
            untouched = not (world.zombies or world.delayed)
            self._expect(None, "the last run")  # 2
            while world.zombies or world.delayed:  # 3
                world.land()
        check_results(self.files.content(), self.log, self.sink, world.late_writes, self.rows)  # 4
        if untouched:
            check_garbage(self.files.content(), self.kept)

    def _runs(self) -> bool:
        """Whether the input is drained. A driver that is alone is told nothing of other runs, or of damage."""
        if not self.files.shared or self.rng.random() < 0.6:
            driver = self._driver(rescales=self.rng.random() < 0.3)
            return self._judged(driver, self._outcome(driver), alone=True)
        outcomes: dict[int, Outcome] = {}
        rescaling = self.rng.random() < 0.3
        drivers = [self._driver(rescales=rescaling and not n) for n in range(self.rng.choice([2, 2, 3]))]

        def live(at: int) -> None:
            outcomes[at] = self._outcome(drivers[at])

        self.world.beside([(driver, lambda at=at: live(at)) for at, driver in enumerate(drivers)])  # type: ignore[misc]
        judged = [self._judged(driver, outcomes[at], alone=False) for at, driver in enumerate(drivers)]
        return any(judged)

    def _judged(self, driver: Process, outcome: Outcome, *, alone: bool) -> bool:
        if driver.rescales and type(outcome) is IncompatibleCheckpointError:  # a batch must be finished first
            return False
        if isinstance(outcome, IncompatibleCheckpointError | StaleCheckpointError):
            overtaken = driver.claimed and self.world.claimant is not driver
            if alone or not overtaken or not isinstance(outcome, CheckpointTakenError):
                raise AssertionError(f"{driver.name} ended with {outcome!r}") from outcome
        return outcome is None and not driver.rescales

    def _driver(self, *, rescales: bool = False) -> Process:
        self.drivers += 1
        return Process(f"driver-{self.drivers}", local=not self.files.shared, rescales=rescales)

    def _outcome(self, process: Process) -> Outcome:
        try:
            self._drive(process)
        except (Crashed, SinkError, HeadwaterError) as error:
            if isinstance(error, StorageRefusedError):
                raise
            self.world.note(f"{process.name} ends: {error!r}")
            return error
        finally:
            process.done = True
        return None

    def _drive(self, process: Process) -> None:
        opened = self._open_for(process)
        checkpoint = Checkpoint(opened[0], self.kept)
        if process.rescales:
            if checkpoint.exists():
                rescale_as(opened, self.rng.randrange(1, MOST_TASKS + 1), self.world.unique)
            return
        if not checkpoint.exists():
            start = [{"0": 0, "1": 0}]
            checkpoint.begin(Genesis(self.world.unique(), "plan", TASKS, start, [positions_of(self.rows)]))
        compactor = SimulatedCompactor(self.world, process, opened[0], self._open_for)
        job = Job(self.world, process, opened, self._open_for, self.sink, self.wrong, compactor.apply)
        batches = Batches(checkpoint, job, _on_failure, lambda commit, _: compactor.plan(commit.state))
        try:
            self._drain(batches)
        except Crashed:
            raise
        except BaseException:
            compactor.close()
            raise
        compactor.close()
        checkpoint.release()

    def _drain(self, batches: Batches) -> None:
        recovered = batches.claim()
        batches.with_retries(
            lambda: batch_ids.check_start(self.sink.committed(), recovered.committed.id, recovered.pending_id)
        )
        committed = batches.replay()
        while committed.reached != [END]:
            committed = batches.run(self._next_intent(committed))

    def _open_for(self, process: Process) -> Opened:
        storage, raw = self.files.open_for(process)
        return RetryingStorage(storage, (0.0,) * RETRIES, lambda _: None), raw

    def _next_intent(self, committed: Commit) -> Intent:
        """At random: some partitions get no rows, and sometimes none does."""
        rng, start = self.rng, committed.positions[0]
        end = {k: min(self.rows[int(k)], at + rng.randrange(self.largest + 1)) for k, at in start.items()}
        splits = [[[int(k), start[k], end[k]]] for k in end]
        watermarks = SOURCE.next(committed)
        return Intent(
            committed.batch + 1,
            *([start], [end], committed.bounds, [splits], {"partitions": committed.partitions}, self.world.now()),
            watermarks=watermarks,
        )

    def _created(self, process: Process, name: str, content: bytes) -> None:
        """An entry of the log is there, as seen by an observer who forgets nothing. One in a place that all others have
        left behind is none."""
        number = int(name[-25:-5])
        if any(self.files.has(entry_name(n)) for n in range(number + 1, max(self.log, default=0) + 1)):
            return
        self.log[number] = content
        if b'"kind":"claim"' in content:
            self.world.claimant = process
            process.claimed = True
        elif b'"kind":"commit"' in content:
            self.copy_at -= 1
            if self.copy_at == 0:
                self.copy = (self.files.content(), dict(self.log))

    def _between_runs(self) -> None:
        if self.copy is not None and isinstance(self.sink, ExactlyOnceSink):
            self._older_copy(self.sink, *self.copy)
            self.copy = None
        elif self.rng.random() < 0.15:
            self._damage()

    def _older_copy(self, sink: ExactlyOnceSink, files: dict[str, bytes], log: dict[int, bytes]) -> None:
        """Exactly once from an older copy of the checkpoint: refused if the sink is ahead of it."""
        world = self.world
        world.zombies, world.delayed = [], []  # what is still under way belongs to the other one
        now, log_now, logged = self.files.content(), self.log, [list(writer.log) for writer in sink.writers]
        self.files.restore(files)
        self.log = dict(log)
        known = {intent.batch: intent.digest for intent in _intents(self.log)}
        if all(known.get(found.number) == found.digest for found in sink.committed()):
            return
        world.note("an older copy is used")
        self._expect(StaleCheckpointError, "an older copy")
        require([writer.log for writer in sink.writers] == logged, "an older copy writes nothing")
        self.files.restore(now)
        self.log = log_now

    def _damage(self) -> None:
        """A file is lost or cut. If it was needed the run says so, and nothing is computed without it."""
        while self.world.delayed:  # an upload that is done later would bring the file back
            self.world.delayed.pop()()
        files = self.files.content()
        name, needed = self._victim(files)
        if not name:
            return
        cut = files[name][:-1] if self.rng.random() < 0.3 and not name.startswith("log") else None
        self.world.note(f"{name} is {'lost' if cut is None else 'cut'}, {needed=}")
        self.files.set(name, cut)
        if needed and (cut is None or self._work_left()):
            self._expect(DamagedCheckpointError, f"damage to {name}")
        self.files.set(name, files[name])

    def _victim(self, files: dict[str, bytes]) -> tuple[str, bool]:
        """A file that the newest entry leads to, or one that it does not: the intent of the newest commit."""
        numbers = sorted(int(name[-25:-5]) for name in files if name.startswith("log/") and name.endswith(".json"))
        if not numbers or not numbers[-1]:
            return "", False
        newest = json.loads(files[entry_name(numbers[-1])])
        commit = newest["commits"][-1]
        victims = [(entry_name(number), True) for number in (0, commit, newest["pending"]) if number is not None]
        if commit:
            named = Commit.from_json(json.loads(files[entry_name(commit)])["content"]).names
            victims += [(name, True) for name in sorted(named)]
        spare = [(entry_name(n), False) for n in numbers if commit - 3 <= n < commit and n]
        victims = [(name, needed) for name, needed in victims if name != entry_name(numbers[-1])] + spare
        return self.rng.choice(victims) if victims else ("", False)

    def _work_left(self) -> bool:
        newest = entries_of(self.log)[-1]
        commit = json.loads(self.log[newest["commits"][-1]])["content"]
        return newest["pending"] is not None or commit.get("reached") != [END]

    def _expect(self, kind: type[BaseException] | None, what: str) -> None:
        outcome = self._outcome(self._driver())
        if not (outcome is None if kind is None else isinstance(outcome, kind)):
            raise AssertionError(f"{what} ended with {outcome!r}") from outcome


def _on_failure(error: Exception, failures: int) -> None:
    if not isinstance(error, StorageUnavailableError | SinkError) or failures > RETRIES:
        raise error


def _intents(log: dict[int, bytes]) -> Iterable[Intent]:
    return (Intent.from_json(entry["content"]) for entry in entries_of(log) if entry["kind"] == "intent")


def run_seeds(seeds: Iterable[int]) -> list[int]:
    """Those that fail."""
    failed = []
    for seed in seeds:
        try:
            Schedule(seed).run()
        except Exception:  # noqa: BLE001 - whatever it is, the seed tells it again
            failed.append(seed)
    return failed


def main(first: int, last: int | None = None) -> None:
    if last is not None:
        began = time.perf_counter()
        failed = run_seeds(range(first, last))
        seconds = time.perf_counter() - began
        print(f"{last - first} schedules in {seconds:.1f} s, {len(failed)} failed: {failed[:20]}")  # noqa: T201
        return
    schedule = Schedule(first, traced=True)
    try:
        schedule.run()
    except Exception:  # noqa: BLE001 - shown with the steps that led to it
        traceback.print_exc()
    print(*(schedule.world.trace or ()), sep="\n")  # noqa: T201


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
