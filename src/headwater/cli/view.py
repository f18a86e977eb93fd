"""Showing running jobs: what every view can do, and the plain one for logs and pipes.

All of it goes to standard error. Standard output belongs to results: SHOW, DESCRIBE, EXPLAIN and the `print` connector.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import typer

from headwater.cli.meter import Reading
from headwater.cli.style import aligned, count, rate, seconds

__all__ = ["PlainView", "View", "open_view", "summary_lines"]

_EVERY = 5.0


class View(Protocol):
    """`phase` says what is going on before there are jobs, and what is going on beside them; '' for nothing special."""

    def phase(self, text: str) -> None: ...

    def say(self, line: str) -> None:
        """Something that is said once and stays."""
        ...

    def show(self, readings: Sequence[Reading]) -> None: ...

    def close(self) -> None: ...


def open_view(title: str) -> View:
    """The live view on a terminal, plain lines elsewhere."""
    if sys.stderr.isatty():
        from headwater.cli.live import LiveView

        return LiveView(title)
    return PlainView()


@dataclass
class PlainView:
    """One line per job every few seconds, if it has moved; a change of status or a new note is said at once."""

    write: Callable[[str], None] = lambda line: typer.echo(line, err=True)
    clock: Callable[[], float] = time.monotonic
    _last: float = 0.0
    _shown: dict[str, tuple[object, ...]] = field(default_factory=dict)

    def phase(self, text: str) -> None:
        if text:
            self.write(text)

    def say(self, line: str) -> None:
        self.write(line)

    def show(self, readings: Sequence[Reading]) -> None:
        due = self.clock() - self._last >= _EVERY
        lines = [line for reading in readings if (line := self._line(reading, due))]
        for line in lines:
            self.write(line)
        if due:
            self._last = self.clock()

    def close(self) -> None:
        pass

    def _line(self, reading: Reading, due: bool) -> str:
        progress = reading.progress
        status, moved = (progress.status, progress.note), (progress.status, progress.note, progress.batches)
        before = self._shown.get(progress.name, ("", "", 0))
        if moved == before or (status == before[:2] and not due):
            return ""
        self._shown[progress.name] = moved
        clock = time.strftime("%H:%M:%S")
        if progress.note:
            return f"{clock}  {progress.name}  {progress.note}"
        return f"{clock}  {progress.name}  {progress.status}" + (f"  {_facts(reading)}" if progress.batches else "")


def _facts(reading: Reading) -> str:
    p = reading.progress
    out = "" if p.rows_out is None else f"  out {count(p.rows_out)} ({rate(reading.rate_out)}/s)"
    state = f"  state {count(p.state_rows)}" if p.state_rows else ""
    batch = f"batch {seconds(p.batch_seconds)}"
    bad = f"  bad {count(p.bad_records)}" if p.bad_records else ""
    return f"in {count(p.rows_in)} ({rate(reading.rate_in)}/s){out}{bad}  lag {count(p.lag)}  {batch}{state}"


def summary_lines(readings: Sequence[Reading]) -> list[str]:
    """What each job has done in this run."""
    return aligned([_summary(reading) for reading in readings])


def _summary(reading: Reading) -> tuple[str, ...]:
    p = reading.progress
    out = "" if p.rows_out is None else f", {count(p.rows_out)} out"
    batches = "1 batch" if p.batches == 1 else f"{count(p.batches)} batches"
    state = f", {count(p.state_rows)} rows of state" if p.state_rows else ""
    bad = f", {count(p.bad_records)} bad" if p.bad_records else ""
    done = f"{count(p.rows_in)} rows in{bad}{out}, {batches}{state}, {seconds(reading.age)}"
    return (p.name, p.status, done if p.batches else "nothing to do" if p.status == "finished" else "no batch done")
