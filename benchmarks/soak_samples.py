"""What the processes and directories of a soak hold, looked at from outside, by /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROLES", "Held", "Sample", "files_below", "held_by", "take_sample", "worker_processes"]

ROLES = ("driver", "Spark's JVM", "Python workers", "broker")


@dataclass(frozen=True)
class Held:
    """By one process, or by several together. Memory in bytes; `anonymous` is that which is no mapped file."""

    processes: int = 0
    resident: int = 0
    anonymous: int = 0
    maps: int = 0
    threads: int = 0
    descriptors: int = 0

    def __add__(self, other: Held) -> Held:
        return Held(*(mine + theirs for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)))


@dataclass(frozen=True)
class Sample:
    """`files` by directory; `others` is how many seconds of CPU, since the machine started, nobody of the soak has had:
    those of other processes, and of other machines on the same hardware."""

    time: float
    held: dict[str, Held]
    files: dict[str, int]
    others: float = 0.0


def take_sample(now: float, jobs: int, broker: int, directories: dict[str, Path]) -> Sample:
    """`jobs` is the process of the driver; Spark's JVM and the Python workers are below it."""
    held = dict.fromkeys(ROLES, Held())
    held["driver"] = held_by(jobs)
    held["broker"] = held_by(broker)
    below = _descendants(jobs)
    for process in below:
        role = "Python workers" if _is_worker(process) else "Spark's JVM"
        held[role] += held_by(process)
    others = _used_cpu() - sum(map(_cpu_of, [os.getpid(), jobs, broker, *below]))
    return Sample(now, held, {name: files_below(directory) for name, directory in directories.items()}, others)


def worker_processes(jobs: int) -> list[int]:
    """Python workers that run tasks: children of the daemon that forks them, which is not among them."""
    workers = [process for process in _descendants(jobs) if _is_worker(process)]
    return [process for process in workers if _parent(process) in workers]


def files_below(directory: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(directory))


def held_by(process: int) -> Held:
    """All zero if it has ended meanwhile, also if nobody has collected it yet (it then has no memory)."""
    root = Path("/proc") / str(process)
    try:
        lines = (line.split() for line in (root / "status").read_text().splitlines())
        status = {words[0]: int(words[1]) for words in lines if words[0] in ("VmRSS:", "RssAnon:", "Threads:")}
        maps = (root / "maps").read_bytes().count(b"\n")
        descriptors = len(list((root / "fd").iterdir()))
    except OSError:
        return Held()
    if "VmRSS:" not in status:
        return Held()
    return Held(1, status["VmRSS:"] * 1024, status["RssAnon:"] * 1024, maps, status["Threads:"], descriptors)


def _descendants(process: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for found in _processes():
        children.setdefault(_parent(found), []).append(found)
    below, waiting = [], [process]
    while waiting:
        waiting += (mine := children.get(waiting.pop(), []))
        below += mine
    return below


def _processes() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _parent(process: int) -> int:
    try:
        return int((Path("/proc") / str(process) / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return -1


_TICKS = os.sysconf("SC_CLK_TCK")


def _used_cpu() -> float:
    """Of all processes, and stolen by the host."""
    user, nice, system, _idle, _waiting, *others = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9])
    return (user + nice + system + sum(others)) / _TICKS


def _cpu_of(process: int) -> float:
    try:
        fields = (Path("/proc") / str(process) / "stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _is_worker(process: int) -> bool:
    try:
        return b"-m\0headwater.execution.worker_daemon" in (Path("/proc") / str(process) / "cmdline").read_bytes()
    except OSError:
        return False
