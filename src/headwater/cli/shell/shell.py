"""The shell: reads statements and executes them, one after the other."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING

import typer

from headwater.cli.select_output import RowFormat, show_query
from headwater.cli.shell.commands import run_command
from headwater.cli.signals import in_background
from headwater.cli.spark_output import end_session, start_spark
from headwater.cli.style import error_message, fitted, seconds, show_error, show_table
from headwater.errors import HeadwaterError
from headwater.session.preflight import check_sources, check_start
from headwater.sql import statements as s
from headwater.sql.parser import parse_script

if TYPE_CHECKING:
    from headwater.results.script import Result
    from headwater.session import Session

__all__ = ["Shell"]

_SHOWN_ROWS = 1000
# With a shuffle and an operator: what it loads and compiles, most queries need.
_WARM_UP = "SELECT who, COUNT(*) AS n FROM (VALUES ('a')) AS t(who) WHERE who <> 'b' GROUP BY who"


@dataclass
class Shell:
    """One session. Spark starts in the background while the first statement is typed."""

    session: Session
    form: RowFormat = RowFormat.table
    timing: bool = False
    ended: bool = False
    _spark: threading.Thread | None = None
    _spark_error: Exception | None = None
    _told: bool = False
    _reported: set[int] = field(default_factory=set)

    def start_spark(self) -> None:
        self._spark = threading.Thread(target=self._start_spark, name="headwater-start", daemon=True)
        self._spark.start()

    @property
    def _starting(self) -> bool:
        return self._spark is not None and self._spark.is_alive()

    @property
    def state(self) -> str:
        """For the line at the bottom of the screen."""
        if self._spark_error is not None:
            spark = "Spark did not start"
        else:
            spark = "Spark is starting" if self._starting else "Spark is ready"
        running = sum(job.running for job in self.session.jobs)
        jobs = f" · {running} job{'' if running == 1 else 's'} running" if running else ""
        return f"{spark}{jobs}"

    def execute(self, text: str) -> None:
        """What was typed. Errors are shown; they end neither the shell nor its jobs."""
        word = text.strip().rstrip(";").lower()
        try:
            if text.strip().startswith("\\"):
                run_command(self, text)
            elif word in ("help", "quit", "exit"):
                run_command(self, "\\?" if word == "help" else "\\q")
            else:
                self.run_sql(text)
        except HeadwaterError as error:
            show_error(error)
        except KeyboardInterrupt:
            typer.echo("Interrupted.", err=True)
        except Exception as error:  # noqa: BLE001 - a bug in one statement is not the end of the others
            show_error(error)

    def run_sql(self, text: str, name: str = "") -> None:
        """Statement by statement: the first that fails is the last one."""
        for statement in parse_script(text, name, self.session.variables):
            began = time.monotonic()
            with _interrupts() as asked:
                if isinstance(statement, s.Insert | s.StatementSet | s.Query | s.CreateTable):
                    self._await_spark(statement, asked)
                self._show(self.session.execute(statement), asked, _done(statement))
            if self.timing:
                typer.echo(f"Time: {seconds(time.monotonic() - began)}")
            if asked:
                return

    def report(self) -> None:
        """What has happened since the last time: Spark that did not start, jobs that have ended. Called while a line is
        typed, too."""
        if self._spark_error is not None and not self._told:
            self._told = True
            show_error(self._spark_error)
        for job in self.session.jobs:
            if not job.running and id(job) not in self._reported:
                self._reported.add(id(job))
                if job.error is not None:
                    failed = typer.style(f"Job '{job.name}' failed.", fg="red")
                    typer.echo(f"{failed}\n{fitted(error_message(job.error))}", err=True)
                else:
                    typer.echo(f"Job '{job.name}' {job.progress().status}.", err=True)

    def close(self) -> None:
        running = [job.name for job in self.session.jobs if job.running]
        if running:
            typer.echo(f"Stopping {', '.join(running)} …", err=True)
        # Spark that is still starting is not waited for: its JVM ends with this process.
        end_session(self.session)

    def _show(self, result: Result, asked: list[int], done: str) -> None:
        """`done` is said of a statement that shows nothing."""
        for note in result.notes:
            typer.echo(f"Note: {note}", err=True)
        if result.query is not None:
            mode = self.session.settings["sql-client.execution.result-mode"]
            show_query(result.query, self.form, mode, lambda: bool(asked), _SHOWN_ROWS)
        elif result.header:
            show_table(result.header, result.rows)
        for job in result.jobs:
            typer.echo(fitted(f"Job '{job.name}' runs in the background: \\jobs shows it, \\stop {job.name} ends it."))
        if not (result.query or result.header or result.jobs):
            typer.echo(done)

    def _await_spark(self, statement: s.Statement, asked: list[int]) -> None:
        if isinstance(statement, s.CreateTable) and statement.query is None:
            return
        outcome = self.session.outcome(statement)  # what is wrong need not wait
        # For its errors, not for its warnings: checkpoints of other shells may lie there as well.
        self.session.check_checkpoints(outcome.jobs)
        beside = [*(job.plan for job in outcome.jobs), *(job.plan for job in self.session.jobs)]
        for job in outcome.jobs:
            in_background(lambda job=job: check_start(job, beside))  # type: ignore[misc]
        if outcome.query is not None and self._starting:
            in_background(lambda plan=outcome.query.plan: check_sources(plan))  # type: ignore[misc]
        with _waiting("Spark is starting …") if self._starting else nullcontext():
            while self._spark is not None and self._starting:
                self._spark.join(0.05)
                if asked:
                    raise KeyboardInterrupt
        if self._spark_error is not None:
            raise self._spark_error

    def _start_spark(self) -> None:
        """And once through a query, so that the first one that is typed finds workers and classes loaded."""
        from headwater.session import Session

        try:
            start_spark(self.session)
            Session(spark_session=self.session.spark_session).sql(_WARM_UP).rows()
        except Exception as error:  # noqa: BLE001 - raised where Spark is needed
            self._spark_error = error


def _done(statement: s.Statement) -> str:
    if isinstance(statement, s.CreateTable):
        return f"Table '{statement.name}' is defined."
    return f"View '{statement.name}' is defined." if isinstance(statement, s.CreateView) else "ok"


@contextmanager
def _waiting(why: str) -> Iterator[None]:
    """On a terminal, a line that is gone afterwards."""
    shown = sys.stderr.isatty()
    typer.echo(why if shown else "", nl=False, err=True)
    try:
        yield
    finally:
        typer.echo("\r\x1b[K" if shown else "", nl=False, err=True)


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Ctrl-C fills the list instead of ending the process. A handler must not touch a lock, so the list is polled."""
    asked: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        asked.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
