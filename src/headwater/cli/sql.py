"""`headwater sql`: the interactive shell; with -e, -f or standard input, the same as `headwater run`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.launch import CheckpointOption, ConfOption, Launch, MasterOption, PagePort
from headwater.cli.run import Watching, run_files
from headwater.cli.scripts import Environment, ScriptFile, Variables, read_scripts
from headwater.cli.select_output import FormatOption, RowFormat

if TYPE_CHECKING:
    from headwater.cli.shell.shell import Shell

__all__ = ["sql"]


def sql(  # noqa: PLR0913 - every option of the command is one
    scripts: Annotated[
        list[str] | None, typer.Argument(metavar="SCRIPT", help="Scripts to run first: definitions of tables.")
    ] = None,
    execute: Annotated[
        list[str] | None,
        typer.Option("--execute", "-e", metavar="SQL", help="Run this statement and exit; may be repeated."),
    ] = None,
    file: Annotated[
        list[str] | None, typer.Option("--file", "-f", metavar="FILE", help="Run this script and exit.")
    ] = None,
    checkpoint: CheckpointOption = "",
    master: MasterOption = None,
    conf: ConfOption = None,
    var: Variables = None,
    env: Environment = "",
    form: FormatOption = RowFormat.table,
) -> None:
    """An interactive shell: SELECT shows rows, INSERT starts a job.

    Jobs run in the background. `\\?` lists the commands of the shell.

    With -e or -f, or if standard input is not a terminal, it runs these statements as `headwater run` would.

    \b
    Examples:
      headwater sql tables.sql
      headwater sql tables.sql -e "SELECT * FROM orders LIMIT 5" --format csv
    """
    files = [*read_scripts(scripts or []), *_statements(execute or [], file or [])]
    interactive = not (execute or file) and sys.stdin.isatty()
    if not (execute or file or interactive):
        files += read_scripts(["-"])
    launch = Launch.of(files, checkpoint, master, conf, var, env)
    if interactive:
        _shell(files, launch, form)
    else:
        from headwater.cli.view import LogSettings

        run_files(files, launch, Watching(form, LogSettings(), PagePort(False)))


def _statements(execute: list[str], paths: list[str]) -> list[ScriptFile]:
    """Those of -f first."""
    return [*read_scripts(paths), *(ScriptFile("-e", text) for text in execute)]


def _shell(files: list[ScriptFile], launch: Launch, form: RowFormat) -> None:
    from headwater.cli.progress import ensure_jars
    from headwater.cli.shell.shell import Shell
    from headwater.control.server import registered

    ensure_jars(["spark"])
    session = launch.session()
    shell = Shell(session, form)
    shell.start_spark()
    with registered("headwater sql") as monitor:
        session.on_job, session.on_batch = monitor.add, monitor.saw
        _converse(shell, files, launch)


def _embedded_broker() -> dict[str, str]:
    """Completion finds its topics, where headwater.toml names no other broker."""
    from headwater.broker import Broker
    from headwater.cli.kafka import SERVERS

    broker = Broker.find()
    return {} if broker is None else {SERVERS: broker.bootstrap_servers}


def _converse(shell: Shell, files: list[ScriptFile], launch: Launch) -> None:
    from headwater.cli.shell.prompt import read_and_execute

    try:
        for file in files:
            shell.run_sql(file.text, file.name)
        typer.echo("\\? lists commands; statements end with ';'.")
        read_and_execute(shell, {**_embedded_broker(), **launch.project.connection})
    finally:
        shell.close()
