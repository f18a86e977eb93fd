"""What the user's own shell completes beside commands and options: names of jobs, topics, and what has options.

Completion says nothing rather than something wrong, and is quick about it: whoever presses Tab waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# The library calls these functions with what their annotations name, which it evaluates: not only for type checking.
import typer

__all__ = ["job_names", "option_owners", "topic_names"]

_SECONDS = 2.0


def job_names(incomplete: str) -> list[str]:
    from headwater.control.client import running_jobs

    return _matching((found.job.name for found in running_jobs() if found.job.is_running), incomplete)


def option_owners(incomplete: str) -> list[str]:
    from headwater.reference.options import option_tables

    return _matching((name for name in option_tables() if "." not in name), incomplete)


def topic_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Topics of the broker that the command would ask; with --ddl, tables of the script."""
    try:
        if ctx.params.get("ddl"):
            return _matching(_tables(ctx.params["ddl"], ctx.params.get("var")), incomplete)
        return _matching(_topics(ctx.params.get("broker")), incomplete)
    except Exception:  # noqa: BLE001 - a script with errors, a broker that is away: there is nothing to complete
        return []


def _topics(broker: str | None) -> Iterable[str]:
    from headwater.cli.kafka import admin_of, target_of

    found: dict[str, Any] = admin_of(target_of("", broker), _SECONDS).list_topics(timeout=_SECONDS).topics
    return (name for name in found if not name.startswith("__"))


def _tables(ddl: list[str], var: list[str] | None) -> Iterable[str]:
    from headwater.cli.kafka import tables_of

    return (table.name for table in tables_of(ddl, var).tables() if table.connector.identifier.endswith("kafka"))


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})
