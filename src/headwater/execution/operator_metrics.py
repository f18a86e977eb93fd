"""What each stateful operator of a job has done, from the reports of its tasks and the state that they left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headwater.dates import dated_values
from headwater.protocol.records import StateFiles
from headwater.sql.reserved_columns import is_reserved

__all__ = ["OperatorProgress", "operators_after", "shown_rows"]

_SHOWN_ROWS = 3
_SHOWN_CHARACTERS = 500


@dataclass(frozen=True)
class OperatorProgress:
    """Rows of this run. `seconds` are those of the last batch, added up over its tasks: reading state, the step, and
    writing state."""

    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0


def operators_after(
    before: Mapping[str, OperatorProgress], reports: Mapping[tuple[str, ...], Any], state: StateFiles
) -> dict[str, OperatorProgress]:
    """`reports` have (rows in, rows out, seconds) under (attempt, 'operator', operator, state partition)."""
    found: dict[str, OperatorProgress] = {}
    # From the state of the commit and not from reports: an operator without rows in this batch reports nothing, and
    # still has state.
    for operator, partitions in state.items():
        runs = [run for tables in partitions.values() for files in tables.values() for run in files]
        found[operator] = replace(
            before.get(operator, OperatorProgress()),
            seconds=0.0,
            state_rows=sum(run.rows for run in runs),
            state_bytes=sum(run.bytes for run in runs),
        )
    for operator, rows_in, rows_out, seconds in _reported(reports):
        mine = found.get(operator, replace(before.get(operator, OperatorProgress()), seconds=0.0))
        found[operator] = replace(
            mine,
            rows_in=mine.rows_in + rows_in,
            rows_out=mine.rows_out + rows_out,
            seconds=mine.seconds + seconds,
        )
    return {**before, **found}


def _reported(reports: Mapping[tuple[str, ...], Any]) -> Iterator[tuple[str, int, int, float]]:
    for (_, kind, *where), report in reports.items():
        if kind == "operator":
            yield (where[0], *report)


def shown_rows(rows: Any) -> list[str]:
    """The first few of an Arrow table, for people: without the planner's own columns."""
    names = [name for name in rows.column_names if not is_reserved(name)]
    first = rows.slice(0, _SHOWN_ROWS)
    columns = [[f"{name} = {value!s}" for value in dated_values(first.column(name))] for name in names]
    strings = [", ".join(row) for row in zip(*columns, strict=True)]
    return [text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…" for text in strings]
