"""Exact sums of DOUBLE, against fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from aggregate_model import exact_sum
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.changelog.exact_sums import LEAST, LIMBS, LIMIT, ExactSums, inside, limb_names, split

INF, NAN = float("inf"), float("nan")
BOUNDS = [LEAST, math.nextafter(LEAST, 0), LIMIT, math.nextafter(LIMIT, 0)]
EDGES = [0.0, -0.0, 0.1, *BOUNDS, 5e-324, 1.7e308, 1e300, 2.0**63]
finite = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(EDGES) | st.floats(-1e6, 1e6)
any_value = finite | st.sampled_from([INF, -INF, NAN])


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def sums(values: Sequence[float], weights: Sequence[int] | None = None) -> ExactSums:
    """One group."""
    rows = pa.table({"s": pa.array(values, pa.float64())})
    if weights is not None:
        rows = rows.append_column("s_weight", pa.array(weights, pa.int64()))
    return ExactSums.of_rows(rows, "s", np.zeros(len(values), np.int64), 1)


@settings(deadline=None, derandomize=True, max_examples=400)
@given(st.lists(any_value))
def test_a_sum_is_rounded_once(values: list[float]) -> None:
    assert same(sums(values).rounded()[0].as_py(), exact_sum(values))


@settings(deadline=None, derandomize=True, max_examples=400)
@given(st.lists(any_value), st.randoms(use_true_random=False))
def test_neither_order_nor_cuts_matter(values: list[float], random: Random) -> None:
    whole = sums(values)
    shuffled = random.sample(values, len(values))
    cut = random.randrange(len(values) + 1)
    parts = sums(shuffled[:cut]) + sums(shuffled[cut:])
    assert parts.stored() == whole.stored()
    again = ExactSums.from_stored(whole.stored())
    assert again.beside == whole.beside
    assert np.array_equal(again.limbs, whole.limbs)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.lists(any_value), st.lists(any_value))
def test_what_is_retracted_leaves_nothing_behind(stay: list[float], go: list[float]) -> None:
    with_all = sums([*go, *stay, *go])
    left = with_all + sums(go, [-2] * len(go))
    assert left.stored() == sums(stay).stored()
    assert (left + sums(stay, [-1] * len(stay))).stored().null_count == 1


def test_the_two_sums_that_kept_a_residue() -> None:
    """+∞ retracted is no NaN, and 1e10 and 0.1 retracted leave 0.1 as it is."""
    assert (sums([INF]) + sums([INF, 3.0], [-1, 1])).rounded().to_pylist() == [3.0]
    assert (sums([1e10, 0.1]) + sums([1e10, 0.1, 0.1], [-1, -1, 1])).rounded().to_pylist() == [0.1]


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(finite.filter(lambda v: bool(inside(np.array([v]))[0]))))
def test_limbs_add_up_to_the_value(values: list[float]) -> None:
    limbs = split(np.array(values, dtype=np.float64))
    assert set(limbs) <= set(range(LIMBS))
    for n, value in enumerate(values):
        pieces = {k: int(limb[n]) for k, limb in limbs.items()}
        assert all(abs(piece) < 1 << 32 for piece in pieces.values())
        assert sum(Fraction(piece) * Fraction(2) ** (32 * k - 128) for k, piece in pieces.items()) == Fraction(value)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 3), st.none() | any_value, st.integers(-3, 3))))
def test_groups_weights_and_nulls(rows: list[tuple[int, float | None, int]]) -> None:
    values, weights = [v for _, v, _ in rows], [w for _, _, w in rows]
    table = pa.table({"s": pa.array(values, pa.float64()), "s_weight": pa.array(weights, pa.int64())})
    found = ExactSums.of_rows(table, "s", np.array([g for g, _, _ in rows], np.int64), 4)
    for group in range(4):
        mine = [(v, w) for g, v, w in rows if g == group and v is not None]
        one_by_one = sums([v for v, _ in mine], [w for _, w in mine])
        assert found.stored()[group] == one_by_one.stored()[0]


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.lists(any_value, min_size=1), min_size=1))
def test_partial_sums_travel_as_columns(parts: list[list[float]]) -> None:
    """What Spark's hash aggregation sends: sums of limbs, and rows with the values that have none."""
    rows = []
    for values in parts:
        fits = [v for v in values if inside(np.array([v]))[0]]
        limbs = {k: int(limb.sum()) for k, limb in split(np.array(fits, dtype=np.float64)).items()}
        rows.append((None, 0, *(limbs.get(k, 0) for k in range(LIMBS))))
        rows += [(v, 1, *[None] * LIMBS) for v in values if not inside(np.array([v]))[0]]
    schema = pa.schema([("s", pa.float64()), ("s_weight", pa.int64()), *((n, pa.int64()) for n in limb_names("s"))])
    columns = [pa.array(list(column), f.type) for column, f in zip(zip(*rows, strict=True), schema, strict=True)]
    found = ExactSums.of_rows(pa.table(columns, schema=schema), "s", np.zeros(len(rows), np.int64), 1)
    assert found.stored() == sums([v for values in parts for v in values]).stored()


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_many_of_the_largest_do_not_overflow(count: int) -> None:
    largest = math.nextafter(LIMIT, 0)
    found = sums([largest] * count, [1 << 30] * count).rounded()[0].as_py()
    assert found == float(Fraction(largest) * count * (1 << 30))
    assert sums([-largest] * count, [1 << 30] * count).rounded()[0].as_py() == -found


def test_sums_of_no_groups() -> None:
    nothing = ExactSums.from_stored(pa.array([], pa.large_binary()))
    assert len((nothing + nothing).stored()) == 0
    assert len(nothing.rounded()) == 0
