"""`headwater run`: start the jobs of some scripts and stay with them until they end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.launch import CheckpointOption, ConfOption, Launch, MasterOption, PagePort
from headwater.cli.scripts import (
    Environment,
    Planned,
    ScriptArguments,
    ScriptFile,
    Variables,
    plan_scripts,
    read_scripts,
)
from headwater.cli.select_output import FormatOption, RowFormat
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.cli.view import LogSettings
    from headwater.session import Session

__all__ = ["Watching", "run", "run_files"]


class OnFailure(str, Enum):
    stop = "stop"
    go_on = "continue"


class LogFormat(str, Enum):
    text = "text"
    json = "json"


def run(  # noqa: PLR0913 - every option of the command is one
    scripts: ScriptArguments,
    checkpoint: CheckpointOption = "",
    master: MasterOption = None,
    conf: ConfOption = None,
    var: Variables = None,
    env: Environment = "",
    form: FormatOption = RowFormat.table,
    ui: Annotated[
        str,
        typer.Option(metavar="[PORT]", help="Serve a web page and metrics on this machine; the address is printed."),
    ] = "",
    on_failure: Annotated[
        OnFailure, typer.Option(help="When a job fails, stop the others, or let them continue.")
    ] = OnFailure.stop,
    log_format: Annotated[
        LogFormat, typer.Option(help="Format of the log: text, or one line of JSON per event.")
    ] = LogFormat.text,
    log_file: Annotated[str, typer.Option(metavar="FILE", help="Append the log to this file, too.")] = "",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every batch.")] = False,
) -> None:
    """Run scripts: an INSERT becomes a job, a SELECT shows its rows.

    The rows of a SELECT are shown before the next statement. Ends with exit code 0 when all inputs are bounded and
    drained, or after Ctrl-C (a clean stop; a second one ends at once, with 130), and with 1 when a job fails. Other
    terminals see and stop the jobs with `headwater jobs`, `headwater status` and `headwater stop`. Rows of SELECT and
    of the 'print' connector and answers to SHOW, DESCRIBE and EXPLAIN go to standard output, everything else to
    standard error.

    \b
    Examples:
      headwater run totals.sql --checkpoint state --var kafka=127.0.0.1:9092
      headwater run - --master spark://host:7077 --conf spark.executor.memory=4g < totals.sql
    """
    from headwater.cli.view import LogSettings

    files = read_scripts(scripts)
    log = LogSettings(log_format is LogFormat.json, verbose, log_file)
    launch = Launch.of(files, checkpoint, master, conf, var, env)
    run_files(files, launch, Watching(form, log, _port(ui), on_failure is OnFailure.go_on))


@dataclass(frozen=True)
class Watching:
    """How a run is shown, and whether it goes on when a job fails."""

    form: RowFormat
    log: LogSettings
    port: PagePort
    goes_on: bool = False


def run_files(files: Sequence[ScriptFile], launch: Launch, watching: Watching) -> None:
    from headwater.cli.spark_output import launched

    with launched(launch, files) as jvm:
        _run_planned(plan_scripts(launch.definitions(), files, launch.variables), files, launch.session(jvm), watching)


def _run_planned(planned: Sequence[Planned], files: Sequence[ScriptFile], session: Session, watching: Watching) -> None:
    from headwater.cli.runner import Runner
    from headwater.cli.signals import Stop
    from headwater.cli.view import log_error

    title = " ".join(Path(file.name).name for file in files)
    try:
        with Stop() as stop:
            runner = Runner(
                session,
                stop,
                title,
                watching.log,
                watching.port,
                goes_on=watching.goes_on,
                form=watching.form,
            )
            try:
                runner.start(planned)
                runner.watch()
            finally:
                runner.close()
        runner.report()
    except HeadwaterError as error:
        log_error(error, watching.log)
        if watching.log.as_json:
            raise typer.Exit(1) from None
        raise


def _port(given: str) -> PagePort:
    if given in ("", "any"):
        return PagePort(bool(given))
    if not given.isascii() or not given.isdigit() or int(given) > 65535:
        raise typer.BadParameter(f"'{given}' is not a port.", param_hint="--ui")
    return PagePort(True, int(given))
