"""Accumulators in the workers: what a function is called with, how they are stored, and errors that name the function.
Random histories are in tests/unit/changelog/test_changelog_user_aggregate.py."""

from __future__ import annotations

import datetime as dt
import math
import pickle
import subprocess
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from headwater.errors import JobError
from headwater.python_functions.accumulators import StoredAccumulator, decoded, encoded
from headwater.python_functions.aggregates import AccumulatorStep
from headwater.python_functions.run import FunctionSource
from headwater.python_functions.values import Row
from headwater.sql.parser import parse_type
from headwater.sql.typed import ACCUMULATOR_FORM


class Log:
    """Writes down what is called."""

    def create_accumulator(self) -> list[Any]:
        return []

    def accumulate(self, accumulator: list[Any], *row: Any) -> None:
        accumulator.append(("+", *row))

    def retract(self, accumulator: list[Any], *row: Any) -> None:
        accumulator.append(("-", *row))

    def merge(self, accumulator: list[Any], others: list[list[Any]]) -> None:
        accumulator += [other.copy() for other in others]

    def get_value(self, accumulator: list[Any]) -> str:
        return str(accumulator)


class Fragile:
    """Fails wherever it can."""

    def create_accumulator(self) -> list[Any]:
        return []

    def accumulate(self, accumulator: list[Any], value: Any) -> None:
        accumulator.append(10 // value)

    def retract(self, accumulator: list[Any], value: Any) -> None:
        accumulator.remove(value)

    def merge(self, accumulator: list[Any], others: list[list[Any]]) -> None:
        raise NotImplementedError("no merge")

    def get_value(self, accumulator: list[Any]) -> Any:
        return accumulator[0] if len(accumulator) < 2 else accumulator[2]


def step(function: Any, *arguments: str, result: str = "STRING", retracted: bool = True) -> AccumulatorStep:
    source = FunctionSource(pickled=cloudpickle.dumps(function))  # type: ignore[no-untyped-call]
    made = AccumulatorStep("f", source, tuple(map(parse_type, arguments)), parse_type(result), retracted=retracted)
    copy: AccumulatorStep = pickle.loads(pickle.dumps(made))
    return copy


def run(made: AccumulatorStep, stored: pa.Array, *changes: tuple[int, int, Any]) -> pa.Array:
    """Changes are (group, weight, value)."""
    rows = pa.array([{"f0": value} for _, _, value in changes], pa.struct([("f0", pa.float64())]))
    groups, weights = (np.array([change[place] for change in changes], dtype=np.int64) for place in (0, 1))
    return made.accumulated(stored, rows, groups, weights)


NONE = pa.nulls(1, pa.large_binary())


def test_a_batch_is_applied_net_and_inserts_come_first() -> None:
    made = step(Log(), "DOUBLE")
    stored = run(made, NONE, (0, 1, 1.0), (0, 1, 2.0))
    stored = run(made, stored, (0, -1, 1.0), (0, -1, 3.0), (0, 1, 4.0), (0, 1, 3.0), (0, 1, None))
    assert made.values(stored).to_pylist() == ["[('+', 1.0), ('+', 2.0), ('+', 4.0), ('+', None), ('-', 1.0)]"]
    stored = run(made, stored, (0, 1, math.nan), (0, -1, math.nan))
    assert made.values(stored).to_pylist()[0].count("(") == 5, "NaN is equal to NaN"


def test_a_retraction_from_an_empty_accumulator_waits_for_its_row() -> None:
    made = step(Log(), "DOUBLE")
    early = run(made, NONE, (0, -1, 1.0))
    assert decoded(early[0].as_py(), "f") == StoredAccumulator([], waiting=((1.0,),))
    late = run(made, early, (0, 1, 2.0), (0, 1, 1.0))
    assert made.values(late).to_pylist() == ["[('+', 2.0)]"]
    assert run(made, early, (0, 1, 1.0)).to_pylist() == [None]
    assert run(made, late, (0, -1, 2.0)).to_pylist() == [None], "an accumulator without rows is forgotten"


def test_as_many_rows_that_are_not_the_same_leave_something() -> None:
    made = step(Log(), "DOUBLE")
    stored = run(made, run(made, NONE, (0, 1, 1.0)), (0, -1, 2.0))
    assert decoded(stored[0].as_py(), "f").rows == 0
    assert run(made, run(made, stored, (0, 1, 2.0)), (0, -1, 1.0)).to_pylist() == [None]


def test_only_groups_with_rows_are_touched() -> None:
    made = step(Log(), "DOUBLE")
    three = pa.nulls(3, pa.large_binary())
    stored = run(made, three, (0, 1, 1.0), (2, 1, 2.0), (2, 1, 3.0))
    assert stored.is_valid().to_pylist() == [True, False, True]
    assert stored.type == three.type
    assert made.values(stored).to_pylist() == ["[('+', 1.0)]", "[]", "[('+', 2.0), ('+', 3.0)]"]
    assert run(made, three[:0]).to_pylist() == []


def test_merging_starts_with_an_empty_accumulator() -> None:
    made = step(Log(), "DOUBLE")
    stored = run(made, pa.nulls(3, pa.large_binary()), (0, 1, 1.0), (1, 1, 2.0), (2, 1, 3.0))
    merged = made.merged(stored, np.array([1, 1, 2]), 3)
    assert made.values(merged).to_pylist() == ["[]", "[[('+', 1.0)], [('+', 2.0)]]", "[[('+', 3.0)]]"]


def test_a_function_without_arguments_counts_rows() -> None:
    made = step(Log())
    assert made.values(run(made, NONE, (0, 1, 0.0), (0, 1, 0.0))).to_pylist() == ["[('+',), ('+',)]"]


def test_errors_name_function_and_row() -> None:
    made = step(Fragile(), "DOUBLE", result="BIGINT")
    stored = run(made, NONE, (0, 1, 5.0))
    for action, message in (
        (lambda: run(made, NONE, (0, 1, 0.0)), r"Function 'f' failed for \(0.0\): ZeroDivisionError"),
        (lambda: run(made, stored, (0, -1, 7.0)), r"Function 'f' failed in retract for \(7.0\): ValueError"),
        (lambda: made.values(NONE), r"Function 'f' failed in get_value for \(\[\]\): IndexError"),
        (lambda: made.merged(stored, np.array([0]), 1), r"Function 'f' failed in merge for \(\[2.0\]\): NotImpl"),
        (lambda: step(Fragile(), "DOUBLE", result="STRING").values(stored), r"for \(\[2.0\]\): .* type STRING"),
    ):
        with pytest.raises(JobError, match=message):
            action()


class Keeper(Log):
    def accumulate(self, accumulator: list[Any], *row: Any) -> None:
        accumulator.append(lambda: row)


def test_what_cannot_be_stored_or_read_is_refused() -> None:
    with pytest.raises(JobError, match="The accumulator of function 'f' cannot be stored") as caught:
        run(step(Keeper(), "DOUBLE"), NONE, (0, 1, 1.0))
    assert "Accumulate plain values" in caught.value.hint
    content = encoded(StoredAccumulator([1], 1), "f")
    assert decoded(content, "f") == StoredAccumulator([1], 1)
    with pytest.raises(JobError, match="stored by another release"):
        decoded(b"\x02" + content[1:], "f")
    gone = content.replace(b"]", b"cnosuch\nClass\n")
    with pytest.raises(JobError, match="stored accumulator of function 'f' cannot be read"):
        decoded(gone, "f")


class Point(NamedTuple):
    x: int
    y: int


VALUES = [
    {1: (2.5, None, "ä", b"x"), "s": {1, 2}, "f": frozenset({3})},
    [dt.datetime(2024, 1, 2, tzinfo=dt.timezone.utc), dt.date(2024, 1, 2), dt.time(1), dt.timedelta(1)],
    [Decimal("1.50"), Fraction(1, 3), uuid.UUID(int=5), Row([1, "a"], ["x", "y"])],
    [Counter("aab"), defaultdict(list, a=[1]), OrderedDict(b=2), deque([1, 2], 5)],
    [Point(1, 2), np.float64(1.5), bytearray(b"a")],
]


@pytest.mark.parametrize("value", VALUES, ids=["plain", "times", "numbers", "collections", "objects"])
def test_values_come_back_as_they_were(value: Any) -> None:
    back = decoded(encoded(StoredAccumulator(value, 2, 3, ((1, "a"),)), "f"), "f")
    assert back == StoredAccumulator(value, 2, 3, ((1, "a"),))
    assert repr(back) == repr(StoredAccumulator(value, 2, 3, ((1, "a"),)))


def test_arrays_of_numpy_come_back() -> None:
    array = np.arange(6).reshape(2, 3)
    assert (decoded(encoded(StoredAccumulator(array), "f"), "f").accumulator == array).all()


@pytest.mark.parametrize(
    "value",
    [print, eval, subprocess.Popen, Path("x"), np.load, decoded],
    ids=["print", "eval", "Popen", "path", "load", "decoded"],
)
def test_what_could_do_more_than_hold_a_value_is_in_no_accumulator(value: Any) -> None:
    """Neither stored, nor called by what somebody has put into a checkpoint."""
    with pytest.raises(JobError, match="cannot be stored"):
        encoded(StoredAccumulator(value), "f")
    with pytest.raises(JobError, match="cannot be read"):
        decoded(bytes([ACCUMULATOR_FORM]) + pickle.dumps((value, 0, 0, ())), "f")
