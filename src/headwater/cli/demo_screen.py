"""The demo on a terminal: both result tables side by side, counting up, with the jobs below."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from rich import box
from rich.align import Align
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from headwater.cli.demo import NEXT, verdict_lines
from headwater.cli.live import job_table
from headwater.cli.style import count, span
from headwater.control.meter import JobSample, Meter
from headwater.demo.results import Counts
from headwater.demo.run import DemoRun, Verdict
from headwater.demo.scripts import COPY, COUNT, OUTPUTS, query_of
from headwater.demo.traffic import REGIONS

__all__ = ["DemoScreen"]

_TITLES = {COUNT: "upsert-kafka · avro", COPY: "kafka · csv"}
_FLASH = 0.5
_BAR = 18
_LEAST_BAR = 4
_NUMBERS, _NUMBERS_OF_BOTH = 40, 58  # columns of a panel that are not the bar: of one table, of both
_SIDE_BY_SIDE = 104  # columns
_EIGHTHS = " ▏▎▍▌▋▊▉█"


class DemoScreen:
    """Implements `DemoView`."""

    def __init__(self, run: DemoRun, seconds: float, console: Console | None = None) -> None:
        self._run = run
        self._seconds = seconds
        self._console = console or Console(highlight=False)
        self._spinner = Spinner("dots", style="cyan")
        self._meters: list[Meter] = []
        self._changed: dict[tuple[str, str], tuple[tuple[int, int], float]] = {}
        self._clock: float | None = None
        self._closed = False
        self._read_at = 0.0
        self._readings: list[JobSample] = []
        self._live = Live(console=self._console, get_renderable=self.picture, auto_refresh=False)
        self._live.start()

    def show(self, clock: float | None) -> None:
        self._clock = clock
        if len(self._meters) != len(self._run.jobs):
            self._meters = [Meter(job.progress) for job in self._run.jobs]
        if time.monotonic() - self._read_at > 0.5 and self._run.phase != "Stopping everything":
            self._read_at = time.monotonic()
            self._readings = [meter.read() for meter in self._meters]
        self._live.refresh()

    def close(self) -> None:
        self._closed = True
        # The rates as they were under load, but what has become of the jobs.
        self._readings = [
            replace(reading, progress=replace(reading.progress, status=job.progress().status))
            for reading, job in zip(self._readings, self._run.jobs, strict=False)  # Ctrl-C may come between two jobs
        ]
        self._live.refresh()
        self._live.stop()

    def picture(self) -> RenderableType:
        parts: list[RenderableType] = []
        if self._run.followers:
            parts.append(self._fed())
            parts.append(self._tables())
            parts.append(Padding(job_table(self._readings, self._console.width - 2), (0, 1)))
        if not self._closed:
            parts.append(Padding(self._footer(), (0, 1)))
        return Group(*parts)

    def _tables(self) -> RenderableType:
        """Two panels, or on a narrow terminal one with both tables."""
        names = [name for name in OUTPUTS if name in self._run.followers]
        if self._console.width < _SIDE_BY_SIDE:
            return self._panel(names, "  ".join(names))
        grid = Table.grid(expand=True, padding=(0, 1))
        for _ in names:
            grid.add_column(ratio=1)
        grid.add_row(*(self._panel([name], name, _TITLES[name]) for name in names))
        return grid

    def _panel(self, names: Sequence[str], title: str, subtitle: str = "") -> Panel:
        table = Table(box=None, expand=True, header_style="dim", padding=(0, 1), pad_edge=False)
        table.add_column("user_region", no_wrap=True)
        width = self._console.width
        bar = min(_BAR, width // 2 - _NUMBERS if len(names) == 1 else width - _NUMBERS_OF_BOTH)
        has_bar = bar >= _LEAST_BAR  # where there is no room for both, numbers go before it
        if has_bar:
            table.add_column("", width=bar)
        for _ in names:
            table.add_column("pv", justify="right", no_wrap=True)
            table.add_column("uv", justify="right", no_wrap=True)
        shown = [(name, self._run.counts(name)) for name in names]
        greatest = max((pv for pv, _ in shown[0][1].values()), default=1)
        for region in sorted(shown[0][1].keys() | REGIONS.keys(), key=_place):
            pv = shown[0][1].get(region, (0, 0))[0]
            cells = [cell for name, counts in shown for cell in self._cells(name, region, counts)]
            drawn = [Text(_bar(pv / greatest, bar), "blue")] if has_bar else []
            table.add_row(Text(region, "" if pv else "dim"), *drawn, *cells)
        heading = Text.assemble((title, "bold"), "  ", (subtitle, "dim"))
        return Panel(table, title=heading, title_align="left", box=box.ROUNDED, border_style="blue", padding=(0, 1))

    def _cells(self, name: str, region: str, counts: Counts) -> tuple[Text, Text]:
        if region not in counts:
            return Text("–", "dim"), Text("–", "dim")
        pv, uv = counts[region]
        style = "bold bright_white" if self._is_fresh(name, region, (pv, uv)) else ""
        return Text(count(pv), style), Text(count(uv), style)

    def _is_fresh(self, name: str, region: str, now: tuple[int, int]) -> bool:
        before, since = self._changed.get((name, region), (None, 0.0))
        if before != now:
            since = time.monotonic()
            self._changed[name, region] = (now, since)
        return time.monotonic() - since < _FLASH

    def _fed(self) -> RenderableType:
        sent = self._run.feed.sent if self._run.feed is not None else 0
        text = Text.assemble(("pageviews", "bold"), "  ", ("kafka · json", "dim"), f"   {count(sent)} fed")
        if self._console.width >= _SIDE_BY_SIDE:
            for name in OUTPUTS:
                text.append("   ──▶   ", "blue").append(name, "bold")
        return Padding(text, (1, 1) if self._console.width >= _SIDE_BY_SIDE else (0, 1))

    def _footer(self) -> RenderableType:
        if self._clock is None or self._clock >= self._seconds:
            self._spinner.update(text=Text(f"{self._run.phase} …"))
            return self._spinner
        grid = Table.grid(padding=(0, 1))
        bar = ProgressBar(self._seconds, min(self._clock, self._seconds), width=40, complete_style="cyan")
        left = f"{span(self._clock)} of {span(self._seconds)}"
        grid.add_row(bar, Text(left, "cyan"), Text("Ctrl-C ends earlier", "dim"))
        return grid

    def verdict(self, verdict: Verdict) -> None:
        for line in verdict_lines(verdict):
            self._console.print(Text(line, "bold green" if line.startswith("✓") else "bold red"))
        self._console.print()
        self._console.print(Text("What ran", "bold"))
        queries = [Syntax(query_of(name), "sql", theme="ansi_dark", background_color="default") for name in OUTPUTS]
        self._console.print(Padding(Columns(queries, padding=(0, 6)), (0, 2)))
        self._console.print()
        self._console.print(Text("What to try next", "bold"))
        steps = Table.grid(padding=(0, 3))
        for command, meaning in NEXT:
            steps.add_row(Text(command, "cyan"), Text(meaning, "dim"))
        self._console.print(Padding(Align.left(steps), (0, 2)))


def _place(region: str) -> tuple[int, str]:
    known = list(REGIONS)
    return (known.index(region) if region in REGIONS else len(known), region)


def _bar(share: float, width: int) -> str:
    """A bar in steps of an eighth of a character."""
    eighths = round(share * width * 8)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
