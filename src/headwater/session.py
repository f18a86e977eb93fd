"""One page: text → statements → catalog → plans → jobs."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.catalog.catalog import Catalog
from headwater.catalog.describe import describe_table, show_create
from headwater.errors import SqlError, ValidationError
from headwater.options.session import SessionOptions
from headwater.plan.explain import explain
from headwater.plan.planner import plan_insert
from headwater.sql import statements as s
from headwater.sql.script import parse_script

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.plan.nodes import Write
    from headwater.runtime.job import Job, Progress

__all__ = ["Result", "Session", "connect"]


@dataclass(frozen=True)
class Result:
    """What one statement gave: rows to show, a job that was started, or nothing but a note."""

    statement: s.Statement
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    jobs: tuple[Job, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class Session:
    """Tables, settings and running jobs. Spark is started with the first job. `on_job` sees a job before it starts."""

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
    _own_spark: bool = False
    _temporary: str = ""

    def sql(self, text: str, name: str = "") -> list[Result]:
        """Run a script: definitions take effect, every INSERT becomes a job that runs in the background."""
        return [self.execute(statement) for statement in parse_script(text, name, self.variables)]

    def check(self, text: str, name: str = "") -> list[Write]:
        """Validate a script without Spark and without a broker; answer with the plans of its INSERTs."""
        plans: list[Write] = []
        for statement in parse_script(text, name, self.variables):
            plans += self._define(statement)
        return plans

    def explain(self, text: str, name: str = "") -> str:
        return "\n\n".join(explain(plan) for plan in self.check(text, name))

    def execute(self, statement: s.Statement) -> Result:
        match statement:
            case s.Insert() | s.StatementSet():
                plans = self._define(statement)
                return Result(statement, jobs=tuple(self._start(plan) for plan in plans))
            case s.SetOption(key=""):
                return Result(statement, ("key", "value"), tuple(self.settings.rows()))
            case s.SetOption():
                self.settings, note = self.settings.set(statement.key, statement.value)
                return Result(statement, notes=(note,) if note else ())
            case s.Explain():
                lines = explain_statement(self, statement).splitlines()
                return Result(statement, ("plan",), tuple((line,) for line in lines))
            case s.ShowTables() | s.Describe():
                return _shown(self.catalog, statement)
        self._define(statement)
        return Result(statement)

    def table(self, name: str) -> DataFrame:
        """The table's content as of now, as a Spark DataFrame. A changelog table has one row per key."""
        from headwater.runtime.snapshot import snapshot

        return snapshot(self.catalog.table(name), self.spark)

    @property
    def spark(self) -> SparkSession:
        if self.spark_session is None:
            from headwater.runtime.spark import start_spark

            self.spark_session = start_spark(self.master, self.conf)
            self._own_spark = True
        return self.spark_session

    def wait(self) -> None:
        """Until every job has ended; the first failure stops the others and is raised."""
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
        self.stop_jobs()
        if self._own_spark and self.spark_session is not None:
            self.spark_session.stop()
            self.spark_session = None
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = ""

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _planned(self, statement: s.Insert) -> Write:
        return plan_insert(statement, self.catalog, self.settings["table.exec.source.cdc-events-duplicate"])

    def _define(self, statement: s.Statement) -> list[Write]:
        """Everything a statement does short of running it."""
        match statement:
            case s.CreateTable():
                self.catalog.create_table(statement)
            case s.CreateView():
                self.catalog.create_view(statement)
            case s.Drop():
                self.catalog.drop(statement)
            case s.SetOption():
                if statement.key:
                    self.settings, _ = self.settings.set(statement.key, statement.value)
            case s.Reset():
                self.settings = self.settings.reset(statement.key)
            case s.Insert():
                return [self._planned(statement)]
            case s.StatementSet():
                return [self._planned(insert) for insert in statement.inserts]
            case s.Explain():
                explain_statement(self, statement)
            case s.ShowTables() | s.Describe():
                _shown(self.catalog, statement)
            case _:
                raise SqlError(
                    "A query on its own shows nothing.",
                    position=statement.position,
                    hint="Write INSERT INTO a table with 'connector' = 'print' to see its rows.",
                )
        return []

    def _start(self, plan: Write) -> Job:
        from headwater.runtime.job import make_job

        number = len(self.jobs) + 1
        pipeline = self.settings["pipeline.name"]
        name = f"{pipeline}-{number}" if pipeline else f"{number}-{plan.table.name}"
        job = make_job(name, plan, self.spark, self._checkpoint_of(name), self.settings, self.on_batch)
        self.on_job(job)
        self.jobs.append(job)
        return job.start()

    def _checkpoint_of(self, job: str) -> str:
        root = self.checkpoint or self.settings["execution.checkpointing.dir"] or ""
        if not root:
            if not self._temporary:
                self._temporary = tempfile.mkdtemp(prefix="headwater-")
            root = self._temporary
        return f"{root.rstrip('/')}/{job}" if "://" in root else str(Path(root).absolute() / job)

    @property
    def keeps_state(self) -> bool:
        """Whether jobs can be continued after this process has ended."""
        return bool(self.checkpoint or self.settings["execution.checkpointing.dir"])


def connect(
    spark: SparkSession | None = None,
    *,
    checkpoint: str = "",
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
) -> Session:
    """A session on a Spark of its own, or on the one handed in."""
    return Session(checkpoint, master, conf or {}, variables or {}, spark_session=spark)


def explain_statement(session: Session, statement: s.Explain) -> str:
    target = statement.target
    if isinstance(target, s.Insert | s.StatementSet):
        return "\n\n".join(explain(plan) for plan in session._define(target))
    raise ValidationError("EXPLAIN takes an INSERT or a statement set.", hint="Write EXPLAIN INSERT INTO … SELECT ….")


def _shown(catalog: Catalog, statement: s.ShowTables | s.Describe) -> Result:
    if isinstance(statement, s.Describe):
        table = catalog.table(statement.name, statement.position)
        header = ("name", "type", "null", "key", "extras", "watermark", "comment")
        rows = (
            (r.name, r.type, "" if r.null is None else str(r.null).lower(), r.key, r.extras, r.watermark, r.comment)
            for r in describe_table(table)
        )
        return Result(statement, header, tuple(rows))
    if statement.name:
        text = show_create(catalog.get(statement.name, statement.position))
        return Result(statement, ("create statement",), ((text,),))
    views = [view.name for view in catalog.views()]
    names = views if statement.kind == "VIEWS" else [*(table.name for table in catalog.tables()), *views]
    return Result(statement, (statement.kind.lower()[:-1] + " name",), tuple((name,) for name in names))
