"""Showing the rows of a SELECT: on standard output as a table, CSV, JSON or changes; live on a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from headwater.cli.signals import in_background
from headwater.cli.style import span
from headwater.errors import ValidationError

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table

    from headwater.plan.nodes import Column
    from headwater.results.query import QueryResult, Row

__all__ = ["FormatOption", "RowFormat", "show_query"]

_REDRAWN_EVERY = 0.25
_FRAME = 6  # lines of a live table that are not rows
_EDGES = 2  # columns of it that are left and right of all cells


class RowFormat(str, Enum):
    table = "table"
    csv = "csv"
    json = "json"
    jsonl = "jsonl"


FormatOption = Annotated[
    RowFormat, typer.Option("--format", help="How the rows of SELECT are written to standard output.")
]


def show_query(
    query: QueryResult, form: RowFormat, mode: str, stopped: Callable[[], bool], most: int | None = None
) -> None:
    """Until the query has ended, or is `stopped`, which is asked often. `mode` is the setting
    'sql-client.execution.result-mode'. A table has at most so many rows."""
    if form is RowFormat.json and not query.bounded:
        query.stop()
        raise ValidationError(
            "JSON is one array, and this query does not end.", hint="Use --format jsonl, or give it a LIMIT."
        )
    if form is RowFormat.table and mode == "table" and not query.bounded and sys.stdout.isatty():
        _show_live(query, stopped)
        return

    def stop_if_asked() -> None:
        if query.running and stopped():
            query.stop()

    in_background(lambda: _write(_lines(query, form, mode, most)), stop_if_asked)


def _write(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)


def _lines(query: QueryResult, form: RowFormat, mode: str, most: int | None) -> Iterator[str]:
    from headwater.results import text

    columns = query.columns
    if form is RowFormat.table and (mode == "changelog" or not query.bounded):
        return (text.change_line(change, columns) for change in query.shown_changes())
    if form is RowFormat.table:
        room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        return text.table_lines(columns, query.shown_rows(), most, room)
    if form is RowFormat.json:
        return text.json_text(columns, query.shown_rows())
    if query.updating and not query.bounded:
        write_changes = text.csv_changes if form is RowFormat.csv else text.json_changes
        return write_changes(columns, query.shown_changes())
    write = text.csv_lines if form is RowFormat.csv else text.json_lines
    if query.updating or query.query.order:
        return write(columns, query.shown_rows())
    return write(columns, (change.row for change in query.shown_changes()))  # which holds no more than it must


def _show_live(query: QueryResult, stopped: Callable[[], bool]) -> None:
    """A table that changes in place. Of rows that are only inserted, the newest."""
    from rich.console import Console

    from headwater.cli.live import ResizableLive

    console, began, footer = Console(highlight=False), time.monotonic(), [""]
    query.newest = 1000
    with ResizableLive(console, lambda: _picture(query, console, footer), auto_refresh=False) as live:
        while True:
            ended = query.wait(_REDRAWN_EVERY)
            footer[:] = [span(time.monotonic() - began), "ended" if ended else "Ctrl-C ends the query"]
            live.refresh()
            if ended:
                return
            if stopped():
                query.stop()


def _picture(query: QueryResult, console: Console, footer: Sequence[str]) -> Group:
    from rich.console import Group
    from rich.text import Text

    from headwater.results.text import change_count, row_count

    room = max(1, console.height - _FRAME)
    rows, number = query.snapshot(room)
    rows = rows[:room] if query.updating else rows[-room:]
    changes = change_count(query.changes_read) if query.updating else row_count(query.changes_read)
    facts = [*([row_count(number)] if query.updating else []), changes]
    if number > len(rows):
        facts.insert(1, f"{'first' if query.updating else 'last'} {len(rows)} shown")
    facts += footer
    return Group(
        _table(query.columns, rows, console.width), Text(" · ".join(facts), "dim", no_wrap=True, overflow="ellipsis")
    )


def _table(columns: Sequence[Column], rows: Sequence[Row], room: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from headwater.results.text import column_widths, shown_cell

    cells = [[shown_cell(value, c) for value, c in zip(row, columns, strict=True)] for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, width in zip(columns, column_widths(columns, cells, room - _EDGES), strict=True):
        title = Text.assemble((column.name, "bold"), ("\n" + str(column.type.as_nullable()), "dim"))
        justify: Literal["left", "right"] = "right" if column.type.is_numeric else "left"
        table.add_column(title, justify=justify, no_wrap=True, max_width=width)
    for line in cells:
        table.add_row(*map(Text, line))
    return table
