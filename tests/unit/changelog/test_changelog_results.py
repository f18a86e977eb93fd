"""What a query shows of its accumulators."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.changelog.results import AggregateResult
from headwater.errors import JobError


def test_an_average_that_does_not_fit_while_rows_are_missing_is_null() -> None:
    """-1 was retracted before it came: 120 and 120, and the count of one row."""
    numbers = {"s": pa.array([240, 7, None], pa.int64()), "c": pa.array([1, 2, 0], pa.int64())}
    assert AggregateResult("a", pa.int8(), "AVG", "s", "c").compute(numbers, 3).to_pylist() == [None, 3, None]


def test_a_sum_that_does_not_fit_is_told() -> None:
    numbers = {"s": pa.array([240], pa.int64()), "c": pa.array([2], pa.int64())}
    with pytest.raises(JobError, match="The result of SUM does not fit into int8"):
        AggregateResult("s", pa.int8(), "SUM", "s", "c").compute(numbers, 1)
