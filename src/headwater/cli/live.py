"""The live view of `headwater run`: one row per job, drawn in place on the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import (
    Console,
    ConsoleOptions,
    ConsoleRenderable,
    Group,
    JustifyMethod,
    RenderableType,
    RenderResult,
)
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from headwater.cli.style import count, rate, seconds, span
from headwater.control.meter import JobSample

if TYPE_CHECKING:
    from headwater.execution.job import Progress

__all__ = ["LiveView", "ResizableLive", "job_table", "status_text"]

_STATUS = {
    "starting": "yellow",
    "running": "green",
    "retrying": "bold yellow",
    "finished": "cyan",
    "stopped": "cyan",
    "failed": "bold red",
}
_LEVELS = {"warning": "yellow", "error": "bold red"}


class LiveView:
    """Implements `View`. Lines of the `print` connector appear above it, unless standard output goes elsewhere."""

    def __init__(self, title: str, console: Console | None = None, *, refresh: bool = True) -> None:
        """`refresh`: draw it several times a second, not only when asked to."""
        self._title = title
        self._console = console or Console(stderr=True, highlight=False)
        self._began = time.monotonic()
        self._spinner = Spinner("dots", style="cyan")
        self._phase = ""
        self._addresses: dict[str, str] = {}
        self._readings: Sequence[JobSample] = ()
        self._live = ResizableLive(
            console=self._console,
            picture=self._picture,
            auto_refresh=refresh,
            refresh_per_second=5,
            # Rows that `print` writes into a pipe or a file must stay there.
            redirect_stdout=sys.stdout.isatty(),
        )
        self._live.start()

    def phase(self, text: str) -> None:
        self._phase = text

    def say(self, line: str, level: str = "info", job: str = "") -> None:
        named = line if not job or line.startswith(f"{job} ") else f"{job}: {line}"
        word = {"warning": "Warning: ", "error": "Error: "}.get(level, "")
        self._console.print(Text.assemble((word, _LEVELS.get(level, "")), named))

    def address(self, name: str, url: str) -> None:
        self._addresses[name] = url

    def show(self, readings: Sequence[JobSample]) -> None:
        self._readings = readings

    def refresh(self) -> None:
        self._live.refresh()

    def close(self) -> None:
        self._phase = ""
        self._live.stop()

    def _picture(self) -> RenderableType:
        parts: list[RenderableType] = []
        if self._readings:
            parts.append(Text.assemble((self._title, "bold"), (f"  {span(time.monotonic() - self._began)}", "dim")))
            parts.append(job_table(self._readings, self._console.width))
            parts += [_note(reading) for reading in self._readings if reading.progress.note]
        parts += self._foot()
        if self._phase:
            self._spinner.update(text=Text(self._phase, "dim"))
            parts.append(self._spinner)
        return Group(*parts)

    def _foot(self) -> list[RenderableType]:
        if not self._readings or not self._live.is_started:
            return []
        lines = [f"{name} {url}" for name, url in self._addresses.items() if url]
        if not self._phase:
            lines.append("Ctrl-C stops after the current batch.")
        one = "  ·  ".join(lines)
        return [Text(one, "dim")] if len(one) <= self._console.width else [Text(line, "dim") for line in lines]


class _Frame:
    """A picture that remembers how wide its lines were drawn."""

    def __init__(self, picture: RenderableType) -> None:
        self._picture = picture
        self.widths: list[int] = []

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._picture, options, pad=False)
        self.widths = [sum(segment.cell_length for segment in line) for line in lines]
        for number, line in enumerate(lines):
            if number:
                yield Segment.line()
            yield from line


class ResizableLive(Live):
    """A `Live` that redraws cleanly when the terminal gets narrower: terminals then wrap the lines that are there, so
    that the picture has more rows than it was drawn with, and the cursor must go back further."""

    def __init__(self, console: Console, picture: Callable[[], RenderableType], **options: Any) -> None:
        self._make = picture
        self._frame = self._drawn = _Frame("")
        super().__init__(console=console, get_renderable=self._next, **options)

    def _next(self) -> RenderableType:
        self._drawn = self._frame if self._frame.widths else self._drawn
        self._frame = _Frame(self._make())
        return self._frame

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        processed = super().process_renderables(renderables)
        wrapped = self._wrapped_rows()
        if not wrapped or not self.console.is_interactive:
            return processed
        back = ((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2)) * wrapped
        return [processed[0], Control(ControlType.CARRIAGE_RETURN, *back), *processed[1:]]

    def _wrapped_rows(self) -> int:
        """How many rows more the last picture takes at the width of now."""
        drawn = next((frame.widths for frame in (self._frame, self._drawn) if frame.widths), [])
        return sum(max(0, -(-width // self.console.width) - 1) for width in drawn)


def status_text(status: str) -> Text:
    return Text(status, _STATUS.get(status, ""))


def _note(reading: JobSample) -> Text:
    return Text(f"{reading.progress.name}: {reading.progress.note}", "yellow")


@dataclass(frozen=True)
class _Column:
    """`keep` says how late it is left out where the terminal is narrow; the name of the job never is."""

    title: str
    cell: Callable[[JobSample], Text]
    keep: int
    justify: JustifyMethod = "right"


_NAME = _Column("job", lambda r: Text(r.progress.name, "bold"), 10, "left")
_COLUMNS = (
    _NAME,
    _Column("status", lambda r: status_text(r.progress.status), 9, "left"),
    _Column("rows in", lambda r: _rows_in(r.progress), 7),
    _Column("/s", lambda r: Text(rate(r.rate_in)), 5),
    _Column("rows out", lambda r: Text(count(r.progress.rows_out)), 6),
    _Column("/s", lambda r: Text(rate(r.rate_out)), 3),
    _Column("lag", lambda r: Text(count(r.progress.lag), "yellow" if r.progress.lag and not r.ended else ""), 8),
    _Column("batch", lambda r: Text(seconds(r.progress.batch_seconds)), 4),
    _Column("batches", lambda r: Text(count(r.progress.batches)), 1),
    _Column("state", lambda r: Text(count(r.progress.state_rows) if r.progress.state_rows else "–"), 2),
    _Column("from", lambda r: Text(Path(r.origin).name, "dim"), 0, "left"),
)


def _rows_in(progress: Progress) -> Text:
    bad = f" ({count(progress.bad_records)} bad)" if progress.bad_records else ""
    return Text(f"{count(progress.rows_in)}{bad}")


def job_table(readings: Sequence[JobSample], width: int) -> Table:
    """As many columns as `width` has room for, the least important left out first."""
    columns = [column for column in _COLUMNS if column.title != "from" or any(r.origin for r in readings)]
    table = _table(readings, columns)
    while len(columns) > 1 and _natural_width(table) > width:
        # Measured again after each one: the width of a table follows from its cells.
        columns.remove(min(columns, key=lambda column: column.keep))
        table = _table(readings, columns)
    return table


def _natural_width(table: Table) -> int:
    unlimited = Console(width=10_000, file=StringIO())
    return unlimited.measure(table).maximum


def _table(readings: Sequence[JobSample], columns: Sequence[_Column]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="dim", pad_edge=False, padding=(0, 1), collapse_padding=True)
    for column in columns:
        table.add_column(column.title, justify=column.justify, no_wrap=column is not _NAME, overflow="fold")
    for reading in readings:
        table.add_row(*(column.cell(reading) for column in columns))
    return table
