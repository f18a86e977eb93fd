"""A session on one page: text → statements → catalog → plans → jobs."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headwater.catalog.catalog import Catalog
from headwater.errors import SetupError
from headwater.options.project import ProjectFile
from headwater.options.secrets import no_secret_in_errors
from headwater.options.session import SessionOptions
from headwater.options.variables import ScriptVariables
from headwater.protocol.locations import join
from headwater.results.script import Result, Results
from headwater.session.definitions import Definitions, JobPlan, QueryPlan, StatementOutcome
from headwater.session.job_statements import jobs_shown, stop_job
from headwater.session.orphaned_checkpoints import check_unused
from headwater.session.script_check import check_script, raise_faults
from headwater.session.user_functions import register_function
from headwater.spark_internals import is_classic
from headwater.sql import statements as s
from headwater.sql.parser import parse_script

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.execution.job import Job, Progress
    from headwater.execution.jvm import Jvm
    from headwater.plan.nodes import Write
    from headwater.results.query import QueryResult

__all__ = ["Result", "Results", "Session", "connect"]

_LEAST_ROWS, _MOST_ROWS = 10_000, 200_000  # of a batch whose rows are shown as they are read


@dataclass
class Session:
    """Tables, settings and running jobs. Spark is started with the first job, in `jvm` if one has been launched for it.
    `on_job` sees a job before it starts."""

    checkpoint: str = ""
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    on_batch: Callable[[Progress], None] = lambda _: None
    on_job: Callable[[Job], None] = lambda _: None
    spark_session: SparkSession | None = None
    catalog: Catalog = field(default_factory=Catalog)
    settings: SessionOptions = field(default_factory=SessionOptions)
    jobs: list[Job] = field(default_factory=list)
    queries: list[QueryResult] = field(default_factory=list)
    jvm: Jvm | None = field(default=None, repr=False)
    _own_spark: bool = False
    _temporary: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.variables, ScriptVariables):
            self.variables = ScriptVariables(self.variables)

    def __repr__(self) -> str:
        """Without variables, settings of Spark and the checkpoint's address, which may hold credentials."""
        return f"Session({self.catalog!r}, {self.settings!r}, jobs={self.jobs!r})"

    @no_secret_in_errors()
    def sql(self, text: str, name: str = "") -> Results:
        """Run a script: definitions take effect, every INSERT becomes a job that runs in the background, the rows of a
        SELECT are read from the result.

        The whole script is checked first: if anything in it is wrong, nothing of it has happened."""
        statements = parse_script(text, name, self.variables)
        # Everything is tried on a copy first, so that a script with an error in its last line has no effect.
        trial = self._definitions().copy()
        jobs = [job for statement in statements for job in trial.apply(statement)]
        warnings = self.check_checkpoints(jobs)
        results = Results(self._executed(statement) for statement in statements)
        started = next((i for i, result in enumerate(results) if result.jobs), None)
        if warnings and started is not None:
            results[started] = replace(results[started], warnings=warnings)
        return results

    @no_secret_in_errors()
    def check(self, text: str, name: str = "") -> list[Write]:
        """Validate a script without Spark and without a broker; answer with the plans of its INSERTs. The session stays
        as it is. Raises the error of the statement that is wrong, or ScriptErrors if there are several."""
        return [job.plan for job in self._checked(text, name)]

    @no_secret_in_errors()
    def explain(self, text: str, name: str = "") -> str:
        """The plans of a script's INSERTs as text."""
        return "\n\n".join(job.explain() for job in self._checked(text, name))

    def _checked(self, text: str, name: str) -> list[JobPlan]:
        checked = check_script(replace(self._definitions().copy(), names=set()), text, name, self.variables)
        raise_faults(checked.faults)
        return [job for _, outcome in checked.statements for job in outcome.jobs]

    def register(self, name: str, function: Callable[..., Any]) -> tuple[str, ...]:
        """A Python function under a name in SQL, before a built-in one of that name: a plain function with
        annotations, or what `headwater.udf`, `udtf`, `udaf` or PyFlink's decorators have made. An earlier one is
        replaced; views keep the one they were created with. Returns notes: what groups keep for an aggregate
        function."""
        return register_function(name, function, self.catalog)

    @no_secret_in_errors()
    def outcome(self, statement: s.Statement) -> StatementOutcome:
        """What a statement would give. The session stays as it is."""
        return self._definitions().copy().outcome(statement)

    def check_checkpoints(self, jobs: Sequence[JobPlan]) -> tuple[str, ...]:
        """Warnings about checkpoints that neither these jobs, which make up a script, nor earlier ones of the session
        use. Raises if one of the jobs would start from scratch although such a checkpoint may be its own."""
        return check_unused(jobs, {job.name for job in self.jobs})

    @no_secret_in_errors()
    def execute(self, statement: s.Statement) -> Result:
        if isinstance(statement, s.Show) and statement.kind == "JOBS":
            shown = jobs_shown(self.jobs)
            return Result(statement, shown.header, shown.rows)
        if isinstance(statement, s.StopJob):
            stop_job(self.jobs, statement)
        definitions = self._definitions()
        outcome = definitions.outcome(statement)
        self.settings = definitions.settings
        header, rows = (outcome.shown.header, outcome.shown.rows) if outcome.shown is not None else ((), ())
        query = self._start_query(outcome.query) if outcome.query is not None else None
        jobs = tuple(self._start(job) for job in outcome.jobs)
        return Result(statement, header, rows, jobs, outcome.notes, query=query)

    def _executed(self, statement: s.Statement) -> Result:
        """With 'table.dml-sync', an INSERT ends before the next statement; if it failed, there is none."""
        result = self.execute(statement)
        for job in result.jobs if self.settings["table.dml-sync"] else ():
            job.wait()
        return result

    def table(self, name: str) -> DataFrame:
        """The table's content as of now, as a Spark DataFrame. A changelog table has one row per key."""
        from headwater.execution.snapshot import snapshot

        return snapshot(self.catalog.table(name), self.spark, self.settings["headwater.source.chunk-rows"])

    @property
    def spark(self) -> SparkSession:
        if self.spark_session is None:
            from headwater.execution import job, spark  # noqa: F401 - a job is loaded while the JVM starts

            self.spark_session = spark.start_spark(self.master, self.conf, self.jvm)
            self._own_spark = True
        return self.spark_session

    def wait(self) -> None:
        """Until every job has ended; the first failure stops the others and is raised."""
        # Polled, because any of the threads may end first, and joining one would miss the failure of another.
        while any(job.running for job in self.jobs) and all(job.error is None for job in self.jobs):
            time.sleep(0.05)
        failed = next((job for job in self.jobs if job.error is not None), None)
        if failed is not None:
            self.stop_jobs()
            assert failed.error is not None
            raise failed.error

    def stop_jobs(self) -> None:
        for job in self.jobs:
            job.request_stop()
        for job in self.jobs:
            job.stop()

    def close(self) -> None:
        self.end()
        if self._own_spark and self.spark_session is not None:
            self.spark_session.stop()
            self.spark_session = None

    def end(self) -> None:
        """Stop all that runs, but not Spark itself, which ends with this process: nobody has to wait for that."""
        for query in self.queries:
            query.stop()
        self.stop_jobs()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = ""

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _definitions(self) -> Definitions:
        """Names of a session whose state ends with it are never used again; otherwise a job that has ended may be
        continued by another INSERT of its name."""
        names = {job.name for job in self.jobs if job.running or not self.keeps_state}
        return Definitions(self.catalog, self.settings, self.checkpoint, names)

    def _start(self, planned: JobPlan) -> Job:
        from headwater.execution.job import make_job

        location = self._location(planned)
        job = make_job(planned.name, planned.plan, self.spark, location, planned.settings, self.on_batch)
        self.on_job(job)
        self.jobs.append(job)
        return job.start()

    def _start_query(self, planned: QueryPlan) -> QueryResult:
        """Its state ends with it. It is no job of the session: nobody waits for it or continues it."""
        from headwater.execution.job import make_job
        from headwater.results.query import QueryResult

        # Forgotten when they have ended: a shell runs queries all day, and each holds its rows.
        self.queries = [query for query in self.queries if query.running]
        location = tempfile.mkdtemp(prefix="select-", dir=self._directory)
        job = make_job(planned.name, planned.plan, self.spark, location, planned.settings, lambda _: None)
        job.settings = replace(job.settings, max_rows=_batch_rows(planned))
        limit = planned.settings["sql-client.execution.max-table-result.rows"]
        query = QueryResult(planned.query, job, planned.channel, limit)
        self.queries.append(query)
        job.start()
        return query

    def _location(self, planned: JobPlan) -> str:
        return join(planned.root or self._directory, planned.name)

    @property
    def _directory(self) -> str:
        """For what ends with the session."""
        if not self._temporary:
            self._temporary = tempfile.mkdtemp(prefix="headwater-")  # which only its owner may read
        return self._temporary

    @property
    def keeps_state(self) -> bool:
        """Whether jobs can be continued after this process has ended."""
        return bool(self.checkpoint or self.settings["execution.checkpointing.dir"])


