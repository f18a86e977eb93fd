"""How the commands show things: numbers, durations, and tables that are drawn on a terminal and aligned elsewhere."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "aligned",
    "boxed",
    "console",
    "count",
    "error_message",
    "fitted",
    "plan_lines",
    "rate",
    "seconds",
    "show_error",
    "show_plan",
    "show_table",
    "size",
    "span",
    "when",
]

_GAP = "  "
_BRANCHES = "│├└─ "


def count(number: int | None) -> str:
    """1,234,567; a dash for what is not known."""
    return "–" if number is None else f"{number:,}"


def rate(per_second: float | None) -> str:
    """A rate that stays narrow: 0, 0.4, 12, 3,456, 1.2 M."""
    if per_second is None:
        return "–"
    if per_second >= 10_000_000:
        return f"{per_second / 1e6:,.0f} M"
    if per_second >= 1_000_000:
        return f"{per_second / 1e6:,.1f} M"
    if 0 < per_second < 9.95:
        return f"{per_second:.1f}"
    return f"{per_second:,.0f}"


def seconds(duration: float) -> str:
    """How long a batch took: 0.04 s, 1.2 s, 75 s."""
    if duration <= 0:
        return "–"
    if duration < 1:
        return f"{duration:.2f} s"
    return f"{duration:.1f} s" if duration < 60 else f"{duration:.0f} s"


def size(held: int) -> str:
    """How much is stored: 512 B, 1.2 KB, 3.4 GB."""
    number, units = float(held), ["B", "KB", "MB", "GB", "TB"]
    while number >= 1000 and len(units) > 1:
        number, units = number / 1000, units[1:]
    return f"{held:,} B" if units[0] == "B" else f"{number:,.1f} {units[0]}"


def when(milliseconds: int) -> str:
    """A point in time, in UTC: 2026-03-01 12:30:00."""
    from datetime import datetime, timedelta, timezone

    # not by fromtimestamp: a watermark may lie before 1970, or where no clock has been
    try:
        moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def span(duration: float) -> str:
    """How long something has been going on: 0:42, 12:05, 3:00:00."""
    minutes, second = divmod(int(duration), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def console() -> Console:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def error_message(error: BaseException) -> str:
    from headwater.errors import HeadwaterError
    from headwater.options.secrets import hidden_in

    if isinstance(error, HeadwaterError):
        return hidden_in(str(error), {})
    return f"{type(error).__name__}: {error}\nHint: This is a bug in Headwater. HEADWATER_DEBUG=1 shows where it arose."


def show_error(error: BaseException) -> None:
    """To standard error. In one piece: above a line that is typed in the shell, every piece is drawn by itself."""
    word = "Error: "
    text = fitted(f"{word}{error_message(error)}")
    typer.echo(typer.style(word, fg="red", bold=True) + text.removeprefix(word), err=True)


def fitted(text: str) -> str:
    """For standard error: on a terminal, long lines are broken between words, but not those of a script or a table."""
    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines = (_broken(line, width) if len(line) > width and line[:1] != " " else line for line in text.splitlines())
    return "\n".join(lines)


def _broken(line: str, width: int) -> str:
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


def aligned(rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Columns as wide as their widest cell; the last one is free."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    return [
        (indent + _GAP.join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]])).rstrip()
        for row in rows
    ]


def boxed(
    header: Sequence[str], rows: Sequence[Sequence[str]], room: int = 0, spare: Sequence[int] = ()
) -> Table | str:
    """Numbers are aligned to the right. Where `room` is not enough, columns without any content are left out, and then
    the `spare` ones, one by one. If words would still have to be broken, every row is shown as a block of lines."""
    columns = {i: (name, *(row[i] for row in rows)) for i, name in enumerate(header)}
    if rows and room and _width(columns.values(), len) > room:
        full = columns = {i: cells for i, cells in columns.items() if any(cells[1:])}
        for i in spare:
            if _width(columns.values(), len) > room:
                columns = {kept: cells for kept, cells in columns.items() if kept != i}
        if _width(columns.values(), _longest_word) > room:
            return _blocks(list(full.values()))
    return _drawn([cells[0] for cells in columns.values()], [cells[1:] for cells in columns.values()])


def _width(columns: Iterable[Sequence[str]], of: Callable[[str], int]) -> int:
    return sum(max(map(of, cells)) + len(_GAP) for cells in columns)


def _longest_word(cell: str) -> int:
    return max(map(len, cell.split()), default=0)


def _blocks(columns: Sequence[Sequence[str]]) -> str:
    names, *rows = zip(*columns, strict=True)
    return "\n\n".join("\n".join(aligned(list(zip(names, row, strict=True)))) for row in rows)


def _drawn(header: Sequence[str], columns: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1), collapse_padding=True)
    for name, cells in zip(header, columns, strict=True):
        numbers = any(map(_is_number, cells)) and all(_is_number(cell) or cell in ("", "–") for cell in cells)
        table.add_column(name, overflow="fold", justify="right" if numbers else "left")
    for row in zip(*columns, strict=True):
        table.add_row(*map(Text, row))
    return table


def show_plan(lines: Sequence[str]) -> None:
    """To standard output."""
    room = console().width if sys.stdout.isatty() else 0
    for line in plan_lines(lines, room):
        typer.echo(line)


def plan_lines(lines: Sequence[str], room: int) -> list[str]:
    """A plan of one line per operator; where they have no room, what an operator promises stands below it."""
    if not room or max(map(len, lines), default=0) <= room:
        return list(lines)
    shown = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        operator, promises, facts = line.partition(f"{_GAP}changes=")
        shown.append(operator.rstrip())
        if promises:
            shown.append(f"{_below(operator, following)}{_GAP}changes={facts}")
    return shown


def _below(operator: str, following: str) -> str:
    """The lines of the tree below an operator: to its other inputs, and to those of the operators above it."""
    depth = len(operator) - len(operator.lstrip(_BRANCHES))
    branches = operator[:depth].translate({ord("├"): "│", ord("└"): " ", ord("─"): " "})
    deeper = len(following) - len(following.lstrip(_BRANCHES)) > depth
    return branches + ("│  " if deeper else "   ")


def _is_number(cell: str) -> bool:
    return cell[:1].isdigit() and cell.replace(",", "").replace(".", "", 1).isdigit()


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]], spare: Sequence[int] = ()) -> None:
    """To standard output. A single column (a plan, a CREATE statement) is text and stays as it is. Where there is no
    room for all columns, the `spare` ones are left out, in this order."""
    if tuple(header) == ("plan",):
        show_plan([row[0] for row in rows])
    elif len(header) == 1:
        for row in rows:
            typer.echo(row[0])
    elif sys.stdout.isatty():
        target = console()
        drawn = boxed(header, rows, target.width, spare)
        if isinstance(drawn, str):
            typer.echo(drawn)
        else:
            target.print(drawn)
    else:
        for line in aligned([header, *rows]):
            typer.echo(line)
