"""What a table must keep to when a query reads it or writes it, beyond what it needs to exist."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.catalog.tables import Table
from headwater.errors import ValidationError
from headwater.options.problems import OptionContext, Problem, problems_error

__all__ = ["check_sink", "check_source"]


def check_source(table: Table) -> None:
    """Raises if no query can read the table."""
    _raise_for(
        table, f"Unable to create a source for reading table '{table.name}'", table.connector.validate_source(table)
    )


def check_sink(table: Table) -> None:
    """Raises if no query can write the table."""
    _raise_for(table, f"Unable to create a sink for writing table '{table.name}'", table.connector.validate_sink(table))


def _raise_for(table: Table, fact: str, problems: Sequence[Problem]) -> None:
    if not problems:
        return
    context = OptionContext(table.connector.identifier, given=table.spelling.written, positions=table.option_positions)
    error = problems_error("It", [table.spelling.of(problem) for problem in problems], context)
    raise ValidationError(f"{fact}.", detail=error.detail.strip())
