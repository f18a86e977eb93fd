"""`headwater modernize`: rewrites scripts with legacy connector options, `'connector.type' = 'kafka'`."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.scripts import ScriptArguments, ScriptFile, Variables, plan_scripts, read_pairs, read_scripts
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.session.modernize import Modernized

__all__ = ["modernize"]


def modernize(
    scripts: ScriptArguments,
    write: Annotated[bool, typer.Option("--write", help="Change the files instead of printing them.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Print what changes instead of the whole script.")] = False,
    var: Variables = None,
) -> None:
    """Rewrite 'connector.type' tables to current options.

    Only options change; comments and layout stay. The plans before and after are compared, and must be equal.

    \b
    Example:
      headwater modernize cars.sql --diff
    """
    from headwater.options.variables import ScriptVariables
    from headwater.session.definitions import Definitions
    from headwater.session.modernize import Modernizer

    if write and "-" in scripts:
        raise HeadwaterError("Standard input cannot be written.", hint="Leave out --write.")
    variables = ScriptVariables(read_pairs(var, "--var"))
    modernizer = Modernizer(variables)
    files = read_scripts(scripts)
    plan_scripts(Definitions(), files, variables)  # what is wrong is said with its place
    for script, result in [(file, modernizer.modernize(file.text, file.name)) for file in files]:
        if write and result.text != script.text:
            Path(script.name).write_text(result.text, encoding="utf-8")
        if diff:
            _show_diff(script, result.text)
        elif not write:
            _show_script(script.text, result.text)
        _report(script, result, "written" if write else "rewritten")


def _show_script(before: str, after: str) -> None:
    """As it is; on a terminal with the new lines in green."""
    if not sys.stdout.isatty():
        typer.echo(after, nl=False)
        return
    for line in difflib.ndiff(before.splitlines(), after.splitlines()):
        if line[0] in " +":
            typer.echo(typer.style(line[2:], fg="green") if line[0] == "+" else line[2:])


def _show_diff(script: ScriptFile, after: str) -> None:
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in difflib.unified_diff(
        script.text.splitlines(), after.splitlines(), script.name, script.name, lineterm=""
    ):
        typer.echo(typer.style(line, fg=colours[line[0]]) if line[0] in colours else line)


def _report(script: ScriptFile, result: Modernized, done: str) -> None:
    """What was done, on standard error, so that standard output is the script alone."""
    if not result.rewritten:
        typer.echo(f"{script.name}: nothing to rewrite", err=True)
        return
    for part in result.rewritten:
        typer.echo(f"{script.name}:{part.line}: {part.table}, {_counted(part.options, 'option')}", err=True)
        for key in part.dropped:
            typer.echo(f"  '{key}' is removed: it has no replacement", err=True)
    proof = f"{_counted(result.plans, 'plan')} compared: the same as before" if result.plans else "no INSERT to compare"
    typer.secho(f"{script.name}: {done}, {proof}", fg="green", err=True)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