def _batch_rows(planned: QueryPlan) -> int:
    """The driver holds what a task of a batch gives, so a batch of a SELECT has an end, in batch mode as well; with a
    LIMIT, more would be read in vain."""
    allowed: int = planned.settings["headwater.batch.max-rows"]
    if not planned.query.any_rows:
        return allowed
    wanted = _MOST_ROWS if planned.query.limit is None else planned.query.limit + planned.query.offset
    return min(allowed, max(_LEAST_ROWS, min(wanted, _MOST_ROWS)))


def connect(
    spark: SparkSession | None = None,
    *,
    checkpoint: str = "",
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    project: ProjectFile | None = None,
) -> Session:
    """A session on a Spark of its own, or on the one handed in. `project` is what `read_project` has found in a
    headwater.toml; the other arguments go before it."""
    if spark is not None and not is_classic(spark):
        raise SetupError(
            "This SparkSession has no JVM in its process.",
            detail="A session of Spark Connect cannot run jobs: Headwater prepares plans in the driver's JVM.",
            hint="Use a classic session (SparkSession.builder.master(…)), or let headwater.connect() start one.",
        )
    found = project or ProjectFile()
    return Session(
        checkpoint or found.checkpoint,
        master or found.master or None,
        {**found.spark, **(conf or {})},
        ScriptVariables({**found.variables, **(variables or {})}, found.directory),
        spark_session=spark,
        catalog=Catalog(found.connection),
    )
