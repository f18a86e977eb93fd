"""Commands of the shell itself: a backslash and a word."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from headwater.cli.select_output import RowFormat
from headwater.cli.style import aligned, show_table
from headwater.errors import HeadwaterError, SqlError, ValidationError
from headwater.options.closest import did_you_mean
from headwater.sql.paths import split

if TYPE_CHECKING:
    from headwater.cli.shell.shell import Shell

__all__ = ["COMMANDS", "run_command"]

Action = Callable[["Shell", str], None]


@dataclass(frozen=True)
class Command:
    arguments: str
    meaning: str
    action: Action


def run_command(shell: Shell, text: str) -> None:
    """`text` starts with the backslash. What is not in brackets in the help must be there."""
    name, _, argument = text.strip().rstrip(";").partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        hint = did_you_mean(name, COMMANDS) or "\\? lists all commands."
        raise ValidationError(f"There is no command '{name}'.", hint=hint)
    if not argument.strip() and command.arguments and not command.arguments.startswith("["):
        raise ValidationError(f"{name} needs a {command.arguments}.", hint=f"{name}: {command.meaning}.")
    command.action(shell, argument.strip())


def _describe(shell: Shell, name: str) -> None:
    if name:
        _ask(shell, f"DESCRIBE {'.'.join(f'`{part}`' for part in split(name))};")
    else:
        _list(shell, "")


def _ask(shell: Shell, statement: str) -> None:
    """Without a place in the statement if it is wrong: nobody has typed it."""
    try:
        shell.run_sql(statement)
    except SqlError as error:
        # The caret would point into a statement that the shell has made up.
        raise HeadwaterError(error.fact, detail=error.detail, hint=error.hint) from None


def _list(shell: Shell, _: str) -> None:
    catalog = shell.session.catalog
    rows = [(table.name, "table", table.connector.identifier, _topic(table.raw_options)) for table in catalog.tables()]
    rows += [(view.name, "view", "", "") for view in catalog.views()]
    if not rows:
        typer.echo("No tables. CREATE TABLE defines one, \\i FILE runs a script.")
    else:
        show_table(("name", "kind", "connector", "topic"), sorted(rows))


def _topic(options: Mapping[str, str]) -> str:
    return options.get("topic") or options.get("topic-pattern", "")


def _jobs(shell: Shell, _: str) -> None:
    [jobs] = shell.session.sql("SHOW JOBS;")
    if jobs.rows:
        show_table(jobs.header, jobs.rows)
    else:
        typer.echo("No jobs. INSERT INTO starts one.")


def _stop(shell: Shell, name: str) -> None:
    quoted = name.replace("'", "''")
    _ask(shell, f"STOP JOB '{quoted}';")


def _timing(shell: Shell, argument: str) -> None:
    if argument.lower() not in ("", "on", "off"):
        raise ValidationError(f"'{argument}' is neither on nor off.")
    shell.timing = argument.lower() == "on" if argument else not shell.timing
    typer.echo(f"Timing is {'on' if shell.timing else 'off'}.")


def _format(shell: Shell, argument: str) -> None:
    try:
        shell.form = RowFormat(argument)
    except ValueError:
        raise ValidationError(f"'{argument}' is not a format.", hint=f"Formats: {', '.join(RowFormat)}.") from None


def _script(shell: Shell, path: str) -> None:
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise HeadwaterError(f"'{path}' cannot be read.", detail=f"{error.strerror}.") from None
    except UnicodeDecodeError:
        raise HeadwaterError(f"'{path}' cannot be read.", detail="It is not text in UTF-8.") from None
    shell.run_sql(text, path)


def _help(shell: Shell, _: str) -> None:
    del shell
    typer.echo(_wrapped("SELECT shows rows, INSERT starts a job in the background. End both with ';'."))
    typer.echo()
    lines = [(f"{name} {command.arguments}".strip(), command.meaning) for name, command in COMMANDS.items()]
    indent = " " * (4 + max(len(name) for name, _ in lines))
    for line in aligned([*lines, *_KEYS], "  "):
        typer.echo(_wrapped(line, indent))
    typer.echo()
    typer.echo(_wrapped(f"Statements: {_STATEMENTS}"))


def _wrapped(line: str, indent: str = "") -> str:
    room = min(80, shutil.get_terminal_size().columns)
    return textwrap.fill(line, room, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True)


def _quit(shell: Shell, _: str) -> None:
    shell.ended = True


_STATEMENTS = (
    "SELECT, INSERT INTO, CREATE TABLE, CREATE VIEW, DROP, ALTER, DESCRIBE, SHOW, EXPLAIN, SET, RESET, STOP JOB"
)
_KEYS = (
    ("Tab", "complete: key words, tables, columns, options, topics"),
    ("Ctrl-C", "end the query that runs, or forget what is typed; jobs go on"),
    ("Ctrl-R", "search what was typed before"),
    ("Ctrl-D", "quit"),
)

COMMANDS: Mapping[str, Command] = {
    "\\d": Command("[NAME]", "columns of a table or view; without a name, all of them", _describe),
    "\\dt": Command("", "tables and views", _list),
    "\\jobs": Command("", "running jobs of this shell and others: status, rows, lag", _jobs),
    "\\stop": Command("JOB", "stop a job after its current batch", _stop),
    "\\i": Command("FILE", "run a script", _script),
    "\\timing": Command("[on|off]", "say how long statements take", _timing),
    "\\format": Command("FORMAT", "how rows are shown: table, csv, json, jsonl", _format),
    "\\?": Command("", "this help", _help),
    "\\q": Command("", "quit", _quit),
}
