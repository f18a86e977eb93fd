"""The `headwater` command. This module is the one place where commands are registered; each lives in a file of its own.

Command modules import typer at the top and everything else inside their functions, so that `headwater --help` is quick.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from itertools import zip_longest
from typing import Annotated

import typer

from headwater.cli import (
    broker,
    check,
    checkpoint,
    demo,
    docs,
    doctor,
    fetch,
    init,
    jobs,
    modernize,
    options,
    run,
    sql,
    test_,
    topic,
    version,
)
from headwater.cli.style import show_error

__all__ = ["app", "main"]

app = typer.Typer(
    name="headwater",
    help="Flink-style SQL over Kafka topics, on Spark.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("run")(run.run)
app.command("sql")(sql.sql)
app.command("jobs")(jobs.jobs)
app.command("status")(jobs.status)
app.command("stop")(jobs.stop)
app.command("check")(check.check)
app.command("explain")(check.explain)
app.command("modernize")(modernize.modernize)
app.command("options")(options.options)
app.command("docs")(docs.docs)
app.command("test")(test_.play_cases)
app.command("demo")(demo.demo)
app.command("init")(init.init)
app.command("doctor")(doctor.doctor)
app.command("fetch")(fetch.fetch)
app.add_typer(broker.app, name="broker")
app.add_typer(topic.app, name="topic")
app.add_typer(checkpoint.app, name="checkpoint")


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=version.show, is_eager=True, help="Show all versions in use and exit.")
    ] = False,
) -> None:
    """Options of the command itself; each acts in its own callback."""


def main() -> None:
    """Run a command line. An error becomes a message on stderr and exit code 1; HEADWATER_DEBUG=1 shows its origin."""
    # A process that ends looks for garbage among all that it has loaded, more than once, before the prompt is back.
    atexit.register(gc.freeze)
    try:
        app(args=_with_port(sys.argv[1:]))
    except Exception as error:
        if os.environ.get("HEADWATER_DEBUG", "") == "1":
            raise
        show_error(error)
        sys.exit(1)


def _with_port(arguments: list[str]) -> list[str]:
    """'--ui' may stand alone: then it is '--ui=any', which the command line's library has no way to say."""
    pairs = zip_longest(arguments, arguments[1:], fillvalue="")
    return ["--ui=any" if word == "--ui" and not following.isdigit() else word for word, following in pairs]
