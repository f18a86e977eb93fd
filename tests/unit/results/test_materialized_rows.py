"""The rows that changes make up: by key, as a whole, in order, cut, and never more than allowed."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from headwater.changelog.kinds import KIND
from headwater.errors import ResultTooLargeError
from headwater.plan.query import Ordering
from headwater.results import materialized
from headwater.results.materialized import HeldRows, final

SCHEMA = pa.schema([("k", pa.string()), ("v", pa.float64())])
KINDS = {"+I": 0, "-U": 1, "+U": 2, "-D": 3}


def query(**facts: Any) -> Any:
    """The facts of a PlannedQuery that rows depend on."""
    columns = [SimpleNamespace(name=name) for name in ("k", "v")]
    defaults = {"updating": True, "key": None, "order": (), "limit": None, "offset": 0, "columns": columns}
    given = {**defaults, **facts}
    return SimpleNamespace(**given, any_rows=not given["updating"] and not given["order"])


def changes(*entries: tuple[str, str, float | None]) -> pa.RecordBatch:
    kinds, keys, values = zip(*entries, strict=True)
    columns = {"k": keys, "v": pa.array(values, pa.float64()), KIND: pa.array([KINDS[k] for k in kinds], pa.int8())}
    return pa.RecordBatch.from_pydict(columns)


def rows(kept: HeldRows, of: Any = None) -> list[tuple[Any, ...]]:
    table = kept.table() if of is None else final(kept.table(), of)
    return [tuple(row.values()) for row in table.to_pylist()]


def test_a_row_of_a_key_is_replaced_in_its_place() -> None:
    kept = HeldRows(query(key=("k",)), SCHEMA, 100)
    kept.apply(changes(("+I", "a", 1), ("+I", "b", 1)))
    kept.apply(changes(("-U", "a", 1), ("+U", "a", 2), ("-D", "b", 1), ("+I", "c", 3)))
    assert (rows(kept), kept.count) == ([("a", 2), ("c", 3)], 2)
    kept.apply(changes(("-U", "a", 2)))  # what follows does not pass a filter
    assert (rows(kept), kept.count) == ([("c", 3)], 1)


def test_a_row_that_moves_between_tasks_may_come_before_it_goes() -> None:
    """As a row of a Top-N whose partition changes: one task emits it, another one retracts it, in any order."""
    kept = HeldRows(query(key=("k",)), SCHEMA, 100)
    kept.apply(changes(("+I", "a", 1), ("+I", "b", 2)))
    kept.apply(changes(("+I", "a", 5), ("+I", "b", 2)))
    kept.apply(changes(("-D", "a", 1), ("-D", "b", 2)))
    assert (rows(kept), kept.count) == ([("a", 5), ("b", 2)], 2)


def test_rows_without_a_key_are_counted() -> None:
    kept = HeldRows(query(), SCHEMA, 100)
    kept.apply(changes(("+I", "a", 1), ("+I", "a", 1), ("+I", "a", math.nan), ("+I", "b", None)))
    kept.apply(changes(("-D", "a", 1), ("-U", "a", math.nan), ("-D", "b", None)))
    assert (rows(kept), kept.count) == ([("a", 1)], 1)


def test_one_row_at_most() -> None:
    kept = HeldRows(query(key=()), SCHEMA, 100)
    kept.apply(changes(("+I", "a", 1), ("-U", "a", 1), ("+U", "b", 2)))
    assert rows(kept) == [("b", 2)]


def test_inserts_are_kept_as_they_come_or_only_the_newest() -> None:
    batches = [pa.RecordBatch.from_pydict({"k": ["x"] * 3, "v": [float(i)] * 3}) for i in range(4)]
    everything, newest = HeldRows(query(updating=False), SCHEMA, 100), HeldRows(query(updating=False), SCHEMA, 100, 5)
    for batch in batches:
        everything.apply(batch)
        newest.apply(batch)
    assert everything.count == len(rows(everything)) == 12
    assert [v for _, v in rows(newest)] == [2, 2, 2, 3, 3, 3]


def test_more_rows_than_allowed_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = HeldRows(query(key=("k",)), SCHEMA, 2)
    kept.apply(changes(("+I", "a", 1), ("+I", "b", 1)))
    with pytest.raises(ResultTooLargeError, match="more than 2 rows") as raised:
        kept.apply(changes(("+I", "c", 1)))
    assert "LIMIT" in raised.value.hint
    monkeypatch.setattr(materialized, "MAX_BYTES", 10)
    with pytest.raises(ResultTooLargeError, match="MB"):
        HeldRows(query(), SCHEMA, 100).apply(changes(("+I", "a", 1)))


@pytest.mark.parametrize(
    ("descending", "nulls_first", "expected"),
    [(False, True, "nabxN"), (False, False, "abxNn"), (True, False, "Nxban"), (True, True, "nNxba")],
)
def test_order(descending: bool, nulls_first: bool, expected: str) -> None:
    values = {"x": 3.0, "a": -1.0, "N": math.nan, "n": None, "b": 2.0}
    kept = HeldRows(query(updating=False), SCHEMA, 100)
    kept.apply(pa.RecordBatch.from_pydict({"k": list(values), "v": pa.array(list(values.values()), pa.float64())}))
    wanted = query(order=(Ordering("v", descending, nulls_first),))
    assert "".join(k for k, _ in rows(kept, wanted)) == expected


def test_order_by_several_columns_then_offset_and_limit() -> None:
    kept = HeldRows(query(updating=False), SCHEMA, 100)
    kept.apply(pa.RecordBatch.from_pydict({"k": list("abab"), "v": [1.0, 1.0, 2.0, 2.0]}))
    order = (Ordering("k", True, False), Ordering("v", False, True))
    assert rows(kept, query(order=order, limit=2, offset=1)) == [("b", 2), ("a", 1)]
