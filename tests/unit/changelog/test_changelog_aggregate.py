"""GROUP BY over a changelog with retractions, against a recount."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from aggregate_model import Fed
from changelog_model import empty_state
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.changelog.accumulate import Accumulator
from headwater.changelog.aggregate import ROWS, AggregateOperator
from headwater.changelog.kinds import DELETE, HASH, INSERT, KIND, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.operator import Time
from headwater.changelog.results import AggregateResult
from headwater.errors import JobError
from headwater.state.table import StateTable

DOMAINS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-128, -1, 0, 1, 127]),
    (pa.int16(), [-32768, -3, 0, 7, 32767]),
    (pa.int32(), [-(1 << 31), -1, 5, (1 << 31) - 1]),
    (pa.int64(), [-(1 << 40), -1, 0, 1, 2, 3, 1 << 40]),
    (pa.float64(), [-0.5, 0.1, 0.3, 1e10, 1e300, -1e-300, math.inf]),
    (pa.float32(), [-0.5, 0.25, 1.5, math.inf]),
    (pa.decimal128(10, 2), [Decimal("-1.28"), Decimal("0.00"), Decimal("99999999.99")]),
    (pa.decimal128(38, 18), [Decimal("1E-18"), Decimal("12345678901234567.5")]),
    (pa.string(), ["", "a", "B", "ä", "a much longer text than the others"]),
    (pa.large_binary(), [b"", b"\x00", b"\xff"]),
    (pa.date32(), [date(1969, 12, 31), date(2024, 2, 29)]),
    (pa.timestamp("us"), [datetime.fromisoformat("0001-01-01"), datetime.fromisoformat("2024-01-01T00:00:00.000001")]),
    (pa.timestamp("us", "UTC"), [datetime(2024, 1, 1, tzinfo=timezone.utc) + timedelta(hours=h) for h in range(4)]),
    (pa.bool_(), [True, False]),
]
IDS = [str(dtype) for dtype, _ in DOMAINS]


def batches(random: Random, fed: Fed, domain: list[Any], removing: float) -> list[tuple[int, tuple[Any, Any]]]:
    """Rows that come and rows of those that go again, possibly within the batch."""
    live, batch = list(fed.live), []
    for _ in range(random.randrange(1, 40)):
        if live and random.random() < removing:
            batch.append((-1, live.pop(random.randrange(len(live)))))
        else:
            row = (random.choice(["a", "b", None]), random.choice([None, *domain]))
            live.append(row)
            batch.append((1, row))
    return batch


@pytest.mark.parametrize("spread", [2, 1 << 20], ids=["colliding", "spread"])
@pytest.mark.parametrize(("dtype", "domain"), DOMAINS, ids=IDS)
def test_all_functions_under_updates_and_deletes(dtype: pa.DataType, domain: list[Any], spread: int) -> None:
    random, fed = Random(7), Fed(dtype, spread=spread)
    for number in range(40):
        fed.feed(batches(random, fed, domain, 0.85 if number % 7 == 0 else 0.45))
        assert fed.reader.values() == fed.expected()
    fed.feed([(-1, row) for row in fed.live])
    assert fed.reader.values() == {}
    assert sum(t.rows for t in fed.state.values()) == 0, "empty groups leave nothing behind"


@pytest.mark.parametrize(
    ("seed", "histories"), [(3, 12), pytest.param(4, 30, marks=pytest.mark.long)], ids=["few", "many"]
)
@pytest.mark.parametrize(("dtype", "domain"), DOMAINS, ids=IDS)
def test_rows_that_go_before_they_come(dtype: pa.DataType, domain: list[Any], seed: int, histories: int) -> None:
    random = Random(seed)
    if pa.types.is_integer(dtype):  # the average of what is there for the moment must fit
        domain = [-3, 0, 1, 5]
    for _ in range(histories):
        fed = Fed(dtype)
        stay = [(random.choice("ab"), random.choice([None, *domain])) for _ in range(random.randrange(4))]
        pass_by = [(random.choice("ab"), random.choice([None, *domain])) for _ in range(random.randrange(1, 5))]
        changes = [(1, row) for row in [*stay, *pass_by]] + [(-1, row) for row in pass_by]
        random.shuffle(changes)
        while changes:
            size = random.randrange(1, 3)
            fed.feed_out_of_order(changes[:size])
            changes = changes[size:]
        fed.live = stay
        assert fed.reader.values() == fed.expected()
        fed.feed([(-1, row) for row in stay])
        assert sum(t.rows for t in fed.state.values()) == 0, "what has gone leaves nothing behind"


@pytest.mark.parametrize("distinct", [True, False], ids=["distinct", "plain"])
@pytest.mark.parametrize(("dtype", "domain"), DOMAINS, ids=IDS)
def test_all_functions_over_inserts(dtype: pa.DataType, domain: list[Any], distinct: bool) -> None:
    random, fed = Random(7), Fed(dtype, retracting=False, distinct=distinct)
    for _ in range(20):
        fed.feed(batches(random, fed, domain, 0.0))
        assert fed.reader.values() == fed.expected()


@pytest.mark.parametrize("dtype", [pa.int64(), pa.string(), pa.decimal128(10, 2)], ids=str)
def test_without_groups_there_is_one_row(dtype: pa.DataType) -> None:
    random, fed = Random(7), Fed(dtype, grouped=False)
    domain = dict(zip(IDS, (d for _, d in DOMAINS), strict=True))[str(dtype)]
    for number in range(30):
        fed.feed(batches(random, fed, domain, 0.85 if number % 5 == 0 else 0.45))
        assert fed.reader.values() == fed.expected()


rows = st.tuples(st.none() | st.sampled_from("ab"), st.none() | st.integers(-2, 2))


@settings(deadline=None, derandomize=True, max_examples=80)
@given(st.lists(st.lists(st.tuples(st.booleans(), rows), max_size=8), max_size=8))
def test_the_outcome_does_not_depend_on_the_batches(history: list[list[tuple[bool, Any]]]) -> None:
    cut, whole, live = Fed(pa.int32()), Fed(pa.int32()), []
    everything = []
    for block in history:
        batch = []
        for add, row in block:
            if add or row in live:
                batch.append((1 if add else -1, row))
                live.append(row) if add else live.remove(row)
        if batch:
            cut.feed(batch)
            assert cut.reader.values() == cut.expected()
        everything += batch
    if everything:
        whole.feed(everything)
    assert whole.reader.values() == cut.reader.values()


def test_kinds() -> None:
    fed = Fed(pa.int64())
    assert [k for k, _ in fed.feed([(1, ("a", 5))])] == [INSERT]
    assert [k for k, _ in fed.feed([(1, ("a", 6))])] == [UPDATE_BEFORE, UPDATE_AFTER]
    assert [k for k, _ in fed.feed([(-1, ("a", 5)), (-1, ("a", 6))])] == [DELETE]
    fed = Fed(pa.int64(), before=False)
    fed.feed([(1, ("a", 5))])
    assert [k for k, _ in fed.feed([(1, ("a", 6))])] == [UPDATE_AFTER]


def only(operator: AggregateOperator, function: str) -> AggregateOperator:
    """The same operator, showing less."""
    return replace(operator, results=tuple(r for r in operator.results if r.function == function))


def test_an_unchanged_result_gives_nothing_though_the_state_moves_on() -> None:
    fed = Fed(pa.int64(), distinct=False)
    fed.operator = only(fed.operator, "MAX")
    fed.feed([(1, ("a", 5))])
    assert fed.feed([(1, ("a", 4))]) == []
    assert fed.feed([(-1, ("a", 5))])[-1] == (UPDATE_AFTER, {"g": "a", "rmax": 4})


def test_rows_that_come_and_go_within_a_batch_leave_no_trace() -> None:
    fed = Fed(pa.int64())
    assert fed.feed([(1, ("a", 5)), (-1, ("a", 5))]) == []
    assert sum(t.rows for t in fed.state.values()) == 0


def test_a_group_without_functions_is_distinct() -> None:
    """SELECT DISTINCT: a row per group, as long as the group has rows."""
    operator = AggregateOperator(pa.schema([("g", pa.string())]), (), (), True)
    state = {spec.name: StateTable(spec) for spec in operator.tables}

    def feed(*weights: int) -> list[int]:
        given = pa.table({HASH: [1] * len(weights), "g": ["a"] * len(weights), ROWS: list(weights)})
        kinds: list[int] = operator.step(state, (given,), Time()).column(KIND).to_pylist()
        return kinds

    assert feed(1, 1) == [INSERT]
    assert feed(1) == []
    assert feed(-1, -1) == []
    assert feed(-1) == [DELETE]


BIG = (1 << 63) - 1


@pytest.mark.parametrize("retracting", [True, False])
def test_a_sum_that_does_not_fit_stops_the_job_within_a_batch(retracting: bool) -> None:
    fed = Fed(pa.int64(), retracting=retracting)
    with pytest.raises(JobError, match="A sum does not fit into int64 any more"):
        fed.feed([(1, ("a", BIG)), (1, ("a", 1))])


@pytest.mark.parametrize("retracting", [True, False])
def test_a_sum_that_does_not_fit_stops_the_job_across_batches(retracting: bool) -> None:
    fed = Fed(pa.int64(), retracting=retracting, distinct=False)
    fed.feed([(1, ("a", BIG))])
    with pytest.raises(JobError, match="A sum does not fit into int64 any more"):
        fed.feed([(1, ("a", 1))])


def test_a_distinct_sum_that_does_not_fit_stops_the_job() -> None:
    fed = Fed(pa.int64())
    fed.feed([(1, ("a", BIG))])
    with pytest.raises(JobError, match="A sum does not fit"):
        fed.feed([(1, ("a", BIG - 1))])


def test_large_values_that_cancel_out_are_fine() -> None:
    fed = Fed(pa.int64())
    fed.feed([(1, ("a", BIG)), (1, ("a", -BIG)), (1, ("a", BIG)), (1, ("a", -BIG)), (1, ("b", 1))])
    assert fed.reader.values() == fed.expected()


HUGE = Decimal("9" * 36 + ".99")


@pytest.mark.parametrize("together", [True, False])
def test_a_decimal_sum_that_does_not_fit_stops_the_job(together: bool) -> None:
    fed = Fed(pa.decimal128(38, 2), distinct=False)
    fed.operator = only(fed.operator, "SUM")
    first: list[tuple[int, tuple[Any, Any]]] = [(1, ("a", HUGE))]
    second: list[tuple[int, tuple[Any, Any]]] = [(1, ("a", HUGE))]
    if not together:
        fed.feed(first)
    with pytest.raises(JobError, match=r"A sum does not fit into decimal128\(38, 2\)"):
        fed.feed(first + second if together else second)


def test_a_decimal_average_that_does_not_fit_stops_the_job() -> None:
    fed = Fed(pa.decimal128(38, 2), distinct=False)
    with pytest.raises(JobError, match=r"The result of AVG does not fit into decimal128\(38, 6\)"):
        fed.feed([(1, ("a", HUGE))])


def test_a_result_narrower_than_its_sum_is_checked() -> None:
    """SUM(TINYINT) is a TINYINT in Flink: what does not fit is told, not cut."""
    operator = AggregateOperator(
        pa.schema([("g", pa.string())]),
        (Accumulator("c", pa.int64(), "sum"), Accumulator("s", pa.int64(), "sum")),
        (AggregateResult("sum", pa.int8(), "SUM", "s", "c"),),
        True,
    )
    state = {spec.name: StateTable(spec) for spec in operator.tables}

    def feed(total: int) -> list[Any]:
        given = pa.table({HASH: [1], "g": ["a"], ROWS: [1], "c": [1], "s": [total]})
        answers: list[Any] = operator.step(state, (given,), Time()).column("sum").to_pylist()
        return answers

    assert feed(127) == [127]
    with pytest.raises(JobError, match="The result of SUM does not fit into int8"):
        feed(1)


NAN = float("nan")


@pytest.mark.parametrize("retracting", [True, False])
@pytest.mark.parametrize("cut", [True, False], ids=["cut", "whole"])
def test_nan_is_the_greatest_number_as_in_spark(retracting: bool, cut: bool) -> None:
    fed = Fed(pa.float64(), retracting=retracting, distinct=False)
    given = [(1, ("a", v)) for v in (NAN, 1.0, float("inf"))]
    for batch in [[row] for row in given] if cut else [given]:
        fed.reader.rows = {}
        changes = fed.operator.step(fed.state, (fed._input(batch),), Time())
    last = changes.to_pylist()[-1]
    assert (last["rmin"], str(last["rmax"])) == (1.0, "nan")


def test_nan_that_goes_makes_room_for_the_next() -> None:
    fed = Fed(pa.float64(), distinct=False)
    fed.operator.step(fed.state, (fed._input([(1, ("a", NAN)), (1, ("a", 2.0)), (1, ("a", 1.0))]),), Time())
    changes = fed.operator.step(fed.state, (fed._input([(-1, ("a", NAN))]),), Time())
    last = changes.to_pylist()[-1]
    assert (last["rmin"], last["rmax"]) == (1.0, 2.0)


def test_an_operator_can_be_sent_to_another_process() -> None:
    fed = Fed(pa.int64())
    copy = pickle.loads(pickle.dumps(fed.operator))
    assert copy == fed.operator
    assert [spec.name for spec in copy.tables] == ["groups", "m"]
    assert copy.output.names[0] == "g"
    assert copy.output.names[-1] == KIND


NESTED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.list_(pa.int64()), [[1, 2], [1], [], None, [None]]),
    (pa.list_(pa.float64()), [[NAN], [0.0], [-0.0]]),
    (pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]), [{"a": 1, "b": ["x"]}, {"a": 1, "b": None}, None]),
    (pa.map_(pa.string(), pa.int64()), [[("k", 1)], [("k", 2)], [], None]),
]


@pytest.mark.parametrize("colliding", [True, False], ids=["colliding", "spread"])
@pytest.mark.parametrize(("dtype", "keys"), NESTED, ids=[str(dtype) for dtype, _ in NESTED])
def test_nested_group_keys_under_retraction(dtype: pa.DataType, keys: list[Any], colliding: bool) -> None:
    """MIN, MAX and COUNT(DISTINCT) of groups whose key is an array, a row or a map."""
    random, names = Random(4), [repr(key) for key in keys]
    fed = Fed(pa.int64(), group_type=dtype, spread=2 if colliding else 1 << 20)
    live: list[tuple[Any, int]] = []
    shown: dict[str, tuple[Any, ...]] = {}
    for _ in range(25):
        batch = []
        for _ in range(random.randrange(1, 12)):
            if live and random.random() < 0.5:
                batch.append((-1, live.pop(random.randrange(len(live)))))
            else:
                live.append((random.choice(keys), random.randrange(6)))
                batch.append((1, live[-1]))
        changes = fed.operator.step(fed.state, (fed._input(batch),), Time()).to_pylist()
        for row in changes:
            if row[KIND] in (UPDATE_BEFORE, DELETE):
                del shown[repr(row["g"])]
        for row in changes:
            if row[KIND] in (INSERT, UPDATE_AFTER):
                shown[repr(row["g"])] = (row["n"], row["rmin"], row["rmax"], row["dist"])
        expected = {}
        for name in names:
            values = [value for key, value in live if repr(key) == name]
            if values:
                expected[name] = (len(values), min(values), max(values), len(set(values)))
        assert shown == expected


@pytest.mark.parametrize("retracted", [[math.inf], [1e10, 0.1], [NAN, -math.inf, 1e-320]], ids=str)
@pytest.mark.parametrize("emptied", [True, False], ids=["emptied", "never empty"])
def test_a_sum_of_doubles_keeps_nothing_of_what_was_retracted(retracted: list[float], emptied: bool) -> None:
    """A group that emptied and filled again, and one that others stayed in."""
    fed = Fed(pa.float64(), distinct=False)
    fed.operator = replace(only(fed.operator, "SUM"), extremes=(), multisets=())
    fed.operator = replace(fed.operator, accumulators=tuple(a for a in fed.operator.accumulators if not a.multiset))
    fed.state = empty_state(fed.operator)
    fed.operator.step(fed.state, (fed._input([(1, ("a", v)) for v in retracted]),), Time())
    if emptied:
        fed.operator.step(fed.state, (fed._input([(-1, ("a", v)) for v in retracted]),), Time())
        assert sum(t.rows for t in fed.state.values()) == 0
        last = fed.operator.step(fed.state, (fed._input([(1, ("a", 0.1))]),), Time())
    else:
        fed.operator.step(fed.state, (fed._input([(1, ("a", 0.1))]),), Time())
        last = fed.operator.step(fed.state, (fed._input([(-1, ("a", v)) for v in retracted]),), Time())
    assert last.to_pylist()[-1]["sum"] == 0.1


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(allow_nan=False)), min_size=1), st.randoms())
def test_sums_of_doubles_do_not_depend_on_order_or_cuts(given_rows: list[tuple[str, float]], random: Random) -> None:
    whole, cut = (Fed(pa.float64(), retracting=False, distinct=False) for _ in range(2))
    whole.operator, cut.operator = (replace(fed.operator, before=False) for fed in (whole, cut))
    whole.feed_out_of_order([(1, row) for row in given_rows])
    rest = random.sample(given_rows, len(given_rows))
    while rest:
        size = random.randrange(1, 4)
        cut.feed_out_of_order([(1, row) for row in rest[:size]])
        rest = rest[size:]
    assert repr(sorted(cut.reader.values().items())) == repr(sorted(whole.reader.values().items()))
