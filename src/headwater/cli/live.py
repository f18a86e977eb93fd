"""The live view of `headwater run`: one row per job, drawn in place on the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from headwater.cli.meter import Reading
from headwater.cli.style import count, rate, seconds, span

__all__ = ["LiveView", "job_table", "status_text"]

_STATUS = {"starting": "yellow", "running": "green", "finished": "cyan", "stopped": "cyan", "failed": "bold red"}
_WIDE = 110  # below, the columns that matter least are left out


class LiveView:
    """Implements `View`. Lines of the `print` connector appear above it, unless standard output goes elsewhere."""

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._title = title
        self._console = console or Console(stderr=True, highlight=False)
        self._began = time.monotonic()
        self._spinner = Spinner("dots", style="cyan")
        self._phase = ""
        self._readings: Sequence[Reading] = ()
        self._live = Live(
            console=self._console,
            get_renderable=self._picture,
            refresh_per_second=5,
            redirect_stdout=sys.stdout.isatty(),
        )
        self._live.start()

    def phase(self, text: str) -> None:
        self._phase = text

    def say(self, line: str) -> None:
        self._console.print(Text(line))

    def show(self, readings: Sequence[Reading]) -> None:
        self._readings = readings

    def close(self) -> None:
        self._phase = ""
        self._live.stop()

    def _picture(self) -> RenderableType:
        parts: list[RenderableType] = []
        if self._readings:
            parts.append(Text.assemble((self._title, "bold"), (f"  {span(time.monotonic() - self._began)}", "dim")))
            parts.append(job_table(self._readings, self._console.width >= _WIDE))
            parts += [_note(reading) for reading in self._readings if reading.progress.note]
        if self._phase:
            self._spinner.update(text=Text(self._phase, "dim"))
            parts.append(self._spinner)
        return Group(*parts)


def status_text(status: str) -> Text:
    return Text(status, _STATUS.get(status, ""))


def _note(reading: Reading) -> Text:
    return Text(f"{reading.progress.name}: {reading.progress.note}", "yellow")


def job_table(readings: Sequence[Reading], wide: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="dim", pad_edge=False, padding=(0, 1), collapse_padding=not wide)
    table.add_column("job", overflow="ellipsis", no_wrap=wide)
    table.add_column("status", no_wrap=True)
    numbers = ["rows in", "/s", "rows out", "/s", "lag", "batch", *(["batches"] if wide else []), "state"]
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    origins = wide and any(reading.origin for reading in readings)
    if origins:
        table.add_column("from", style="dim", overflow="ellipsis")
    for reading in readings:
        table.add_row(*_cells(reading, wide), *([Text(Path(reading.origin).name)] if origins else []))
    return table


def _cells(reading: Reading, wide: bool) -> list[RenderableType]:
    p = reading.progress
    lag = Text(count(p.lag), "yellow" if p.lag and not reading.ended else "")
    cells: list[RenderableType] = [Text(p.name, "bold"), status_text(p.status)]
    read = f"{count(p.rows_in)} ({count(p.bad_records)} bad)" if p.bad_records else count(p.rows_in)
    cells += [read, rate(reading.rate_in), count(p.rows_out), rate(reading.rate_out), lag]
    cells.append(seconds(p.batch_seconds))
    if wide:
        cells.append(count(p.batches))
    cells.append(count(p.state_rows) if p.state_rows else "–")
    return cells
