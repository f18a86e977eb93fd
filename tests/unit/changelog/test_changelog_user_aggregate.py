"""Functions of the user's with stored accumulators, against the same functions evaluated over lists of all values."""

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from changelog_model import Reader, empty_state, small_hash, table
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_model import Result, live_rows, reopened
from pyspark import cloudpickle
from window_model import SECOND, events, histories

from headwater.changelog.accumulate import Accumulator
from headwater.changelog.aggregate import ROWS, AggregateOperator
from headwater.changelog.kinds import HASH
from headwater.changelog.multiset import Multiset
from headwater.changelog.operator import FINAL, Operator, Time
from headwater.changelog.ordered_values import ARRIVAL, Collected, OrderedMultiset
from headwater.changelog.session import SessionAggregate
from headwater.changelog.user_aggregate import UserAccumulator, UserResult
from headwater.changelog.window import WindowAggregateOperator
from headwater.changelog.window_assigners import Hop
from headwater.python_functions.aggregates import AccumulatorStep, AggregateStep
from headwater.python_functions.run import FunctionSource
from headwater.sql.parser import parse_type

GROUPS = pa.schema([("g", pa.string())])
ARGUMENTS = pa.struct([("f0", pa.int64()), ("f1", pa.string())])
TYPES = (parse_type("BIGINT"), parse_type("STRING"))
LISTS = parse_type("ARRAY<ROW<f0 BIGINT, f1 STRING>>")
RESULT = parse_type("STRING")
Row = tuple[Any, Any]
"""Group and value. The function's arguments are the value and a text of it."""


class Counted:
    """How often each value is there. It insists that nothing is retracted from an empty accumulator."""

    def create_accumulator(self) -> dict[Any, int]:
        return {}

    def accumulate(self, accumulator: dict[Any, int], value: int | None, text: str) -> None:
        accumulator[value, text] = accumulator.get((value, text), 0) + 1
        if not accumulator[value, text]:
            del accumulator[value, text]

    def retract(self, accumulator: dict[Any, int], value: int | None, text: str) -> None:
        assert accumulator
        accumulator[value, text] = accumulator.get((value, text), 0) - 1
        if not accumulator[value, text]:
            del accumulator[value, text]

    def merge(self, accumulator: dict[Any, int], others: list[dict[Any, int]]) -> None:
        for other in others:
            for key, count in other.items():
                accumulator[key] = accumulator.get(key, 0) + count

    def get_value(self, accumulator: dict[Any, int]) -> str:
        return str(sorted((text, count) for (_, text), count in accumulator.items()))


class Joined:
    """The texts in their order; it has nothing to say about no text at all."""

    def create_accumulator(self) -> list[str]:
        return []

    def accumulate(self, accumulator: list[str], value: int | None, text: str) -> None:
        accumulator.append(text)

    def get_value(self, accumulator: list[str]) -> str:
        return accumulator[0] + "".join(accumulator[1:])


def source(function: Any) -> FunctionSource:
    return FunctionSource(pickled=cloudpickle.dumps(function))  # type: ignore[no-untyped-call]


def accumulating(function: Any, retracted: bool) -> AccumulatorStep:
    return AccumulatorStep("f", source(function), TYPES, RESULT, retracted=retracted)


def made(function: Any, retracted: bool = True, distinct: bool = True) -> AggregateOperator:
    """f(…), and where it may be distinct f(DISTINCT …) and f(…) FILTER (WHERE value > 0): first by accumulator, then
    over lists."""
    lists = AggregateStep("f", source(function), (LISTS,), RESULT, arity=2)
    steps = [accumulating(function, retracted) for _ in range(3)]
    values = pa.field("x", ARGUMENTS)
    ordered = OrderedMultiset("o", GROUPS, values, "w", "hx")
    filtered = OrderedMultiset("p", GROUPS, pa.field("y", ARGUMENTS), "wf", "hy")
    different = Multiset("m", GROUPS, pa.field("z", ARGUMENTS), "wz", "hz", arrival=ARRIVAL)
    accumulators: list[Accumulator] = [
        UserAccumulator("a", pa.binary(), "user", "", False, "x", "w", ARGUMENTS, steps[0]),
        Accumulator("la", pa.list_(ARGUMENTS), "collected", "o"),
    ]
    results = [result("a", steps[0].values), result("la", lists)]
    collected = [Collected("la", "o", "list")]
    if distinct:
        accumulators += [
            UserAccumulator("d", pa.binary(), "user", "m", aggregate=steps[1]),
            UserAccumulator("c", pa.binary(), "user", "", False, "x", "wf", ARGUMENTS, steps[2]),
            Accumulator("ld", pa.list_(ARGUMENTS), "collected", "o"),
            Accumulator("lc", pa.list_(ARGUMENTS), "collected", "p"),
        ]
        results += [result("d", steps[1].values), result("ld", lists)]
        results += [result("c", steps[2].values), result("lc", lists)]
        collected += [Collected("ld", "o", "list", distinct=True), Collected("lc", "p", "list")]
    multisets = (ordered, filtered, different) if distinct else (ordered,)
    return AggregateOperator(
        GROUPS, tuple(accumulators), tuple(results), True, multisets, collected=tuple(collected)
    )  # fmt: skip


