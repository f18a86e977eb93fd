"""Showing running jobs: what every view can do, and the plain one for logs, files and pipes.

All of it goes to standard error. Standard output belongs to results: SHOW, DESCRIBE, EXPLAIN and the `print` connector.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

import typer

from headwater.cli.style import aligned, count, rate, seconds
from headwater.control.meter import JobSample
from headwater.errors import HeadwaterError

__all__ = ["JobView", "LogSettings", "PlainView", "Views", "log_error", "open_view", "summary_lines"]

_EVERY = 5.0
_LEVELS = {"retrying": "warning", "failed": "error"}


class JobView(Protocol):
    """`phase` says what is going on before there are jobs, and what is going on beside them; '' for nothing special."""

    def phase(self, text: str) -> None: ...

    def say(self, line: str, level: str = "info", job: str = "") -> None:
        """Something that is said once and stays, also after `close`. `level` is info, warning or error."""
        ...

    def address(self, name: str, url: str) -> None:
        """Where something can be opened in a browser."""
        ...

    def show(self, readings: Sequence[JobSample]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class LogSettings:
    """`verbose`: a line for every batch. `file` gets all lines too; '' for none."""

    as_json: bool = False
    verbose: bool = False
    file: str = ""


def open_view(title: str, log: LogSettings | None = None) -> JobView:
    """The live view on a terminal, lines elsewhere; and lines in a file, if there is one. JSON is never drawn."""
    log = log or LogSettings()
    views: list[JobView] = []
    if log.file:
        views.append(PlainView(_appending(log.file), as_json=log.as_json, verbose=log.verbose))
    if sys.stderr.isatty() and not log.as_json:
        from headwater.cli.live import LiveView

        views.append(LiveView(title))
    else:
        views.append(PlainView(as_json=log.as_json, verbose=log.verbose))
    return views[0] if len(views) == 1 else Views(views)


def _appending(path: str) -> Callable[[str], None]:
    """Opened for every line, so that it may be moved away at any time, as logrotate does."""

    def write(line: str) -> None:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    try:
        Path(path).open("a", encoding="utf-8").close()
    except OSError as error:
        raise HeadwaterError(f"'{path}' cannot be written.", detail=str(error.strerror)) from None
    return write


def log_error(error: HeadwaterError, log: LogSettings) -> None:
    """Into the log, where standard error is not it: a person reads the message there as every command writes it."""
    from headwater.options.secrets import hidden_in

    text = hidden_in(str(error), {})
    if log.file:
        PlainView(_appending(log.file), as_json=log.as_json).say(text, "error")
    if log.as_json:
        PlainView(as_json=True).say(text, "error")


@dataclass(frozen=True)
class Views:
    """Several at once."""

    views: Sequence[JobView]

    def phase(self, text: str) -> None:
        for view in self.views:
            view.phase(text)

    def say(self, line: str, level: str = "info", job: str = "") -> None:
        for view in self.views:
            view.say(line, level, job)

    def address(self, name: str, url: str) -> None:
        for view in self.views:
            view.address(name, url)

    def show(self, readings: Sequence[JobSample]) -> None:
        for view in self.views:
            view.show(readings)

    def close(self) -> None:
        for view in self.views:
            view.close()


@dataclass
class PlainView:
    """One line per job every few seconds, if it has moved; a change of status or a new note is said at once. Each has
    its time in UTC and its level, as text or as JSON."""

    write: Callable[[str], None] = lambda line: typer.echo(line, err=True)
    clock: Callable[[], float] = time.monotonic
    as_json: bool = False
    verbose: bool = False
    _last: float = 0.0
    _shown: dict[str, tuple[object, ...]] = field(default_factory=dict)

    def phase(self, text: str) -> None:
        if text:
            self.say(text)

    def say(self, line: str, level: str = "info", job: str = "") -> None:
        named = line if not job or line.startswith(f"{job} ") else f"{job}: {line}"
        # A log is read line by line: each has its own time and level. In JSON, line breaks are escaped.
        for one in [line] if self.as_json else named.splitlines():
            self._write(level, one, {"job": job} if job else {})

    def address(self, name: str, url: str) -> None:
        if url:
            self.say(f"{name}: {url}")

    def show(self, readings: Sequence[JobSample]) -> None:
        due = self.clock() - self._last >= _EVERY
        for reading in readings:
            self._show(reading, due=due)
        if due:
            self._last = self.clock()

    def close(self) -> None:
        pass

    def _show(self, reading: JobSample, *, due: bool) -> None:
        progress = reading.progress
        status, moved = (progress.status, progress.note), (progress.status, progress.note, progress.batches)
        before = self._shown.get(progress.name, ("", "", 0))
        changed = status != before[:2]
        # A job that has done nothing since is not repeated; otherwise idle jobs would fill the log.
        if moved == before or not (changed or due or self.verbose):
            return
        self._shown[progress.name] = moved
        level = _LEVELS.get(progress.status, "info" if changed or due else "debug")
        text = progress.note or (_facts(reading) if progress.batches else "")
        if self.as_json:
            self._write(level, text or progress.status, _values(reading))
        else:
            self._write(level, f"{progress.name}  {progress.status}  {text}".rstrip(), {})

    def _write(self, level: str, text: str, values: dict[str, Any]) -> None:
        now = datetime.now(timezone.utc)
        if self.as_json:
            content = {"time": f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03d}Z", "level": level, **values}
            self.write(json.dumps({**content, "message": text}, ensure_ascii=False))
        else:
            self.write(f"{now:%Y-%m-%dT%H:%M:%SZ}  {level.upper():<7}  {text}")


def _values(reading: JobSample) -> dict[str, Any]:
    p = reading.progress
    return {
        "job": p.name,
        "status": p.status,
        "batch": p.batch,
        "rows_in": p.rows_in,
        "rows_out": p.rows_out,
        "rate_in": round(reading.rate_in, 1),
        "lag": p.lag,
        "batch_seconds": round(p.batch_seconds, 3),
        "latency_seconds": round(p.latency_seconds, 3),
        "state_rows": p.state_rows,
        "bad_records": p.bad_records,
    }


def _facts(reading: JobSample) -> str:
    p = reading.progress
    out = "" if p.rows_out is None else f"  out {count(p.rows_out)} ({rate(reading.rate_out)}/s)"
    state = f"  state {count(p.state_rows)}" if p.state_rows else ""
    batch = f"batch {seconds(p.batch_seconds)}"
    bad = f"  bad {count(p.bad_records)}" if p.bad_records else ""
    return f"in {count(p.rows_in)} ({rate(reading.rate_in)}/s){out}{bad}  lag {count(p.lag)}  {batch}{state}"


def summary_lines(readings: Sequence[JobSample]) -> list[str]:
    """What each job has done in this run."""
    return aligned([_summary(reading) for reading in readings])


def _summary(reading: JobSample) -> tuple[str, ...]:
    p = reading.progress
    out = "" if p.rows_out is None else f", {count(p.rows_out)} out"
    batches = "1 batch" if p.batches == 1 else f"{count(p.batches)} batches"
    state = f", {count(p.state_rows)} rows of state" if p.state_rows else ""
    bad = f", {count(p.bad_records)} bad" if p.bad_records else ""
    done = f"{count(p.rows_in)} rows in{bad}{out}, {batches}{state}, {seconds(reading.age)}"
    return (p.name, p.status, done if p.batches else "nothing to do" if p.status == "finished" else "no batch done")
