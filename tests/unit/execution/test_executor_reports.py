"""What tasks report decides on the state that is committed: one report too few or too many fails the batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from headwater.errors import JobError
from headwater.execution.executor import BatchExecutor
from headwater.execution.worker import Reports
from headwater.protocol.records import RunFile, StateFiles

OLD, NEW = RunFile("state/a/0/old.arrow", 1, 1, ""), RunFile("state/a/0/new.arrow", 2, 2, "")
BEFORE: StateFiles = {"a": {0: {"rows": (OLD,)}, 1: {"rows": (OLD,)}}}


def executor(reports: Reports) -> BatchExecutor:
    """Without Spark: the accumulator's value is all it looks at."""
    context = SimpleNamespace(accumulator=lambda *_: SimpleNamespace(value=reports))
    spark = cast("Any", SimpleNamespace(sparkContext=context))
    return BatchExecutor("job", cast("Any", None), spark, cast("Any", None), cast("Any", None), cast("Any", None))


def reported(attempt: str, partition: int, task: int) -> Reports:
    where = ("a", str(partition))
    return {(attempt, "state", *where): {"rows": [NEW]}, (attempt, "state task", *where, str(task)): None}


def test_state_is_what_tasks_of_this_attempt_report_and_else_as_it_was() -> None:
    reports = {**reported("2-x", 0, 5), **reported("1-failed", 1, 6)}
    assert executor(reports)._state(BEFORE, "2-x") == {"a": {0: {"rows": (NEW,)}, 1: {"rows": (OLD,)}}}
    assert BEFORE["a"][0]["rows"] == (OLD,)


def test_two_tasks_that_change_one_state_partition_fail_the_batch() -> None:
    """The report of one of them would replace that of the other, and with it what the other did."""
    reports = {**reported("1-x", 0, 5), **reported("1-x", 0, 6)}
    with pytest.raises(JobError, match="State partition 0 of 'a' was changed by two tasks"):
        executor(reports)._state(BEFORE, "1-x")
    of_two_attempts = {**reported("1-failed", 0, 5), **reported("1-x", 0, 6)}
    assert executor(of_two_attempts)._state(BEFORE, "1-x")["a"][0] == {"rows": (NEW,)}


def test_a_task_that_reports_nothing_fails_the_batch() -> None:
    reports: Reports = {("1-x", "written", "0"): 7, ("1-failed", "written", "1"): 7, ("1-x", "late", "a", "0"): 1}
    executor(reports)._check_reports("1-x", 1)
    with pytest.raises(JobError, match="Of 2 tasks that wrote a batch, 1 have reported"):
        executor(reports)._check_reports("1-x", 2)
