"""The `headwater` command. This module is the one place where commands are registered; each lives in a file of its own.

Command modules import typer at the top and everything else inside their functions, so that `headwater --help` is quick.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from headwater.cli import broker, check, demo, fetch, modernize, options, run, test_, topic, version
from headwater.errors import HeadwaterError

__all__ = ["app", "main"]

app = typer.Typer(
    name="headwater",
    help="Flink-style SQL over Kafka topics, on Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("run")(run.run)
app.command("check")(check.check)
app.command("explain")(check.explain)
app.command("modernize")(modernize.modernize)
app.command("options")(options.options)
app.command("test")(test_.play_cases)
app.command("demo")(demo.demo)
app.command("fetch")(fetch.fetch)
app.add_typer(broker.app, name="broker")
app.add_typer(topic.app, name="topic")


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=version.show, is_eager=True, help="Show all versions in use and exit.")
    ] = False,
) -> None:
    """Options of the command itself; each acts in its own callback."""


def main() -> None:
    """Run a command line. An error becomes a message on stderr and exit code 1; HEADWATER_DEBUG=1 shows its origin."""
    try:
        app()
    except Exception as error:
        if os.environ.get("HEADWATER_DEBUG", "") == "1":
            raise
        typer.secho("Error: ", fg="red", bold=True, nl=False, err=True)
        typer.echo(_message(error), err=True)
        sys.exit(1)


def _message(error: Exception) -> str:
    if isinstance(error, HeadwaterError):
        return str(error)
    return f"{type(error).__name__}: {error}\nHint: This is a bug in Headwater. HEADWATER_DEBUG=1 shows where it arose."
