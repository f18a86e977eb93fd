"""One `headwater run`: its jobs from start to end, watched, shown and registered for other terminals."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from headwater.cli.launch import PagePort
from headwater.cli.scripts import Planned, located
from headwater.cli.select_output import RowFormat, show_query
from headwater.cli.signals import Stop, in_background
from headwater.cli.spark_output import end_session, start_spark
from headwater.cli.style import show_table
from headwater.cli.view import JobView, LogSettings, open_view, summary_lines
from headwater.control.meter import JobSample
from headwater.control.monitor import Monitor
from headwater.control.server import JobServer
from headwater.errors import HeadwaterError, JobError, KafkaUnavailableError
from headwater.plan.nodes import Scan, walk
from headwater.session.preflight import check_sources, check_start
from headwater.ui.server import PageServer

if TYPE_CHECKING:
    from headwater.execution.job import Job
    from headwater.results.query import QueryResult
    from headwater.session import Result, Session
    from headwater.session.definitions import JobPlan

__all__ = ["Runner"]

_LOOK_EVERY = 0.2


@dataclass
class Runner:
    """Start, watch, close, report: in this order. `goes_on`: the failure of one job does not end the others."""

    session: Session
    stop: Stop
    title: str
    log: LogSettings = field(default_factory=LogSettings)
    page: PagePort = field(default_factory=lambda: PagePort(False))
    goes_on: bool = False
    form: RowFormat = RowFormat.table
    view: JobView | None = None
    monitor: Monitor = field(init=False)
    server: JobServer | None = None
    page_server: PageServer | None = None
    said: set[tuple[str, str]] = field(default_factory=set)
    readings: list[JobSample] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.monitor = Monitor(self.title)
        self.session.on_job, self.session.on_batch = self.monitor.add, self.monitor.saw

    def start(self, planned: Sequence[Planned]) -> None:
        """Execute the statements in order. Spark is started before the first INSERT, and only if there is one."""
        warnings = self.session.check_checkpoints([job for part in planned for job in part.jobs])
        self._prepare(planned)
        shown = False
        for warning in warnings:
            self._say_once(warning, "warning")
        for part in planned:
            if self.stop.requested:
                return
            with located(part.script, part.statement):
                result = self.session.execute(part.statement)
            self._show(part, result)
            shown = shown or bool(result.header)
            if result.query is not None:
                self._show_query(result.query)
            # The next statement may read what this INSERT writes; that is what the setting promises.
            if result.jobs and self.session.settings["table.dml-sync"]:
                self.watch()
                if any(job.error for job in self.session.jobs):
                    return
        if not (shown or self.session.jobs or self.session.queries):
            self._say(
                "Nothing to run: there is no INSERT and no SELECT. 'headwater sql' opens a shell with the tables."
            )
        if self.view is not None:
            self.view.phase("")
            reads = any(isinstance(node, Scan) for part in planned for job in part.jobs for node in walk(job.plan))
            if reads and not self.session.keeps_state:
                self.view.say("State ends with this run; give --checkpoint DIR to be able to continue.")

    def _prepare(self, planned: Sequence[Planned]) -> None:
        """What is checked and started before the first statement, if there is anything to run."""
        jobs = [(part, job) for part in planned for job in part.jobs]
        queries = [part.outcome.query for part in planned if part.outcome.query is not None]
        made = {topic for _, job in jobs for topic in job.plan.table.connector.topics(job.plan.table)}
        # Brokers and checkpoints are looked at before Spark starts: a wrong address should be an error in a second, not
        # after ten.
        self._check_start(jobs)
        for query in queries:
            in_background(lambda plan=query.plan: check_sources(plan, made))  # type: ignore[misc]
        if jobs and not self.stop.requested:
            self._register()
        if (jobs or queries) and not self.stop.requested:
            self._start_spark()

    def _check_start(self, jobs: Sequence[tuple[Planned, JobPlan]]) -> None:
        """What would fail is known before Spark, which takes its time."""
        for part, job in jobs:
            try:
                in_background(lambda job=job: check_start(job, [other.plan for _, other in jobs]))  # type: ignore[misc]
            except (JobError, KafkaUnavailableError) as error:
                raise _failure(job.plan.table.name, part.origin(job), error) from None

    def watch(self) -> None:
        """Until all jobs have ended. A signal stops those that are left; so does the first failure, unless the run
        goes on."""
        asked = False
        while any(job.running for job in self.session.jobs):
            self._look()
            # All are asked at once and then waited for: their last batches end side by side.
            if not asked and (self.stop.requested or self._has_failed()):
                asked = True
                for job in self.session.jobs:
                    job.request_stop()
                if self.view is not None:
                    self.view.phase("Stopping after the current batch; Ctrl-C again ends at once.")
            time.sleep(_LOOK_EVERY)
        self._look()

    def close(self) -> None:
        if self.view is not None:
            self.view.close()
        end_session(self.session)
        if self.server is not None:
            self.server.close()
        if self.page_server is not None:
            self.page_server.close()

    def report(self) -> None:
        """What has been done, and the first failure as an error; all of them, if the run went on."""
        for reading, line in zip(self.readings, summary_lines(self.readings), strict=True):
            self._say(line, job=reading.progress.name)
        failed = [job for job in self.session.jobs if job.error is not None]
        if failed and not self.stop.requested:
            for job in failed[1:] if self.goes_on else ():
                self._say(str(self._failure(job)), "error", job.name)
            raise self._failure(failed[0])
        for job in failed:
            self._say(f"The current batch was abandoned: {self._failure(job)}", "warning", job.name)
        if self.stop.requested:
            self._say(self._how_to_resume())

    def _has_failed(self) -> bool:
        return not self.goes_on and any(job.error for job in self.session.jobs)

    def _register(self) -> None:
        """So that other terminals can see and stop the jobs. It is no reason not to run them if that is impossible."""
        try:
            self.server = JobServer(self.monitor)
        except (HeadwaterError, OSError) as error:
            self._say_once(f"'headwater jobs' cannot see this run: {error}", "warning")

    def _open_page(self) -> None:
        if self.page.wanted:
            self.page_server = PageServer(self.monitor, self.page.port)
            assert self.view is not None
            self.view.address("Page", self.page_server.address)

    def _start_spark(self) -> None:
        from headwater.cli.progress import ensure_jars

        ensure_jars(["spark"])
        self.view = open_view(self.title, self.log)
        self._open_page()
        self.view.phase("Starting Spark …")
        in_background(lambda: start_spark(self.session))
        self.monitor.spark_ui = self.session.spark.sparkContext.uiWebUrl or ""
        if self.monitor.spark_ui:
            self.view.address("Spark UI", self.monitor.spark_ui)

    def _show(self, part: Planned, result: Result) -> None:
        for note in result.notes:
            self._say_once(f"Note: {note}")
        if result.header:
            show_table(result.header, result.rows)
        for job, planned in zip(result.jobs, part.jobs, strict=True):
            self.monitor.place(job.name, part.origin(planned))

    def _show_query(self, query: QueryResult) -> None:
        """Instead of the view of jobs, which is there again afterwards if there are any."""
        if self.view is not None:
            self.view.close()
        mode = self.session.settings["sql-client.execution.result-mode"]
        show_query(query, self.form, mode, lambda: self.stop.requested)
        self.view = open_view(self.title, self.log) if self.session.jobs else None

    def _look(self) -> None:
        self.readings = self.monitor.readings()
        for reading in self.readings:
            if reading.progress.begins:
                self._say_once(reading.progress.begins, job=reading.progress.name)
            for warning in reading.progress.warnings:
                self._say_once(warning, "warning", reading.progress.name)
        if self.view is not None:
            self.view.show(self.readings)

    def _say_once(self, line: str, level: str = "info", job: str = "") -> None:
        if (job, line) not in self.said:
            self.said.add((job, line))
            self._say(line, level, job)

    def _say(self, line: str, level: str = "info", job: str = "") -> None:
        if self.view is not None:
            self.view.say(line, level, job)
        else:
            typer.echo(line, err=True)

    def _failure(self, job: Job) -> JobError:
        assert job.error is not None
        # The place of the INSERT, because a script may have dozens of them.
        origin = next(reading.origin for reading in self.readings if reading.progress.name == job.name)
        return _failure(job.plan.table.name, origin, job.error, job.name)

    def _how_to_resume(self) -> str:
        if not self.session.jobs:
            return "Stopped." if self.session.queries else "Stopped before anything was started."
        if not self.session.keeps_state:
            return (
                "Stopped. Nothing was kept: the next run starts from scratch. With --checkpoint DIR it would continue."
            )
        from headwater.protocol.locations import shown

        where = self.session.checkpoint or self.session.settings["execution.checkpointing.dir"]
        where = shown(where) if "://" in where else where
        return f"Stopped. State is kept in '{where}': run the same command again to continue."


def _failure(table: str, origin: str, error: HeadwaterError, job: str = "") -> JobError:
    detail = "\n".join(filter(None, [error.fact.removeprefix(f"Job '{job}' failed: "), error.detail]))
    return JobError(f"INSERT INTO {table} failed ({origin}).", detail=detail, hint=error.hint)
