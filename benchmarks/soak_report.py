"""What a soak has shown: figures of the first and the last third after warm-up, SOAK.md and soak.svg."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median

from line_chart import Panel, render_chart
from report import table, versions
from soak_samples import ROLES, Held, Sample

__all__ = ["Figure", "Soak", "figures", "verdict", "write_soak"]

PAGE = Path(__file__).with_name("SOAK.md")
PLOT = Path(__file__).with_name("soak.svg")
MEGABYTE = 2**20
HEAP = "heap in use"
LOCAL_DIRECTORY = "Spark's local directory"
GROWTH = 0.05  # of the first third: less than this is noise, and so is less than a figure's own tolerance

Points = Sequence[tuple[float, float]]
"""(minutes, value)"""


@dataclass
class Soak:
    """What was seen, by the minute; `batches` are (minutes, seconds) by job. Bytes of the JVM: `heap` and
    `non_heap` as they are, `live` of the heap after a full garbage collection."""

    minutes: float
    rate: int
    samples: list[Sample] = field(default_factory=list)
    batches: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    heap: list[tuple[float, float]] = field(default_factory=list)
    non_heap: list[tuple[float, float]] = field(default_factory=list)
    live: list[tuple[float, float]] = field(default_factory=list)
    events: list[tuple[float, str]] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)
    differences: dict[str, int] = field(default_factory=dict)

    @property
    def warm_up(self) -> float:
        return min(5.0, self.minutes / 5)


@dataclass(frozen=True)
class Figure:
    """`tolerance` is in the figure's own unit. The broker's figures are shown, but they are not ours."""

    name: str
    unit: str
    first: float
    last: float
    tolerance: float
    ours: bool = True

    @property
    def growth(self) -> float:
        return self.last - self.first

    @property
    def grows(self) -> bool:
        return self.growth > max(self.tolerance, GROWTH * self.first)


def figures(soak: Soak) -> list[Figure]:
    """Medians of each third; of what garbage collection makes go up and down, the lowest."""
    found = []
    for role in ROLES:
        ours = role != "broker"
        for name, unit, tolerance, attribute, scale in _HELD:
            points = _held(soak, role, attribute, scale)
            found.append(Figure(f"{role}: {name}", unit, *_thirds(soak, points), tolerance, ours))
    for name, points in _jvm(soak).items():
        if name != HEAP:  # it goes up and down with garbage collection
            found.append(Figure(name, "MB", *_thirds(soak, points), 20))
    for directory, points in _files(soak).items():
        of = min if directory == LOCAL_DIRECTORY else median
        found.append(Figure(f"files in {directory}", "", *_thirds(soak, points, of), 20))
    if others := _others(soak):
        found.append(Figure("cores that others took", "%", *_thirds(soak, others), 5, ours=False))
    for job, points in soak.batches.items():
        millis = [(at, seconds * 1000) for at, seconds in points]
        found.append(Figure(f"time of a batch of '{job}'", "ms", *_thirds(soak, millis), 20))
    return found


_HELD = (
    ("memory that is no mapped file", "MB", 20, "anonymous", MEGABYTE),
    ("resident memory", "MB", 40, "resident", MEGABYTE),
    ("maps", "", 30, "maps", 1),
    ("threads", "", 5, "threads", 1),
    ("open files", "", 15, "descriptors", 1),
)


def write_soak(soak: Soak) -> Path:
    PAGE.write_text(_render(soak), encoding="utf-8")
    PLOT.write_text(render_chart(list(_panels(soak)), soak.minutes, soak.events), encoding="utf-8")
    return PAGE


def verdict(soak: Soak) -> str:
    wrong = {name: count for name, count in soak.differences.items() if count}
    results = f"Results differ: {wrong}." if wrong else "All results equal a recount of what was sent."
    growing = [figure.name for figure in figures(soak) if figure.ours and figure.grows]
    growth = f"Growth: {'; '.join(growing)}." if growing else "Nothing of ours grows after warm-up."
    return f"{results} {growth}"


def _render(soak: Soak) -> str:
    rows = [
        (
            figure.name,
            f"{figure.first:,.0f} {figure.unit}".strip(),
            f"{figure.last:,.0f} {figure.unit}".strip(),
            f"{figure.growth:+,.0f} {figure.unit}".strip(),
            "grows" if figure.grows else "flat",
        )
        for figure in figures(soak)
    ]
    third = (soak.minutes - soak.warm_up) / 3
    parts = [
        "# Soak",
        f"**{verdict(soak)}**",
        _INTRODUCTION.format(minutes=soak.minutes, rate=soak.rate, **_rows(soak.sent)),
        f"Faults: {_listed(soak.events)}.",
        "![Memory, maps, threads, files and batch times over time](soak.svg)",
        _FIGURES.format(warm_up=soak.warm_up, third=third),
        table(("what", "first third", "last third", "growth", ""), rows),
        _METHOD,
        versions(),
    ]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """\
