"""`headwater run`: start the jobs of some scripts and stay with them until they end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.meter import Meter, Reading
from headwater.cli.scripts import (
    Planned,
    ScriptArguments,
    Variables,
    located,
    plan_scripts,
    read_pairs,
    read_scripts,
)
from headwater.cli.stopping import Stop, in_background
from headwater.cli.style import show_table
from headwater.cli.view import View, open_view, summary_lines
from headwater.errors import JobError

if TYPE_CHECKING:
    from headwater.runtime.job import Job
    from headwater.session import Result, Session

__all__ = ["run"]

_LOOK_EVERY = 0.2


def run(
    scripts: ScriptArguments,
    checkpoint: Annotated[
        str, typer.Option(metavar="DIR", help="Where jobs keep progress and state; the next run continues from there.")
    ] = "",
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Where Spark runs. [default: local[*], this machine]")
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="A setting of Spark (spark.…=…); may be repeated.")
    ] = None,
    var: Variables = None,
) -> None:
    """Run scripts: every INSERT becomes a job.

    Ends with exit code 0 when all inputs are bounded and drained, or after Ctrl-C (a clean stop; a second one ends at
    once, with 130), and with 1 when a job fails. Rows of the 'print' connector and answers to SHOW, DESCRIBE and
    EXPLAIN go to standard output, everything else to standard error.

    \b
    Examples:
      headwater run totals.sql --checkpoint state --var kafka=127.0.0.1:9092
      headwater run - --master spark://host:7077 --conf spark.executor.memory=4g < totals.sql
    """
    from headwater.session import Session

    files = read_scripts(scripts)
    settings, variables = _spark_settings(conf), read_pairs(var, "--var")
    planned = plan_scripts(Session(variables=variables), files)
    session = Session(checkpoint, master, settings, variables)
    with Stop() as stop:
        runner = Runner(session, stop, " ".join(Path(file.name).name for file in files))
        try:
            runner.start(planned)
            runner.watch()
        finally:
            runner.close()
    runner.report()


def _spark_settings(given: list[str] | None) -> dict[str, str]:
    settings = read_pairs(given, "--conf")
    for key in settings:
        if not key.startswith("spark."):
            raise typer.BadParameter(
                f"'{key}' is not a setting of Spark: those start with 'spark.'. Settings of Headwater belong into the "
                f"script: SET '{key}' = '…';",
                param_hint="--conf",
            )
    return settings


@dataclass
class Runner:
    """One `headwater run`."""

    session: Session
    stop: Stop
    title: str
    view: View | None = None
    meters: dict[str, Meter] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)
    readings: list[Reading] = field(default_factory=list)

    def start(self, planned: Sequence[Planned]) -> None:
        """Execute the statements in order. Spark is started before the first INSERT, and only if there is one."""
        if any(part.plans for part in planned):
            self._start_spark()
        for part in planned:
            if self.stop.requested:
                return
            with located(part.script, part.statement):
                result = self.session.execute(part.statement)
            self._show(part, result)
        if self.view is not None:
            self.view.phase("")
            if not self.session.keeps_state:
                self.view.say("State ends with this run; give --checkpoint DIR to be able to continue.")

    def watch(self) -> None:
        """Until all jobs have ended. The first failure, or a signal, stops those that are left."""
        asked = False
        while any(job.running for job in self.session.jobs):
            self._look()
            if not asked and (self.stop.requested or any(job.error for job in self.session.jobs)):
                asked = True
                for job in self.session.jobs:
                    job.request_stop()
                if self.view is not None:
                    self.view.phase("Stopping after the batch at hand; Ctrl-C again ends at once.")
            time.sleep(_LOOK_EVERY)
        self._look()

    def close(self) -> None:
        if self.view is not None:
            self.view.close()
        self.session.close()

    def report(self) -> None:
        """What has been done, and the first failure as an error."""
        for line in summary_lines(self.readings):
            typer.echo(line, err=True)
        failed = [job for job in self.session.jobs if job.error is not None]
        if failed and not self.stop.requested:
            raise self._failure(failed[0])
        for job in failed:
            typer.echo(f"The batch at hand was abandoned: {self._failure(job)}", err=True)
        if self.stop.requested:
            typer.echo(self._how_to_resume(), err=True)

    def _start_spark(self) -> None:
        from headwater.cli.progress import ensure_jars
        from headwater.cli.quiet import keep_standard_error, start_spark

        ensure_jars(["spark"])
        keep_standard_error()
        self.view = open_view(self.title)
        self.view.phase("Starting Spark …")
        in_background(lambda: start_spark(self.session))

    def _show(self, part: Planned, result: Result) -> None:
        for note in result.notes:
            self._say_once(f"Note: {note}")
        if result.header:
            show_table(result.header, result.rows)
        for job, insert in zip(result.jobs, part.inserts, strict=True):
            self.meters[job.name] = Meter(job.progress, f"{part.script.name}:{insert.position.line}")

    def _look(self) -> None:
        self.readings = [meter.read() for meter in self.meters.values()]
        for reading in self.readings:
            for warning in reading.progress.warnings:
                self._say_once(f"Warning: {warning}")
        if self.view is not None:
            self.view.show(self.readings)

    def _say_once(self, line: str) -> None:
        if line not in self.said:
            self.said.add(line)
            if self.view is not None:
                self.view.say(line)
            else:
                typer.echo(line, err=True)

    def _failure(self, job: Job) -> JobError:
        assert job.error is not None
        origin = self.meters[job.name].origin
        detail = "\n".join(filter(None, [job.error.fact, job.error.detail]))
        return JobError(f"INSERT INTO {job.plan.table.name} failed ({origin}).", detail=detail, hint=job.error.hint)

    def _how_to_resume(self) -> str:
        if not self.session.jobs:
            return "Stopped before anything was started."
        if not self.session.keeps_state:
            return "Stopped. Nothing was kept: the next run starts anew. With --checkpoint DIR it would continue."
        where = self.session.checkpoint or self.session.settings["execution.checkpointing.dir"]
        return f"Stopped. State is kept in '{where}': run the same command again to continue."
