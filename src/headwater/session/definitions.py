"""What the statements of a script define, short of running anything: tables, views, settings, and INSERTs as plans.

An INSERT becomes a job of a name. The name is that of its directory in the checkpoint, so it may not depend on where in
the script the INSERT is written: it is 'pipeline.name' if that is set, else the target table. In a statement set it is
'pipeline.name' and the target table. Two INSERTs of one name are refused if their state is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal

from sqlglot import exp

from headwater.catalog.catalog import Catalog
from headwater.connectors.result import Channel, ResultConnector
from headwater.errors import HeadwaterError, SqlError, ValidationError
from headwater.execution.explain import explain
from headwater.options.session import SessionOptions, check_job_name, is_declared
from headwater.options.session_flink import DIFFERS
from headwater.plan.batch_mode import check_bounded, check_inserts_only
from headwater.plan.build import PlanRules
from headwater.plan.fingerprint import Fingerprint, fingerprint_of
from headwater.plan.hints import hint_notes
from headwater.plan.nodes import Write
from headwater.plan.planner import plan_insert
from headwater.plan.query import PlannedQuery, plan_query
from headwater.plan.sink_columns import SinkRules
from headwater.plan.validation import check_table, view_columns
from headwater.plan.windows import EmitRules
from headwater.session.create_table_as import as_select, insert_of
from headwater.session.show import Shown, explain_notes, plans_shown, shown
from headwater.session.user_functions import bound_functions, create_function, drop_function
from headwater.sql import statements as s

__all__ = ["Definitions", "JobPlan", "QueryPlan", "StatementOutcome"]

_Where = Literal["alone", "in a set"]  # an INSERT, and whether it is one of a statement set
_NO_SAVEPOINT = "WITH SAVEPOINT adds nothing: a job that stops keeps its state in its checkpoint."


@dataclass(frozen=True)
class JobPlan:
    """One INSERT, ready to become a job, with the settings as they were at that place of the script. `root` is the
    directory of checkpoints, '' for one that ends with the session."""

    name: str
    insert: s.Insert
    plan: Write
    settings: SessionOptions
    root: str = field(default="", repr=False)  # a URI may hold credentials

    @property
    def fingerprint(self) -> Fingerprint:
        return fingerprint_of(self.plan, self.settings["table.local-time-zone"])

    def explain(self) -> str:
        return explain(self.plan, self.settings["table.local-time-zone"])


@dataclass(frozen=True)
class QueryPlan:
    """A SELECT, ready to run, with the settings as they were at that place of the script."""

    statement: s.Query
    query: PlannedQuery
    settings: SessionOptions
    channel: Channel
    name: str = "query"

    @property
    def plan(self) -> Write:
        return self.query.plan

    def explain(self) -> str:
        return explain(self.plan.input, self.settings["table.local-time-zone"])


@dataclass(frozen=True)
class StatementOutcome:
    """What a statement gave: jobs to start, a table to show, notes for the user, a query whose rows are to be shown."""

    jobs: tuple[JobPlan, ...] = ()
    shown: Shown | None = None
    notes: tuple[str, ...] = ()
    query: QueryPlan | None = None


@dataclass
class Definitions:
    """`checkpoint` is what the session was started with; it goes before the setting. `names` are taken by jobs."""

    catalog: Catalog = field(default_factory=Catalog)
    settings: SessionOptions = field(default_factory=SessionOptions)
    checkpoint: str = field(default="", repr=False)
    names: set[str] = field(default_factory=set)

    def copy(self) -> Definitions:
        return replace(self, catalog=self.catalog.copy(), names=set(self.names))

    @property
    def root(self) -> str:
        return str(self.checkpoint or self.settings["execution.checkpointing.dir"] or "")

    def apply(self, statement: s.Statement) -> list[JobPlan]:
        """Everything a statement does short of running it; the plans of its INSERTs."""
        return list(self.outcome(statement).jobs)

    def outcome(self, statement: s.Statement) -> StatementOutcome:
        """The same, with what there is to show."""
        statement = bound_functions(statement, self.catalog)
        outcome = self._outcome(statement)
        notes = tuple(note for query in _queries(statement) for note in hint_notes(query))
        return replace(outcome, notes=(*outcome.notes, *notes)) if notes else outcome

    def _outcome(self, statement: s.Statement) -> StatementOutcome:
        match statement:
            case s.CreateTable():
                return self._create_table(statement)
            case s.Insert() | s.StatementSet():
                return StatementOutcome(self._inserts(statement))
            case s.SetOption(key=""):
                return StatementOutcome(shown=Shown(("key", "value"), tuple(self.settings.rows())))
            case s.SetOption():
                return StatementOutcome(notes=self.set(statement))
            case s.Reset():
                self.settings = self.settings.reset(statement.key)
                return StatementOutcome()
            case s.Explain():
                return StatementOutcome(shown=explained(self, statement), notes=explain_notes(statement))
            case s.Show() | s.Describe():
                return StatementOutcome(shown=shown(self.catalog, statement))
            case s.CreateDatabase() | s.CreateFunction() | s.NoEffect():
                return StatementOutcome(notes=self._with_notes(statement))
            case s.StopJob():
                return StatementOutcome(notes=(_NO_SAVEPOINT,) if statement.with_savepoint else ())
            case s.Query():
                return StatementOutcome(query=self._query(statement))
        self._define(statement)
        return StatementOutcome()

    def _define(self, statement: s.Statement) -> None:
        """Statements that change the catalog alone."""
        match statement:
            case s.CreateView():
                self._create_view(statement)
            case s.AlterTable():
                self.catalog.alter_table(statement)
            case s.AlterSchema() | s.DropFromSchema() | s.RenameColumn():
                self._alter_schema(statement)
            case s.AlterView():
                self._alter_view(statement)
            case s.Drop():
                self.catalog.drop(statement)
            case s.DropDatabase():
                self.catalog.drop_database(statement)
            case s.DropFunction():
                drop_function(statement, self.catalog)
            case s.Use():
                self.catalog.use(statement.database, statement.place)
            case s.Quit():
                pass
            case _:
                raise AssertionError(f"nothing is known of {type(statement).__name__}")

    def _with_notes(self, statement: s.CreateDatabase | s.CreateFunction | s.NoEffect) -> tuple[str, ...]:
        """Statements of which a part, or everything, has no effect."""
        match statement:
            case s.NoEffect():
                return (statement.note,)
            case s.CreateFunction():
                return create_function(statement, self.catalog, self.settings["python.files"] or "")
        if not (statement.if_not_exists and statement.name in self.catalog.databases):
            self.catalog.databases.create(statement.name)
        why = f"of database '{statement.name}' has no effect: a database is a name in front of names."
        return tuple(f"'{key}' {why}" for key in statement.options)

    def _create_table(self, statement: s.CreateTable) -> StatementOutcome:
        """The table is there only if all of it is valid. The INSERT of CREATE TABLE … AS is a job like any other."""
        trial = self.catalog.copy()
        complete = statement if statement.query is None else as_select(statement, trial)
        # On a copy: a table whose watermark or computed columns turn out to be wrong must not stay in the catalog.
        check_table(trial.create_table(complete), complete)
        table = self.catalog.create_table(complete)
        jobs = () if statement.query is None else self._inserts(insert_of(statement, self.catalog))
        return StatementOutcome(jobs, notes=table.notes)

    def _create_view(self, statement: s.CreateView) -> None:
        trial = self.catalog.copy()
        view_columns(trial.create_view(statement), trial)
        self.catalog.create_view(statement)

    def _alter_schema(self, statement: s.SchemaChange) -> None:
        changed = self.catalog.copy().alter_schema(statement)
        if changed is not None:
            check_table(*changed)
            self.catalog.alter_schema(statement)

    def _alter_view(self, statement: s.AlterView) -> None:
        trial = self.catalog.copy()
        view_columns(trial.alter_view(statement), trial)
        self.catalog.alter_view(statement)

    def set(self, statement: s.SetOption) -> tuple[str, ...]:
        """A note for the user if the option changes nothing here."""
        try:
            self.settings, note = self.settings.set(statement.key, statement.value)
        except ValidationError as error:
            raise _located(error, statement) from error
        return (note,) if note else ()

    def _inserts(self, statement: s.Insert | s.StatementSet) -> tuple[JobPlan, ...]:
        if isinstance(statement, s.Insert):
            return (self._job(statement, "alone"),)
        jobs = []
        for insert in statement.inserts:
            try:
                jobs.append(self._job(insert, "in a set"))
            except ValidationError as error:  # which would be shown at the set, and may be about any of its INSERTs
                raise insert.error(error.fact, detail=error.detail, hint=error.hint) from error
        return tuple(jobs)

    def _job(self, insert: s.Insert, where: _Where) -> JobPlan:
        plan = self._plan(insert)
        pipeline = self.settings["pipeline.name"]
        target = plan.table.name
        wanted = f"{pipeline}-{target}" if pipeline and where == "in a set" else pipeline or target
        try:
            check_job_name(wanted)
        except ValueError as error:
            fact, hint = (
                f"A job cannot be named after table '{target}'.",
                "SET 'pipeline.name' before the INSERT.",
            )
            raise insert.error(fact, detail=str(error), hint=hint) from None
        # Taken when it is planned and not when it starts: the second of two INSERTs of a script must already see the
        # first.
        name = self._free_name(wanted, insert, where)
        self.names.add(name)
        return JobPlan(name, insert, plan, self.settings, self.root)

    @property
    def _rules(self) -> PlanRules:
        settings = self.settings
        sinks = SinkRules(
            settings["table.exec.sink.not-null-enforcer"],
            settings["table.exec.sink.type-length-enforcer"],
            settings["table.exec.sink.upsert-materialize"],
        )
        return PlanRules(
            settings["table.exec.source.cdc-events-duplicate"],
            sinks,
            joins_without_equality=settings["headwater.join.without-equality"],
            state_ttl=settings["table.exec.state.ttl"] // timedelta(milliseconds=1),
            emit=EmitRules.of(settings),
        )

    def _plan(self, insert: s.Insert) -> Write:
        plan = plan_insert(insert, self.catalog, self._rules)
        if self.settings["execution.runtime-mode"] == "batch":
            check_bounded(plan)
            check_inserts_only(plan)
        return plan

    def _query(self, statement: s.Query) -> QueryPlan:
        """In batch mode, a table without an end is read up to what is there now."""
        batch = self.settings["execution.runtime-mode"] == "batch"
        catalog = self.catalog.until_now() if batch else self.catalog
        sink = ResultConnector()
        found = plan_query(statement, catalog, sink, self._rules)
        if batch:
            check_bounded(found.plan)
        return QueryPlan(statement, found, self.settings, sink.channel)

    def _free_name(self, wanted: str, insert: s.Insert, where: _Where) -> str:
        """Without a directory that outlives the session nothing can be mixed up, and a number is good enough."""
        if wanted not in self.names:
            return wanted
        if not self.root:
            return next(name for i in range(2, len(self.names) + 3) if (name := f"{wanted}-{i}") not in self.names)
        hint = "SET 'pipeline.name' = '…' before each of them, or write one INSERT with UNION ALL."
        if where == "in a set":
            hint = "Write one INSERT with UNION ALL, or SET 'pipeline.name' before an INSERT outside the statement set."
        raise insert.error(
            f"Two INSERTs would be the same job '{wanted}'.",
            detail="A job is named by 'pipeline.name', or else by the table it writes, and its checkpoint by the job.",
            hint=hint,
        )


def _queries(statement: s.Statement) -> Iterator[exp.Expr]:
    match statement:
        case s.StatementSet():
            yield from (insert.query for insert in statement.inserts)
        case s.Insert() | s.Query() | s.CreateView():
            yield statement.query
        case s.CreateTable() if statement.query is not None:
            yield statement.query
        case s.Explain():
            yield from _queries(statement.target) if isinstance(statement.target, s.Statement) else [statement.target]


def _located(error: HeadwaterError, statement: s.SetOption) -> SqlError:
    """With a caret under the value, or under the key if nobody knows it."""
    known = is_declared(statement.key) or statement.key in DIFFERS
    position = (statement.value_position if known else statement.key_position) or statement.position
    script = statement.script.name if statement.script is not None else ""
    return SqlError(error.fact, position=position, script=script, detail=error.detail, hint=error.hint)


def explained(definitions: Definitions, statement: s.Explain) -> Shown:
    target = statement.target
    # On a copy and without names: EXPLAIN must not take the name of the job that it explains.
    trial = replace(definitions.copy(), names=set())
    if isinstance(target, s.Insert | s.StatementSet):
        return plans_shown(job.explain() for job in trial.apply(target))
    query = s.Query(query=target, text=statement.text, position=statement.position, script=statement.script)
    return plans_shown([trial._query(query).explain()])
