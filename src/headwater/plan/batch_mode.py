"""'execution.runtime-mode' = 'batch': what a query may read."""

from __future__ import annotations

from headwater.errors import ValidationError
from headwater.plan.nodes import Mode, Scan, Write, walk

__all__ = ["check_bounded"]


def check_bounded(plan: Write, *, changes: bool = False) -> None:
    """Raises if a table has no end, or gives changes: then there are no final results after one batch. A result that is
    shown takes `changes`."""
    for scan in (node for node in walk(plan) if isinstance(node, Scan)):
        name = scan.table.name
        if not scan.table.connector.is_bounded(scan.table):
            option = "number-of-rows" if scan.table.connector.identifier == "datagen" else "scan.bounded.mode"
            raise ValidationError(
                f"Querying an unbounded table '{name}' in batch mode is not allowed.",
                hint=f"Set '{scan.table.spelling.name(option)}' on the table, or 'execution.runtime-mode' to "
                "'streaming'.",
            )
        if scan.mode is Mode.RETRACT and not changes:
            raise ValidationError(
                f"Table '{name}' gives changes, and batch mode reads only tables of inserts.",
                hint="Set 'execution.runtime-mode' to 'streaming': a job over bounded tables ends there as well.",
            )
