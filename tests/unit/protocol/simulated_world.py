"""The world of one simulated schedule: chance, processes that crash, pause and go on, and what is still under way.

Everything that happens is decided by one seeded generator, and only one thread runs at a time, so a seed is a schedule.
Drivers that are alive at the same time have a thread each and hand over to one another at the steps of the protocol.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch


class Crashed(BaseException):
    """The process is gone. Not an Exception: nothing in the protocol may catch it."""


@dataclass(frozen=True)
class Profile:
    """How likely things are, at each step."""

    crash: float = 0.0
    machine: float = 0.5  # of the crashes: those that take the page cache with them
    switch: float = 0.0
    storage_error: float = 0.0
    outage: float = 0.0  # of the storage errors: those that last for some requests
    delayed: float = 0.3  # of the storage errors: requests that are done later
    sink_error: float = 0.0
    task_error: float = 0.0
    duplicate: float = 0.0
    zombie: float = 0.0  # of the tasks of a failed attempt: those that go on
    landing: float = 0.1  # that something delayed happens now
    conflict: float = 0.0  # that a request is refused because another one about the same object is on its way


@dataclass
class Process:
    """A driver, or a task that outlives its driver."""

    name: str
    local: bool = True  # dies with the machine
    dead: bool = False
    done: bool = False
    claimed: bool = False
    driver: bool = True
    rescales: bool = False
    lost_machine: bool = False
    gate: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.gate.acquire()


class World:
    def __init__(self, seed: int, profile: Profile, faults: int, traced: bool = False) -> None:
        self.rng = random.Random(seed)
        self.random = self.rng.random
        self.profile = profile
        self.faults = faults  # how many are left
        self.steps = 0
        self.clock = 0
        self.trace: list[str] | None = [] if traced else None
        self.processes: list[Process] = []  # those that run beside one another now
        self.delayed: list[Callable[[], None]] = []  # requests on their way
        self.zombies: list[tuple[Process, Iterator[Any]]] = []
        self.outage = 0  # requests that are still to fail
        self.late_writes = False
        self.claimant: Process | None = None  # who holds the checkpoint
        self.on_machine_crash: Callable[[], None] = lambda: None
        self._landing = False
        self._unique = 0

    def note(self, text: str) -> None:
        if self.trace is not None:
            self.trace.append(text)

    def unique(self) -> str:
        self._unique += 1
        return f"{self._unique:032x}"

    def now(self) -> int:
        self.clock += 1
        return self.clock

    def step(self, process: Process, what: str = "") -> None:
        """Called at every step of the protocol that could be the last, or the one where somebody else goes on."""
        if process.dead:
            raise Crashed
        self.steps += 1
        if self.trace is not None:
            self.trace.append(f"{process.name} {what}")
        if self.steps > 20_000:
            raise AssertionError("the schedule does not end")
        profile = self.profile
        beside = process.driver and len(self.processes) > 1 and not self._landing
        if beside and profile.switch and self.random() < profile.switch:
            self._switch(process)
        if self.faults and profile.crash and self.random() < profile.crash:
            self.crash(process)
        if (self.delayed or self.zombies) and self.random() < profile.landing:
            self.land()

    def fault(self, rate: float) -> bool:
        if self.faults and rate and self.random() < rate:
            self.faults -= 1
            return True
        return False

    def storage_fault(self) -> bool:
        if self.outage:
            self.outage -= 1
            return True
        if not self.fault(self.profile.storage_error):
            return False
        if self.random() < self.profile.outage:
            self.outage = self.rng.randrange(1, 6)
        return True

    def crash(self, process: Process) -> None:
        self.faults -= 1
        process.dead = True
        machine = process.local and process.driver and self.random() < self.profile.machine
        self.note(f"{process.name} CRASHES{' with the machine' if machine else ''}")
        if machine:
            process.lost_machine = True
            self.on_machine_crash()
            self.zombies = [zombie for zombie in self.zombies if not zombie[0].local]
        raise Crashed

    def land(self) -> None:
        """Something that was given up long ago happens: a request, or the next step of a task."""
        if self._landing or not (self.delayed or self.zombies):
            return
        self._landing = True
        try:
            at = self.rng.randrange(len(self.delayed) + len(self.zombies))
            if at < len(self.delayed):
                self.note("a delayed request is done")
                self.delayed.pop(at)()
            else:
                self._go_on(at - len(self.delayed))
        finally:
            self._landing = False

    def _go_on(self, at: int) -> None:
        zombie = process, rest = self.zombies[at]
        self.note(f"{process.name} goes on")
        try:
            next(rest)
        except (Exception, Crashed) as error:  # noqa: BLE001 - however it ends; StopIteration among them
            self.note(f"{process.name} ends: {error!r}")
            self.zombies = [other for other in self.zombies if other is not zombie]

    def _switch(self, process: Process) -> None:
        others = [other for other in self.processes if other is not process and not other.done]
        if others:
            self._hand_over(self.rng.choice(others))
            process.gate.acquire()
            if process.dead:
                raise Crashed

    def _hand_over(self, to: Process) -> None:
        self.note(f"→ {to.name}")
        to.gate.release()

    def beside(self, work: list[tuple[Process, Callable[[], None]]]) -> None:
        """Run several processes beside one another until all have ended."""
        ended, problems = threading.Lock(), list[BaseException]()
        ended.acquire()
        self.processes = [process for process, _ in work]

        def live(process: Process, action: Callable[[], None]) -> None:
            process.gate.acquire()
            try:
                action()
            except BaseException as error:  # noqa: BLE001 - raised again in the thread of the schedule
                problems.append(error)
            process.done = True
            left = [other for other in self.processes if not other.done]
            if left:
                self._hand_over(self.rng.choice(left))
            else:
                ended.release()

        threads = [threading.Thread(target=live, args=part, daemon=True) for part in work]
        for thread in threads:
            thread.start()
        self._hand_over(self.processes[0])
        ended.acquire()
        for thread in threads:
            thread.join()
        self.processes = []
        if problems:
            raise problems[0]

    @contextmanager
    def own_ids(self) -> Iterator[None]:
        """Ids are counted, so that a seed gives the same names every time."""
        world = self

        class Id:
            def __init__(self) -> None:
                self.hex = world.unique()

        with patch("uuid.uuid4", Id):
            yield
