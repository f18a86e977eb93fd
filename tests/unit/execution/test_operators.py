"""What is known of each stateful operator after a batch."""

from __future__ import annotations

import pyarrow as pa

from headwater.execution.operator_metrics import OperatorProgress, operators_after, shown_rows
from headwater.state.manifest import RunFile


def runs(*sizes: tuple[int, int]) -> tuple[RunFile, ...]:
    return tuple(RunFile(f"state/a/0/{n}.arrow", rows, size, "") for n, (rows, size) in enumerate(sizes))


def test_rows_are_counted_over_batches_and_time_is_of_the_last() -> None:
    state = {"aggregate-1": {0: {"groups": runs((3, 100), (2, 50))}, 1: {"groups": runs((1, 10))}}}
    first = operators_after({}, {("x", "operator", "aggregate-1", "0"): (10, 4, 0.5)}, state)
    assert first == {"aggregate-1": OperatorProgress(10, 4, 0.5, 6, 160)}
    reports = {
        ("y", "operator", "aggregate-1", "0"): (1, 2, 0.25),
        ("y", "operator", "aggregate-1", "1"): (5, 6, 0.5),
        ("y", "state", "aggregate-1", "1"): {},
        ("y", "operator", "join-1", "0"): (7, 0, 0.125),
    }
    second = operators_after(first, reports, state)
    assert second["aggregate-1"] == OperatorProgress(16, 12, 0.75, 6, 160)
    assert second["join-1"] == OperatorProgress(7, 0, 0.125)
    assert operators_after(second, {}, state)["aggregate-1"].seconds == 0.0


def test_some_rows_are_shown_without_columns_of_the_planner() -> None:
    rows = pa.table({"__hw_h": [1, 2, 3, 4], "who": ["ann", "x" * 600, None, "dan"], "n": [1, 2, 3, 4]})
    shown = shown_rows(rows)
    assert shown[0] == "who = ann, n = 1"
    assert shown[2] == "who = None, n = 3"
    assert len(shown) == 3
    assert len(shown[1]) == 501
