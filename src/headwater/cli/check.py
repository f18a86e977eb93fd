"""`headwater check` and `headwater explain`: what a script would do, found out without a broker and without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from headwater.cli.scripts import Planned, ScriptArguments, Variables, plan_scripts, read_pairs, read_scripts

if TYPE_CHECKING:
    from headwater.catalog.tables import Table, View
    from headwater.plan.nodes import Write

__all__ = ["check", "explain"]

_SHOWN = 80


def check(scripts: ScriptArguments, var: Variables = None) -> None:
    """Validate scripts: syntax, tables, options, types and plans. Nothing is read, written or started.

    Ends with exit code 1 at the first problem, shown with its file, line and column.

    \b
    Example:
      headwater check totals.sql --var kafka=127.0.0.1:9092
    """
    from headwater.cli.style import aligned
    from headwater.session import Session

    session = Session(variables=read_pairs(var, "--var"))
    planned = plan_scripts(session, read_scripts(scripts))
    for line in aligned([*_definitions(session.catalog.tables(), session.catalog.views()), *_inserts(planned)]):
        typer.echo(line)
    typer.echo(_verdict(planned, len(session.catalog.tables()), len(session.catalog.views())))


def explain(scripts: ScriptArguments, var: Variables = None) -> None:
    """Show the plan of every INSERT.

    One line per operator: the changes it emits, the key of its rows and the state it keeps.

    \b
    Example:
      headwater explain totals.sql --var kafka=127.0.0.1:9092
    """
    from headwater.plan.explain import explain as explained
    from headwater.session import Session

    session = Session(variables=read_pairs(var, "--var"))
    planned = plan_scripts(session, read_scripts(scripts))
    found = [(p, insert, plan) for p in planned for insert, plan in zip(p.inserts, p.plans, strict=True)]
    for number, (part, insert, plan) in enumerate(found):
        typer.echo("\n" * bool(number) + f"INSERT INTO {insert.target}  ({part.script.name}:{insert.position.line})")
        typer.echo(explained(plan))
    if not found:
        typer.echo("No INSERT to explain.")


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
    return [("insert", plan.table.name, _insert_facts(plan)) for part in planned for plan in part.plans]


def _insert_facts(plan: Write) -> str:
    from headwater.plan.explain import state_of
    from headwater.plan.nodes import Scan, walk
    from headwater.plan.traits import Mode, mode_of

    nodes = walk(plan)
    sources = sorted({node.table.name for node in nodes if isinstance(node, Scan)})
    state = [state_of(node) for node in nodes if state_of(node)]
    changes = "appends" if mode_of(plan.input) is Mode.APPEND else "updates"
    facts = [f"from {', '.join(sources)}" if sources else "from VALUES", changes]
    return ", ".join([*facts, f"state: {'; '.join(state)}" if state else "no state"])


def _verdict(planned: list[Planned], tables: int, views: int) -> str:
    inserts = sum(len(part.plans) for part in planned)
    counted = [
        f"{number} {noun}" + ("" if number == 1 else "s")
        for number, noun in ((tables, "table"), (views, "view"), (inserts, "insert"))
        if number
    ]
    return f"ok: {', '.join(counted)}" if counted else f"ok: {len(planned)} statements"
