"""'execution.runtime-mode' = 'batch': what a query may read."""

from __future__ import annotations

from headwater.errors import ValidationError
from headwater.plan.nodes import Mode, Scan, Write, walk

__all__ = ["check_bounded", "check_inserts_only"]


def check_bounded(plan: Write) -> None:
    """Raises if a table has no end."""
    for scan in _scans(plan):
        if not scan.table.connector.is_bounded(scan.table):
            option = "number-of-rows" if scan.table.connector.identifier == "datagen" else "scan.bounded.mode"
            raise ValidationError(
                f"Querying an unbounded table '{scan.table.name}' in batch mode is not allowed.",
                hint=f"Set '{scan.table.spelling.name(option)}' on the table, or 'execution.runtime-mode' to "
                "'streaming'.",
            )


def check_inserts_only(plan: Write) -> None:
    """Raises if a table gives changes: a sink would then get more than the final rows, which are all that batch mode
    promises. The rows of a SELECT are made final on the driver."""
    for scan in _scans(plan):
        if scan.mode is Mode.RETRACT:
            raise ValidationError(
                f"Table '{scan.table.name}' is a changelog, and batch mode reads only tables with inserts.",
                hint="Set 'execution.runtime-mode' to 'streaming': a job over bounded tables ends there as well.",
            )


def _scans(plan: Write) -> list[Scan]:
    return [node for node in walk(plan) if isinstance(node, Scan)]