def result(accumulator: str, evaluate: Any) -> UserResult:
    return UserResult(f"r{accumulator}", pa.string(), "PYTHON", accumulator, evaluate=evaluate)


def fed(operator: Operator, batch: list[tuple[int, Row]], random: Random, times: list[int] = []) -> pa.Table:  # noqa: B006
    schema, rows = operator.inputs[0], []
    for place, (weight, (group, value)) in enumerate(batch):
        prefix = small_hash(group, 3) << 32
        hashed = prefix | (small_hash(value, 1 << 10) & 0xFFFFFFFF)
        arguments = {"f0": value, "f1": f"<{value}>"}
        chosen = weight if (value or 0) > 0 else 0
        columns = {HASH: prefix, "g": group, ROWS: weight, ARRIVAL: place, "w": weight, "wf": chosen, "wz": weight}
        columns |= dict.fromkeys("xyz", arguments) | dict.fromkeys(("hx", "hy", "hz"), hashed)
        rows.append(tuple(times[place] if name == "ts" else columns[name] for name in schema.names))
    random.shuffle(rows)  # the shuffle of Spark keeps no order; ARRIVAL does
    return table(schema, rows)


def assert_alike(changes: list[tuple[int, dict[str, Any]]]) -> None:
    for _, row in changes:
        for name in ("ra", "rd", "rc"):
            if name in row:
                assert row[name] == row[f"rl{name[1]}"], row


values = st.tuples(st.sampled_from("ab"), st.none() | st.integers(-1, 3))
blocks = st.lists(st.lists(st.tuples(st.booleans(), values, st.integers(0, 9)), max_size=8), max_size=8)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(blocks, st.randoms(use_true_random=False))
def test_accumulators_give_what_lists_give(history: Any, random: Random) -> None:
    """Under inserts and retractions, whatever is in a batch, also after a restart."""
    operator, reader, live = made(Counted()), Reader("g"), list[Row]()
    state, every = empty_state(operator), list[tuple[int, Row]]()
    for block in history:
        batch: list[tuple[int, Row]] = []
        for add, row, number in block:
            if add or not live:
                live.append(row)
                batch.append((1, row))
            else:
                batch.append((-1, live.pop(number % len(live))))
        every += batch
        assert_alike(reader.read(operator.step(state, (fed(operator, batch, random),), Time())))
        if random.random() < 0.3:
            state, operator = reopened(state), pickle.loads(pickle.dumps(operator))
    assert {key[0] for key in reader.values()} == {group for group, _ in live}
    whole = Reader("g")
    whole.read(operator.step(empty_state(operator), (fed(operator, every, random),), Time()))
    assert whole.values() == reader.values()
    reader.read(operator.step(state, (fed(operator, [(-1, row) for row in live], random),), Time()))
    assert not reader.values()
    assert not live_rows(state), "an emptied group leaves nothing behind"


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    st.lists(values, max_size=4), st.lists(values, min_size=1, max_size=5), st.randoms(use_true_random=False)
)  # fmt: skip
def test_rows_that_go_before_they_come(stay: list[Row], pass_by: list[Row], random: Random) -> None:
    """When all have come, the result is that of the rows that stay."""
    operator, reader = made(Counted()), Reader("g")
    state = empty_state(operator)
    changes = [(1, row) for row in [*stay, *pass_by]] + [(-1, row) for row in pass_by]
    random.shuffle(changes)
    while changes:
        size = random.randrange(1, 4)
        reader.read(operator.step(state, (fed(operator, changes[:size], random),), Time()))
        state, changes = reopened(state), changes[size:]
    assert_alike([(1, row) for row in reader.rows.values()])
    assert {key[0] for key in reader.values()} == {group for group, _ in stay}
    reader.read(operator.step(state, (fed(operator, [(-1, row) for row in stay], random),), Time()))
    assert not live_rows(state)


