"""Which rows of a batch belong together: by the hash of their key, checked against the keys themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import Ints, equal_rows, flat

__all__ = ["Groups", "group_rows"]


@dataclass(frozen=True)
class Groups:
    """`of_row` is the group of every row, `first` a row of every group. Groups are numbered in the order of hashes."""

    of_row: Ints
    first: Ints

    def __len__(self) -> int:
        return len(self.first)


def group_rows(hashes: Ints, keys: Sequence[pa.Array]) -> Groups:
    """Rows with equal keys form a group. Far faster than grouping by the keys, and as exact: where two keys share a
    hash, the keys decide."""
    groups = _group_by_hash(hashes)
    if len(groups) == len(hashes):
        return groups
    others = np.flatnonzero(groups.first[groups.of_row] != np.arange(len(hashes)))
    here, there = pa.array(others), pa.array(groups.first[groups.of_row[others]])
    same = equal_rows([key.take(here) for key in keys], [key.take(there) for key in keys], len(others))
    return groups if same.all() else _group_by_keys(hashes, keys)


def _group_by_hash(hashes: Ints) -> Groups:
    order = np.argsort(hashes)
    ordered = hashes[order]
    starts = np.ones(len(order), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    of_row = np.empty(len(order), dtype=np.int64)
    of_row[order] = np.cumsum(starts) - 1
    return Groups(of_row, order[starts])


def _group_by_keys(hashes: Ints, keys: Sequence[pa.Array]) -> Groups:
    names = [f"key{i}" for i in range(len(keys))]
    rows = pa.table([pa.array(hashes), *keys], names=["hash", *names])
    numbered = rows.append_column("row", pa.array(np.arange(len(hashes))))
    lists = numbered.group_by(["hash", *names], use_threads=False).aggregate([("row", "list")])
    order = np.argsort(flat(lists, "hash").to_numpy(), kind="stable")
    rows_of = flat(lists, "row_list").take(pa.array(order))
    of_row = np.empty(len(hashes), dtype=np.int64)
    of_row[rows_of.flatten().to_numpy()] = np.repeat(np.arange(len(order)), rows_of.value_lengths().to_numpy())
    return Groups(of_row, rows_of.flatten().take(pa.array(rows_of.offsets.to_numpy()[:-1])).to_numpy())
