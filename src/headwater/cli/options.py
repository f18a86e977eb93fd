"""`headwater options`: what a WITH clause and SET can say, from the very declarations that scripts are checked with."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.completion import option_owners
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from rich.table import Table

    from headwater.reference.options import OptionRow, OptionTable

__all__ = ["options"]

_HEADER = ("option", "type", "default", "meaning")
_LEAST_WIDTH = 100
_PART = "."  # 'datagen.fields' is shown with 'datagen'
Cells = tuple[str, str, str, str]


def options(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A connector, a format, or 'session' for SET. Without: all of them.",
            autocompletion=option_owners,
        ),
    ] = "",
) -> None:
    """List the options of a connector, a format or the session.

    \b
    Examples:
      headwater options
      headwater options upsert-kafka
    """
    from headwater.cli.style import show_table
    from headwater.reference.options import option_tables

    tables = {key: table for key, table in option_tables().items() if _PART not in key}
    if not name:
        show_table(("name", "kind", "what it is"), [(t.name, t.kind, t.summary) for t in tables.values()])
    elif name in tables:
        parts = [table for key, table in option_tables().items() if key.startswith(f"{name}{_PART}")]
        _show([tables[name], *parts])
    else:
        raise _unknown(name, list(tables))


def _unknown(name: str, known: Sequence[str]) -> HeadwaterError:
    from headwater.options.closest import did_you_mean

    hint = did_you_mean(name, known) or f"There are: {', '.join(known)}."
    return HeadwaterError(f"There is nothing called '{name}' that has options.", hint=hint)


def _show(tables: Sequence[OptionTable]) -> None:
    from headwater.cli.style import aligned, console

    for number, table in enumerate(tables):
        typer.echo("\n" * bool(number) + f"{table.name}: {table.summary}\n")
        rows = [_cells(row) for row in table.rows]
        if sys.stdout.isatty() and console().width >= _LEAST_WIDTH:
            console().print(_drawn(rows))
        elif sys.stdout.isatty():
            _show_below(rows, console().width)
        else:
            for line in aligned([_HEADER, *rows]):
                typer.echo(line)


def _cells(row: OptionRow) -> Cells:
    default = "required" if row.required else row.default or "–"
    choices = f" One of: {', '.join(row.choices)}." if row.choices else ""
    note = f" {row.note}" if row.note else ""
    return row.key, row.type, default, f"{row.meaning}{choices}{note}"


def _show_below(rows: Sequence[Cells], width: int) -> None:
    """Where a column of meanings would be a word wide."""
    for key, kind, default, meaning in rows:
        typer.secho(key, fg="cyan")
        facts = {"required": f"{kind}, required.", "–": f"{kind}."}.get(default, f"{kind}, default {default}.")
        typer.echo(textwrap.fill(f"{facts} {meaning}", width, initial_indent="  ", subsequent_indent="  "))


def _drawn(rows: Sequence[Cells]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="dim", pad_edge=False)
    table.add_column("option", no_wrap=True)
    table.add_column("type", style="dim")
    table.add_column("default", overflow="fold", max_width=16)
    table.add_column("meaning", ratio=1)
    for key, kind, default, meaning in rows:
        table.add_row(Text(key, "cyan"), kind, Text(default, "bold" if default == "required" else ""), Text(meaning))
    return table
