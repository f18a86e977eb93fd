"""`headwater check` and `headwater explain`: what a script would do, found out without a broker and without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import typer

from headwater.cli.scripts import (
    Environment,
    Planned,
    ScriptArguments,
    Variables,
    plan_scripts,
    project_of,
    read_scripts,
    variables_of,
)

if TYPE_CHECKING:
    from headwater.catalog.tables import Table, View
    from headwater.plan.nodes import Write
    from headwater.session.definitions import JobPlan, QueryPlan

__all__ = ["check", "explain"]

_SHOWN = 80


def check(scripts: ScriptArguments, var: Variables = None, env: Environment = "") -> None:
    """Validate scripts: syntax, tables, options, types and plans. Nothing is read, written or started.

    Shows every statement that is wrong with its file, line and column, and then ends with exit code 1. Notes say what
    has no effect.

    \b
    Example:
      headwater check totals.sql --var kafka=127.0.0.1:9092
    """
    from headwater.catalog.catalog import Catalog
    from headwater.cli.style import aligned
    from headwater.session.definitions import Definitions

    files = read_scripts(scripts)
    project = project_of(files, env)
    definitions = Definitions(Catalog(project.connection))
    planned = plan_scripts(definitions, files, variables_of(project, var))
    tables, views = definitions.catalog.tables(), definitions.catalog.views()
    # Once each, although several tables may cause the same.
    for note in dict.fromkeys(note for part in planned for note in part.outcome.notes):
        typer.echo(f"Note: {note}", err=True)
    for line in aligned([*_definitions(tables, views), *_inserts(planned)]):
        typer.echo(line)
    typer.echo(_verdict(planned, len(tables), len(views)))


def explain(scripts: ScriptArguments, var: Variables = None, env: Environment = "") -> None:
    """Show the plan of every INSERT and SELECT.

    For each operator: the changes it emits, the key of its rows, the state it keeps, and how the messages of a table
    are read.

    \b
    Example:
      headwater explain totals.sql --var kafka=127.0.0.1:9092
    """
    from headwater.catalog.catalog import Catalog
    from headwater.cli.style import show_plan
    from headwater.session.definitions import Definitions

    files = read_scripts(scripts)
    project = project_of(files, env)
    planned = plan_scripts(Definitions(Catalog(project.connection)), files, variables_of(project, var))
    found = [entry for part in planned for entry in _to_explain(part)]
    for number, (title, plan) in enumerate(found):
        typer.echo("\n" * bool(number) + title)
        show_plan(plan.explain().splitlines())
    if not found:
        typer.echo("No INSERT or SELECT to explain.")


def _to_explain(part: Planned) -> Iterator[tuple[str, JobPlan | QueryPlan]]:
    for job in part.jobs:
        yield f"INSERT INTO {job.insert.target}  ({part.origin(job)})", job
    if part.outcome.query is not None:
        place = f"{part.script.name}:{part.statement.position.line}"
        yield f"SELECT  ({place})", part.outcome.query


def _definitions(tables: Iterable[Table], views: Iterable[View]) -> list[tuple[str, str, str]]:
    rows = [("table", table.name, _table_facts(table)) for table in tables]
    return rows + [("view", view.name, _query(view)) for view in views]


def _table_facts(table: Table) -> str:
    options = table.raw_options
    formats = [options[key] for key in ("key.format", "format", "value.format") if key in options]
    facts = [table.connector.identifier, *(["/".join(formats)] if formats else []), _columns(len(table.columns))]
    if table.primary_key:
        facts.append(f"key ({', '.join(table.primary_key)})")
    return ", ".join(facts)


def _query(view: View) -> str:
    """What stands behind AS, on one line."""
    text = " ".join(re.split(r"\bAS\b", view.text, maxsplit=1, flags=re.IGNORECASE)[-1].split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _columns(number: int) -> str:
    return "1 column" if number == 1 else f"{number} columns"


def _inserts(planned: Iterable[Planned]) -> list[tuple[str, str, str]]:
    return [("insert", job.plan.table.name, _insert_facts(job.plan)) for part in planned for job in part.jobs]


def _insert_facts(plan: Write) -> str:
    from headwater.plan.nodes import Mode, Scan, walk

    nodes = walk(plan)
    sources = sorted({node.table.name for node in nodes if isinstance(node, Scan)})
    state = [node.remembers for node in nodes if node.remembers]
    changes = "appends" if plan.input.mode is Mode.APPEND else "updates"
    facts = [f"from {', '.join(sources)}" if sources else "from VALUES", changes]
    return ", ".join([*facts, f"state: {'; '.join(state)}" if state else "no state"])


def _verdict(planned: list[Planned], tables: int, views: int) -> str:
    inserts = sum(len(part.jobs) for part in planned)
    queries = sum(part.outcome.query is not None for part in planned)
    counted = [
        f"{number} {noun}" + ("" if number == 1 else "s")
        for number, noun in ((tables, "table"), (views, "view"), (inserts, "insert"), (queries, "select"))
        if number
    ]
    return f"ok: {', '.join(counted)}" if counted else f"ok: {len(planned)} statements"
