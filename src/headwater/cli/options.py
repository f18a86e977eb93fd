"""`headwater options`: what a WITH clause and SET can say, from the very declarations that scripts are checked with."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from rich.table import Table

    from headwater.options.base import Option

__all__ = ["options"]

HEADER = ("option", "type", "default", "meaning")
Row = tuple[str, str, str, str]


@dataclass(frozen=True)
class Family:
    """Options that belong together. `prefix` stands before their keys; `not_yet` says what to do instead of some."""

    name: str
    kind: str
    summary: str
    options: tuple[Option, ...]
    prefix: str = ""
    not_yet: Mapping[str, str] = field(default_factory=dict)


def options(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A connector, a format, or 'session' for SET. Without: what there is."),
    ] = "",
) -> None:
    """List the options of a connector, a format or the session.

    \b
    Example:
      headwater options upsert-kafka
    """
    from headwater.cli.style import show_table

    families = {family.name: family for family in _families()}
    if not name:
        show_table(("name", "kind", "what it is"), [(f.name, f.kind, f.summary) for f in families.values()])
    elif name in families:
        _show(families[name])
    else:
        raise _unknown(name, list(families))


def _families() -> list[Family]:
    from headwater.connectors.kafka.options import NOT_YET
    from headwater.connectors.registry import CONNECTORS
    from headwater.formats.registry import FORMATS
    from headwater.options.session import SESSION_OPTIONS

    not_yet = {entry.key: entry.instead for entry in NOT_YET}
    found = [Family(c.identifier, "connector", c.summary, c.options, "", not_yet) for c in CONNECTORS.values()]
    found += [Family(f.identifier, "format", f.summary, f.options, f"{f.identifier}.") for f in FORMATS.values()]
    return [*found, Family("session", "settings", "What SET knows.", SESSION_OPTIONS)]


def _unknown(name: str, known: Sequence[str]) -> HeadwaterError:
    from headwater.options.closest import did_you_mean

    hint = did_you_mean(name, known) or f"There are: {', '.join(known)}."
    return HeadwaterError(f"There is nothing called '{name}' that has options.", hint=hint)


def _show(family: Family) -> None:
    typer.echo(f"{family.name}: {family.summary}")
    for heading, rows in _parts(family):
        typer.echo(f"\n{heading}".rstrip("\n"))
        _show_rows(rows)


def _parts(family: Family) -> list[tuple[str, list[Row]]]:
    """The options themselves, and for 'datagen' those of each column."""
    from headwater.connectors.datagen import FIELD_OPTIONS

    parts = [("", [_row(family.prefix, option, family.not_yet.get(option.key, "")) for option in family.options])]
    if family.name == "datagen":
        parts.append(("For each column:", [_row("fields.<column>.", option) for option in FIELD_OPTIONS]))
    return parts


def _show_rows(rows: Sequence[Row]) -> None:
    from headwater.cli.style import aligned, console

    if sys.stdout.isatty():
        console().print(_drawn(rows))
    else:
        for line in aligned([HEADER, *rows]):
            typer.echo(line)


def _row(prefix: str, option: Option, not_yet: str = "") -> Row:
    from headwater.options.types import show

    default = "required" if option.required else show(option.default) or "–"
    choices = f" One of: {', '.join(option.choices)}." if option.choices and not option.deprecated else ""
    instead = f" Use '{prefix}{option.deprecated}'." if option.deprecated else ""
    missing = f" Not (fully) supported yet. {not_yet}" if not_yet else ""
    return f"{prefix}{option.key}", option.type.name, default, f"{option.meaning}{choices}{instead}{missing}"


def _drawn(rows: Sequence[Row]) -> Table:
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
