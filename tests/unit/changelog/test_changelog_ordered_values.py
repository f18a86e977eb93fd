"""FIRST_VALUE, LAST_VALUE and lists over retractions, against plain lists; variances against Python's own."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from changelog_model import Reader, empty_state, small_hash, table
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_model import reopened

from headwater.changelog.accumulate import Accumulator
from headwater.changelog.aggregate import ROWS, AggregateOperator
from headwater.changelog.exact_sums import weight_name
from headwater.changelog.kinds import HASH
from headwater.changelog.operator import FINAL, Time
from headwater.changelog.ordered_values import ARRIVAL, Collected, OrderedMultiset, order_of
from headwater.changelog.results import AggregateResult
from headwater.changelog.session import SessionAggregate
from headwater.changelog.variance import SPREADS
from headwater.changelog.window import WindowAggregateOperator
from headwater.changelog.window_assigners import Tumble

GROUPS = pa.schema([("g", pa.string())])
Row = tuple[str, Any]
SECOND = 1_000_000


class Lists:
    """The values of each group in the order they came; a retraction takes the oldest of its value."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = defaultdict(list)
        self.missing: dict[str, Counter[Any]] = defaultdict(Counter)

    def change(self, weight: int, row: Row) -> None:
        group, value = row
        if weight > 0 and self.missing[group][value]:
            self.missing[group][value] -= 1
        elif weight > 0:
            self.rows[group].append(value)
        elif value in self.rows[group]:
            self.rows[group].remove(value)
        else:
            self.missing[group][value] += 1

    def expected(self) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        answers = {}
        for group, values in self.rows.items():
            if len(values) - self.missing[group].total() > 0:
                there = [v for v in values if v is not None]
                counts = sorted(Counter(there).items())
                distinct = list(dict.fromkeys(there))
                first, last = (there[0], there[-1]) if there else (None, None)
                joined = ";".join(there) if there else None
                answers[(group,)] = (first, last, joined, values, distinct or None, counts)
        return answers


def ordered(inserts_only: bool = False) -> AggregateOperator:
    values = OrderedMultiset("o", GROUPS, pa.field("x", pa.string()), "w", "hx")
    nulls = OrderedMultiset("n", GROUPS, pa.field("y", pa.string()), "wn", "hy")
    text, int64 = pa.string(), pa.int64()
    picked = [Accumulator(name, text, "collected", "o") for name in ("f", "l")]
    picked += [Accumulator(order_of(name), int64, "collected", "o") for name in ("f", "l")]
    if inserts_only:
        picked = [Accumulator("f", text, "first"), Accumulator("l", text, "last")]
    lists = [Accumulator(n, pa.list_(text), "collected", m) for n, m in (("s", "o"), ("d", "o"), ("a", "n"))]
    results = (
        AggregateResult("first", text, "FIRST_VALUE", "f"),
        AggregateResult("last", text, "LAST_VALUE", "l"),
        AggregateResult("listed", text, "LISTAGG", "s", separator=";"),
        AggregateResult("array", pa.list_(text), "ARRAY_AGG", "a"),
        AggregateResult("different", pa.list_(text), "ARRAY_AGG", "d"),
        AggregateResult("bag", pa.map_(text, pa.int32()), "COLLECT", "s"),
    )
    collected = [Collected("s", "o", "list"), Collected("d", "o", "list", distinct=True), Collected("a", "n", "list")]
    if not inserts_only:
        collected += [Collected("f", "o", "first"), Collected("l", "o", "last")]
    return AggregateOperator(GROUPS, (*picked, *lists), results, True, (values, nulls), collected=tuple(collected))


def fed(operator: AggregateOperator, batch: list[tuple[int, Row]], spread: int, random: Random) -> pa.Table:
    schema = operator.inputs[0]
    rows = []
    for place, (weight, (group, value)) in enumerate(batch):
        prefix = small_hash(group, spread) << 32
        hashed = prefix | (small_hash(value, spread) & 0xFFFFFFFF)
        given_ = {HASH: prefix, "g": group, ROWS: weight, "x": value, "y": value, "wn": weight, ARRIVAL: place}
        given_ |= {"w": 0 if value is None else weight, "hx": hashed, "hy": hashed, "f": value, "l": value}
        rows.append(tuple(given_[name] for name in schema.names))
    random.shuffle(rows)
    return table(schema, rows)