@settings(deadline=None, derandomize=True, max_examples=15)
@given(st.lists(st.lists(values, max_size=6), max_size=6), st.randoms(use_true_random=False))
def test_rows_are_accumulated_in_their_order(history: list[list[Row]], random: Random) -> None:
    """Over inserts, a function may depend on it; it is never asked about a group without rows."""
    operator, reader = made(Joined(), retracted=False), Reader("g")
    state = empty_state(operator)
    for rows in history:
        # A row that FILTER keeps comes first: a list of no values has no result either.
        first = [(1, (group, 1)) for group in sorted({group for group, _ in rows})]
        batch = [*first, *((1, row) for row in rows)]
        assert_alike(reader.read(operator.step(state, (fed(operator, batch, random),), Time())))
        state = reopened(state)


def test_state_does_not_grow_with_rows() -> None:
    class Total(Counted):
        def accumulate(self, accumulator: dict[Any, int], value: int | None, text: str) -> None:
            accumulator["sum"] = accumulator.get("sum", 0) + (value or 0)

        def get_value(self, accumulator: dict[Any, int]) -> str:
            return str(accumulator["sum"])

    step = accumulating(Total(), retracted=False)
    accumulator = UserAccumulator("a", pa.binary(), "user", "", False, "x", "w", ARGUMENTS, step)
    operator = AggregateOperator(GROUPS, (accumulator,), (result("a", step.values),), True)
    state, sizes = empty_state(operator), []
    for _ in range(5):
        rows = fed(operator, [(1, ("a", 1))] * 200, Random(1))
        changes = operator.step(state, (rows,), Time())
        sizes.append(len(state["groups"].runs[-1].batches[0].column("a")[0].as_py()))
    assert changes.to_pylist()[-1]["ra"] == "1000"
    assert max(sizes) < 100, "one accumulator, and no values"


GAP = 4
WINDOWS = {
    "sessions": lambda aggregate: SessionAggregate(aggregate, GAP * SECOND, "ts"),
    "hopping": lambda aggregate: WindowAggregateOperator(aggregate, Hop(4 * SECOND, 10 * SECOND), "ts"),
}


@pytest.mark.parametrize("kind", WINDOWS)
@settings(deadline=None, derandomize=True, max_examples=15)
@given(histories, st.booleans(), st.randoms(use_true_random=False))
def test_windows(kind: str, history: Any, retracting: bool, random: Random) -> None:
    """Accumulators of the instants of a session are merged. DISTINCT is over lists there."""
    operator = WINDOWS[kind](made(Counted(), retracting, distinct=kind != "sessions"))
    state, results, watermark = empty_state(operator), Result(), 0
    blocks_ = events(history, retracting)
    for number, block in enumerate([*blocks_, []]):
        times = [row[2] * SECOND for _, row in block]
        # Nothing is late: the watermark is behind all times, until the end closes all windows.
        before, watermark = watermark, 0 if number < len(blocks_) else FINAL
        batch = fed(operator, [(weight, row[:2]) for weight, row in block], random, times)
        changes = operator.step(state, (batch,), Time(before, watermark))
        results.apply(changes.cast(operator.output))
        assert_alike([(1, row) for row in changes.to_pylist()])
        state = reopened(state)
    assert not live_rows(state)
    assert bool(results.rows) == (sum(weight for block in blocks_ for weight, _ in block) > 0)


def test_sessions_merge_in_the_order_of_time() -> None:
    class Ordered(Joined):
        def merge(self, accumulator: list[str], others: list[list[str]]) -> None:
            for other in others:
                accumulator += other

    operator = SessionAggregate(made(Ordered(), False, distinct=False), GAP * SECOND, "ts")
    state, seconds = empty_state(operator), [7, 1, 4, 1, 20]
    for number, second in enumerate(seconds):
        rows = fed(operator, [(1, ("a", number))], Random(1), [second * SECOND])
        operator.step(state, (rows,), Time(0, 0))
    closed = operator.step(state, (fed(operator, [], Random(1)),), Time(0, FINAL)).to_pylist()
    assert sorted(row["ra"] for row in closed) == ["<1><3><2><0>", "<4>"]
    assert_alike([(1, row) for row in closed])
