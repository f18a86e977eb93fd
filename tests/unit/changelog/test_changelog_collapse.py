"""One net change per key."""

from __future__ import annotations

import pyarrow as pa
import pytest
from changelog_model import table
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.changelog.collapse import collapse, keep_last
from headwater.changelog.kinds import DELETE, INSERT, KIND, UPDATE_AFTER, UPDATE_BEFORE

SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64()), (KIND, pa.int8())])


@pytest.mark.parametrize(
    ("changes", "net"),
    [
        ([("a", 1, INSERT)], [("a", 1, UPDATE_AFTER)]),
        ([("a", 1, UPDATE_BEFORE), ("a", 2, UPDATE_AFTER)], [("a", 2, UPDATE_AFTER)]),
        ([("a", 2, UPDATE_AFTER), ("a", 1, UPDATE_BEFORE)], [("a", 2, UPDATE_AFTER)]),
        ([("a", 1, DELETE)], [("a", 1, DELETE)]),
        ([("a", 1, UPDATE_BEFORE)], [("a", 1, DELETE)]),  # the after-image did not pass a filter
        ([("a", 1, DELETE), ("b", 1, INSERT)], [("a", 1, DELETE), ("b", 1, UPDATE_AFTER)]),
        ([(None, 1, DELETE), (None, 2, INSERT)], [(None, 2, UPDATE_AFTER)]),
        ([], []),
    ],
)
def test_what_is_left(changes: list[tuple[object, ...]], net: list[tuple[object, ...]]) -> None:
    left = collapse(table(SCHEMA, changes), ["k"])
    assert left.schema.names == SCHEMA.names
    assert sorted(map(repr, zip(*(left.column(n).to_pylist() for n in SCHEMA.names), strict=True))) == sorted(
        map(repr, net)
    )


def test_a_row_that_moves_to_another_key_deletes_the_old_one() -> None:
    changes = table(SCHEMA, [("a", 1, UPDATE_BEFORE), ("b", 1, UPDATE_AFTER)])
    left = collapse(changes, ["k"]).to_pylist()
    assert {row["k"]: row[KIND] for row in left} == {"a": DELETE, "b": UPDATE_AFTER}


MESSAGES = pa.schema([("key", pa.binary()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())])


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.none() | st.sampled_from([b"a", b"b"]), st.integers(0, 1))), st.randoms())
def test_only_the_last_message_of_a_key_and_partition_counts(
    sent: list[tuple[bytes | None, int]], random: object
) -> None:
    rows = [(key, partition, offset, str(offset).encode()) for offset, (key, partition) in enumerate(sent)]
    last = {(key, partition): value for key, partition, _, value in rows}
    random.shuffle(rows)  # type: ignore[attr-defined]
    kept = keep_last(table(MESSAGES, rows), "key", "partition", "offset").to_pylist()
    assert {(row["key"], row["partition"]): row["value"] for row in kept} == last
    assert len(kept) == len(last)