rows = st.tuples(st.sampled_from("ab"), st.none() | st.sampled_from("xyz"))
history = st.lists(st.lists(st.tuples(st.sampled_from([1, 1, -1]), rows), max_size=8), max_size=6)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(history, st.sampled_from([1, 3, 1 << 20]), st.randoms(use_true_random=False))
def test_values_keep_the_order_they_came_in(batches: list[list[tuple[int, Row]]], spread: int, random: Random) -> None:
    operator, reader, lists = ordered(), Reader("g"), Lists()
    state = empty_state(operator)
    for batch in batches:
        reader.read(operator.step(state, (fed(operator, batch, spread, random),), Time()))
        for weight, row in batch:
            lists.change(weight, row)
        assert {k: (*v[:5], sorted(v[5])) for k, v in reader.values().items()} == lists.expected()
        if random.random() < 0.3:
            state = reopened(state)
    left = [(-1, (g, v)) for g, values in lists.rows.items() for v in values]
    left += [(1, (g, v)) for g, counter in lists.missing.items() for v in counter.elements()]
    reader.read(operator.step(state, (fed(operator, left, spread, random),), Time()))
    assert not reader.values()
    assert sum(t.rows for t in state.values()) == 0, "nothing is left of rows that are gone"


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(st.lists(rows, max_size=6), max_size=5), st.randoms(use_true_random=False))
def test_of_inserts_first_and_last_are_accumulators(batches: list[list[Row]], random: Random) -> None:
    operator, reader, lists = ordered(inserts_only=True), Reader("g"), Lists()
    state = empty_state(operator)
    for batch in batches:
        reader.read(operator.step(state, (fed(operator, [(1, row) for row in batch], 3, random),), Time()))
        for row in batch:
            lists.change(1, row)
        assert {k: (*v[:5], sorted(v[5])) for k, v in reader.values().items()} == lists.expected()


def test_json() -> None:
    members = pa.array([[{"k": "b", "v": "1"}, {"k": "a", "v": '"x"'}, {"k": "b", "v": "2"}], None])
    made = AggregateResult("r", pa.string(), "JSON_OBJECTAGG", "v").compute({"v": members}, 2)
    assert made.to_pylist() == ['{"a":"x","b":2}', "{}"]
    made = AggregateResult("r", pa.string(), "JSON_ARRAYAGG", "v").compute(
        {"v": pa.array([["1", '"x"', "null"], None])}, 2
    )
    assert made.to_pylist() == ['[1,"x",null]', "[]"]


def spreads(dtype: pa.DataType) -> AggregateOperator:
    sums = [Accumulator(name, pa.float64(), "sum") for name in ("s", "q", "r")]
    results = [AggregateResult(f, dtype, f, "s", "c", ("q", "r")) for f in sorted(SPREADS)]
    return AggregateOperator(GROUPS, (*sums, Accumulator("c", pa.int64(), "sum")), tuple(results), True)


def squared(value: float) -> tuple[float, float]:
    square = value * value
    return square, float(Fraction(value) ** 2 - Fraction(square))


def spread_rows(batch: list[tuple[int, float]]) -> pa.Table:
    names = [HASH, "g", ROWS, "s", "q", "r", "c", *map(weight_name, "sqr")]
    types = [pa.int64(), pa.string(), pa.int64(), *[pa.float64()] * 3, *[pa.int64()] * 4]
    rows = [(0, "g", w, v, *squared(v), w, w, w, w) for w, v in batch]
    return table(pa.schema(list(zip(names, types, strict=True))), rows)


