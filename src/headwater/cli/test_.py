"""`headwater test`: play case files against a real broker."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.testing import Report

__all__ = ["play_cases"]

_MARKS = {"passed": ("ok", "green"), "failed": ("FAILED", "red"), "rewritten": ("new", "yellow"), "not yet": ("-", "")}


def play_cases(
    files: Annotated[list[str], typer.Argument(metavar="CASE", help="Case files, or directories of them.")],
    rewrite: Annotated[
        bool, typer.Option("--rewrite", help="Replace the expected results in the files by the actual ones.")
    ] = False,
    broker: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Use this broker. [default: a temporary one]")
    ] = None,
    isolated: Annotated[
        bool, typer.Option("--isolated", help="Run jobs in separate processes and kill those for real. Slow.")
    ] = False,
) -> None:
    """Play case files: messages in, a script, messages out.

    Every case is played as written and in three more replay modes: all input in one batch, one message per batch, and
    with a crash in every batch. Ends with exit code 1 if any of them did not come out as expected.

    \b
    Example:
      headwater test tests/cases
    """
    from headwater.cli.progress import ensure_jars
    from headwater.testing import run_cases

    _check_found(files)
    ensure_jars(["spark"] if broker else ["broker", "spark"])
    began = time.monotonic()
    reports = run_cases(files, broker, rewrite=rewrite, isolated=isolated, report=_show, start_spark=_quiet_spark)
    failed = sum(report.verdict == "failed" for report in reports)
    cases = len({report.path for report in reports})
    verdict = f"{failed} failed" if failed else "all as expected"
    seconds = time.monotonic() - began
    typer.echo(f"{_times(cases, 'case')}, played {_times(len(reports), 'time')}: {verdict} ({seconds:.0f} s)")
    if failed:
        raise typer.Exit(1)


def _times(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _quiet_spark() -> SparkSession:
    """That of all tests, without the lines that its JVM writes."""
    from headwater.cli.spark_output import start_spark
    from headwater.session import Session
    from headwater.testing.spark import MASTER, QUICK_SPARK

    session = Session(master=MASTER, conf=QUICK_SPARK)
    start_spark(session)
    return session.spark


def _check_found(files: list[str]) -> None:
    """A misspelt name must not look like a passed test."""
    for name in files:
        path = Path(name)
        if not path.exists():
            raise HeadwaterError(f"There is no file '{name}'.")
        if path.is_dir() and not any(path.rglob("*.case")):
            raise HeadwaterError(f"There is no case file in '{name}'.", hint="Their names end in .case.")


def _show(report: Report) -> None:
    mark, colour = _MARKS[report.verdict]
    typer.secho(f"{mark:<6} ", fg=colour or None, nl=False)
    typer.echo(f"{report.path}  {report.mode.value}" + (f"  ({report.text})" if report.verdict == "not yet" else ""))
    if report.verdict == "failed":
        typer.echo("\n".join(f"       {line}" for line in report.text.splitlines()))
