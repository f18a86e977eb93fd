"""One net change per key."""

from __future__ import annotations

import pyarrow as pa
import pytest
from changelog_model import table

from headwater.changelog.consolidate import consolidate, consolidate_net
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
    left = consolidate(table(SCHEMA, changes), ["k"])
    assert left.schema.names == SCHEMA.names
    assert sorted(map(repr, zip(*(left.column(n).to_pylist() for n in SCHEMA.names), strict=True))) == sorted(
        map(repr, net)
    )


def test_a_row_that_moves_to_another_key_deletes_the_old_one() -> None:
    changes = table(SCHEMA, [("a", 1, UPDATE_BEFORE), ("b", 1, UPDATE_AFTER)])
    left = consolidate(changes, ["k"]).to_pylist()
    assert {row["k"]: row[KIND] for row in left} == {"a": DELETE, "b": UPDATE_AFTER}


def test_what_one_partition_retracts_and_another_adds_again_has_not_changed() -> None:
    changes = [("a", 1, DELETE), ("b", 1, INSERT), ("a", 1, INSERT), ("c", 1, DELETE), ("c", 2, INSERT)]
    left = consolidate_net(table(SCHEMA, changes), ["k"])
    assert left.schema.names == SCHEMA.names
    assert {row["k"]: (row["v"], row[KIND]) for row in left.to_pylist()} == {
        "b": (1, UPDATE_AFTER),
        "c": (2, UPDATE_AFTER),
    }
