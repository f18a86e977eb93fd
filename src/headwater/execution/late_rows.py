"""Rows that operators drop because they come behind the watermark: what a task reports of them, for counts, for people
and for dead-letter topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.changelog.aggregate import ROWS
from headwater.changelog.columns import flat
from headwater.changelog.operator import ORIGIN, LateRows
from headwater.execution.operator_metrics import shown_rows

__all__ = ["late_origins", "late_report"]


def late_report(late: LateRows) -> dict[str, Any]:
    """By kind of report; empty if there are no late rows."""
    late = tuple(rows for rows in late if rows.num_rows)
    if not late:
        return {}
    origins = [flat(rows, ORIGIN).drop_null().to_pylist() for rows in late if ORIGIN in rows.column_names]
    return {
        "late": sum(map(_rows_of, late)),
        "late rows": [text for rows in late for text in shown_rows(rows)],
        "late origins": sorted({origin for of_input in origins for origin in of_input}),
    }


def _rows_of(late: pa.Table) -> int:
    """Rows may have been reduced to groups, which say how many they were."""
    if ROWS not in late.column_names:
        return int(late.num_rows)
    return int(np.abs(flat(late, ROWS).to_numpy()).sum())


def late_origins(reports: Mapping[tuple[str, ...], Any]) -> list[str]:
    """Of messages with late rows, each once: several operators may have dropped it."""
    return sorted(
        {origin for (_, kind, *_), origins in reports.items() if kind == "late origins" for origin in origins}
    )
