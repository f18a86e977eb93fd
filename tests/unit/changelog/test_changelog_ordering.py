"""Rows in order: by group, by the sort keys, and where those are equal by all columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.changelog.ordering import SortKey, order_rows

rows = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from(["", "a", "b", "é"]), st.integers(0, 1)),
    min_size=1,
    max_size=30,
)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(rows, st.booleans())
def test_order(found: list[tuple[int, int, str, int]], descending: bool) -> None:
    groups, keys, texts, last = (list(column) for column in zip(*found, strict=True))
    table = pa.table({"k": pa.array(keys, pa.int64()), "t": pa.array(texts, pa.large_string())})
    ordered = order_rows(table, np.array(groups), [SortKey("k", descending)], [np.array(last)])

    def sort_key(row: tuple[int, int, str, int]) -> tuple[object, ...]:
        group, key, text, number = row
        return group, -key if descending else key, key, text.encode(), number

    in_order = [found[place] for place in ordered.order]
    assert in_order == sorted(found, key=sort_key)
    assert sorted(ordered.order.tolist()) == list(range(len(found)))
    before = [None, *in_order[:-1]]
    assert ordered.group_starts.tolist() == [b is None or b[0] != r[0] for b, r in zip(before, in_order, strict=True)]
    assert ordered.peer_starts.tolist() == [b is None or b[:2] != r[:2] for b, r in zip(before, in_order, strict=True)]