@pytest.mark.parametrize("offset", [0, 1e9, 1e15])
def test_variances_are_exact_under_retractions(offset: float) -> None:
    random, operator, reader = Random(5), spreads(pa.float64()), Reader("g")
    state, live = empty_state(operator), []
    for _ in range(60):
        batch = []
        for _ in range(random.randrange(1, 5)):
            if live and random.random() < 0.45:
                batch.append((-1, live.pop(random.randrange(len(live)))))
            else:
                live.append(offset + random.randrange(1, 1000) / 8)
                batch.append((1, live[-1]))
        reader.read(operator.step(state, (spread_rows(batch),), Time()))
        if not live:
            assert reader.values() == {}
            continue
        population = statistics.pvariance(list(map(Fraction, live)))
        sample = statistics.variance(list(map(Fraction, live))) if len(live) > 1 else None
        expected = [math.sqrt(population), sample and math.sqrt(sample), float(population), sample and float(sample)]
        assert reader.values() == {("g",): tuple(expected)}


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (pa.int32(), (1, 1, 1, 2)),
        (pa.decimal128(38, 6), tuple(map(Decimal, ("1.247219", "1.527525", "1.555556", "2.333333")))),
        (pa.float32(), (1.247219, 1.527525, 1.555556, 2.333333)),
    ],
    ids=str,
)
def test_variances_have_the_type_of_an_average(dtype: pa.DataType, expected: tuple[Any, ...]) -> None:
    operator, reader = spreads(dtype), Reader("g")
    reader.read(operator.step(empty_state(operator), (spread_rows([(1, 1.0), (1, 2.0), (1, 4.0)]),), Time()))
    assert reader.values()["g",] == (expected if dtype != pa.float32() else pytest.approx(expected, rel=1e-6))


def test_values_that_are_not_finite_make_nan() -> None:
    operator, reader = spreads(pa.float64()), Reader("g")
    infinite = spread_rows([(1, 1.0), (1, 2.0)]).set_column(3, "s", pa.array([1.0, math.inf]))
    reader.read(operator.step(empty_state(operator), (infinite,), Time()))
    assert all(math.isnan(v) for v in reader.values()["g",])


def test_a_session_has_a_distinct_value_once() -> None:
    """At whatever times it comes."""
    inner = ordered()
    operator = SessionAggregate(inner, 5 * SECOND, "t")
    batch = [("y", 3), ("x", 1), ("x", 2), ("y", 4), ("x", 20), (None, 3)]
    rows = fed(inner, [(1, ("a", value)) for value, _ in batch], 3, Random(0))
    times = [batch[place][1] * SECOND for place in rows.column(ARRIVAL).to_pylist()]
    rows = rows.append_column("t", pa.array(times, pa.timestamp("us"))).select(operator.inputs[0].names)
    found = operator.step(empty_state(operator), (rows,), Time(None, FINAL)).to_pylist()
    assert sorted(row["different"] for row in found) == [["x"], ["x", "y"]]
    assert sorted(row["listed"] for row in found) == ["x", "x;x;y;y"]


@pytest.mark.parametrize("kind", ["tumble", "session"])
def test_windows_and_sessions_keep_the_order(kind: str) -> None:
    """Within a window as rows come; in a session by time first, because sessions merge."""
    inner = ordered()
    operator: WindowAggregateOperator | SessionAggregate
    if kind == "tumble":
        operator = WindowAggregateOperator(inner, Tumble(10 * SECOND), "t")
    else:
        operator = SessionAggregate(inner, 5 * SECOND, "t")
    state, results = empty_state(operator), []
    batches = [[("x", 3), ("y", 1), (None, 2)], [("z", 2), ("x", 12), ("y", 11)]]
    for number, batch in enumerate(batches):
        rows = fed(inner, [(1, ("a", value)) for value, _ in batch], 3, Random(0))
        order = rows.column(ARRIVAL).to_pylist()
        times = pa.array([batch[place][1] * SECOND for place in order], pa.timestamp("us"))
        time = Time(None, None) if number == 0 else Time(None, FINAL)
        given_ = rows.append_column("t", times).select(operator.inputs[0].names)
        results += operator.step(state, (given_,), time).to_pylist()
    found = {row["window_start"].second: (row["first"], row["last"], row["listed"], row["array"]) for row in results}
    if kind == "tumble":
        assert found == {0: ("x", "z", "x;y;z", ["x", "y", None, "z"]), 10: ("x", "y", "x;y", ["x", "y"])}
    else:
        assert found == {1: ("y", "x", "y;z;x", ["y", None, "z", "x"]), 11: ("y", "x", "y;x", ["y", "x"])}
    assert sum(table.rows for table in state.values()) == 0, "nothing is left of windows that are over"
