"""Pairs of rows with equal keys: what every join does first.

NULL equals nothing, so rows with a NULL key have no pairs. NaN equals NaN and 0.0 equals -0.0, as in Spark, whose hash
of a key brings the two together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools, Ints, expand, flat
from headwater.changelog.grouping import group_rows

__all__ = ["Pairs", "key_columns", "key_ids", "key_pairs", "last_not_after", "owners", "without_nulls"]

MOST_PAIRS = 1 << 20
"""How many pairs are looked at together: a condition may leave few of very many."""

Pairs = tuple[Ints, Ints]
"""Row numbers on the left and on the right."""


def key_columns(rows: pa.Table, keys: Sequence[str]) -> list[pa.Array]:
    """The columns as they are compared."""
    return [_normal(flat(rows, name)) for name in keys]


def _normal(column: pa.Array) -> pa.Array:
    """One spelling of zero and of NaN."""
    if not pa.types.is_floating(column.type):
        return column
    nan = pa.scalar(float("nan"), column.type)
    return pc.add(pc.if_else(pc.is_nan(column), nan, column), pa.scalar(0.0, column.type))


def without_nulls(columns: Sequence[pa.Array], length: int) -> Bools:
    """Which rows have no NULL in any of these columns."""
    there: Bools = np.ones(length, dtype=np.bool_)
    for column in columns:
        if column.null_count:
            there &= column.is_valid().to_numpy(zero_copy_only=False)
    return there


def key_ids(prefixes: Sequence[Ints], keys: Sequence[Sequence[pa.Array]]) -> tuple[list[Ints], Ints]:
    """The keys of several sets of rows, numbered together: a number for each row of each set, and for each number
    a row that has it, counted through all sets. Prefixes are the upper halves of the rows' hashes."""
    together = [pa.concat_arrays(list(columns)) for columns in zip(*keys, strict=True)]
    grouped = group_rows(np.concatenate(prefixes) << 32, together)
    cuts = np.cumsum([len(prefix) for prefix in prefixes])[:-1]
    return np.split(grouped.of_row, cuts), grouped.first


def owners(prefixes: Ints, keys: Sequence[pa.Array], of_rows: Ints, rows: Sequence[pa.Array]) -> Ints:
    """For rows with these prefixes and keys the number of their key among `keys`, each of which stands there once; -1
    for rows of other keys."""
    (here, there), _ = key_ids([prefixes, of_rows], [keys, rows])
    number: Ints = np.full(len(prefixes) + len(of_rows), -1, dtype=np.int64)
    number[here] = np.arange(len(prefixes))
    return number[there]


def key_pairs(left: Ints, right: Ints, wanted: Bools | None = None) -> Iterator[Pairs]:
    """All pairs of rows with the same key number, at most MOST_PAIRS of them at a time (or all of one left row)."""
    # Sorting one side and searching in it makes all pairs without a loop over keys.
    order = np.argsort(right, kind="stable")
    sorted_right = right[order]
    rows = np.arange(len(left), dtype=np.int64) if wanted is None else np.flatnonzero(wanted)
    start = np.searchsorted(sorted_right, left[rows], "left")
    stop = np.searchsorted(sorted_right, left[rows], "right")
    total = np.cumsum(stop - start)
    at = 0
    while at < len(rows):
        done = int(total[at - 1]) if at else 0
        # A popular key on both sides gives the product of both: bounded portions keep memory bounded.
        end = max(at + 1, int(np.searchsorted(total, done + MOST_PAIRS, "right")))
        counts = stop[at:end] - start[at:end]
        if counts.any():
            yield np.repeat(rows[at:end], counts), order[expand(start[at:end], stop[at:end])]
        at = end


def last_not_after(versions: tuple[Ints, Ints], asked: tuple[Ints, Ints]) -> Ints:
    """For each asked (key number, time) the version of that key with the greatest time that is not later; -1 if there
    is none. Versions are in the order of their times; of those with the same time the last one counts."""
    keys, times = versions
    order = np.argsort(keys, kind="stable")
    # A key and a place among all versions as one number: versions are sorted by it, and found by a search.
    sorted_ = keys[order] * (len(keys) + 1) + order
    not_later = np.searchsorted(times, asked[1], "right")
    before = np.searchsorted(sorted_, asked[0] * (len(keys) + 1) + not_later) - 1
    found: Ints = order[before] if len(order) else np.zeros(len(before), dtype=np.int64)
    same = before >= 0
    same[same] = keys[found[same]] == asked[0][same]
    return np.where(same, found, -1)