Three jobs in one process for {minutes:.3g} minutes, {rate:,} rows a second into each of two topics ({events} payments,
{accounts} changes of accounts):

- `totals`: log → COUNT, SUM by key → upsert topic
- `regions`: upsert topic → COUNT, SUM, COUNT(DISTINCT) by region → upsert topic, with moves and deletes
- `copies`: log → expressions → log, exactly-once"""

_FIGURES = """\
After a warm-up of {warm_up:.3g} minutes, medians of the first and the last {third:.3g} minutes. Of the files in Spark's
local directory it is the least: shuffle files stay until a garbage collection shows that nobody needs them. The first
third has one restart of the broker and one killed worker in it, and another of each came before the last. Less than
5 % more, or than a small amount that is noise, counts as flat. The broker is the test's own, and what others do on the
machine explains batch times: neither is ours."""

_METHOD = """\
`make soak` does it again (`make soak MINUTES=60` for an hour). The jobs run as in `headwater run`, on `local[2]` with a
heap of 1 GB that is taken at the start. Twice the broker is stopped and started again, and twice one of Spark's Python
workers gets SIGKILL. At the end the load stops, the jobs read what is left, and all three results are compared with a
recount of what was sent: tables row by row, the copy message by message. Twelve times in a run, Spark's JVM is asked
for a full garbage collection, after which its heap holds only what is still in use."""


def _rows(sent: Mapping[str, int]) -> dict[str, str]:
    return {topic: f"{count:,}" for topic, count in sent.items()}


def _listed(events: Sequence[tuple[float, str]]) -> str:
    return ", ".join(f"{label} after {at:.1f} minutes" for at, label in events) or "none"


def _panels(soak: Soak) -> Iterator[Panel]:
    def by_role(attribute: str, scale: float) -> dict[str, Points]:
        return {role: _held(soak, role, attribute, scale) for role in ROLES}

    yield Panel("Memory that is no mapped file, MB", by_role("anonymous", MEGABYTE))
    yield Panel("Resident memory, MB", by_role("resident", MEGABYTE))
    yield Panel("Used in Spark's JVM, MB", _jvm(soak))
    yield Panel("Maps", by_role("maps", 1))
    yield Panel("Threads", by_role("threads", 1))
    yield Panel("Files", _files(soak))
    if others := _others(soak):
        yield Panel("Others on this machine, % of a core", {"CPU": others})
    width = soak.minutes / 120
    batches = {job: _medians([(at, s * 1000) for at, s in points], width) for job, points in soak.batches.items()}
    yield Panel(f"Time of a batch, ms (medians of {width * 60:.0f} s)", batches)


def _jvm(soak: Soak) -> dict[str, Points]:
    series = {HEAP: soak.heap, "heap after a full collection": soak.live, "JVM memory beside the heap": soak.non_heap}
    return {name: [(at, value / MEGABYTE) for at, value in points] for name, points in series.items()}


def _held(soak: Soak, role: str, attribute: str, scale: float) -> Points:
    nothing = Held()
    return [(s.time, getattr(held, attribute) / scale) for s in soak.samples if (held := s.held[role]) != nothing]


def _others(soak: Soak) -> Points:
    """In percent of a core, between two samples. Of a process that ended, one sample has all the time it has used."""
    pairs = [(a, b) for a, b in pairwise(soak.samples) if b.time > a.time and a.others]
    return [(b.time, max(0.0, 100 * (b.others - a.others) / ((b.time - a.time) * 60))) for a, b in pairs]


def _files(soak: Soak) -> dict[str, Points]:
    names = soak.samples[0].files if soak.samples else {}
    return {name: [(sample.time, sample.files[name]) for sample in soak.samples] for name in names}


def _thirds(soak: Soak, points: Points, of: Callable[[Sequence[float]], float] = median) -> tuple[float, float]:
    """Of the first and of the last third after warm-up."""
    third = (soak.minutes - soak.warm_up) / 3
    early = [value for at, value in points if soak.warm_up <= at < soak.warm_up + third]
    late = [value for at, value in points if soak.minutes - third <= at <= soak.minutes]
    return (of(early) if early else 0.0, of(late) if late else 0.0)


def _medians(points: Points, width: float) -> Points:
    """One for each interval of so many minutes."""
    parts = groupby(points, key=lambda point: int(point[0] / width))
    return [((number + 0.5) * width, median(value for _, value in part)) for number, part in parts]
