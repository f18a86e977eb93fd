"""The order in which changes of a key came, within a batch."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import Bools, Ints, flat
from headwater.changelog.kinds import DELETE, KIND
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION, POSITION

__all__ = ["in_order_of_arrival"]


def in_order_of_arrival(rows: pa.Table, of_key: Ints) -> Ints:
    """The numbers of these rows by key, and of one key in the order of its changes: the partition whose last change is
    the newest comes last, as in `newest_rows`. Rows without a position are in order as they stand, and what replaces a
    row comes after what removes it."""
    if ORDER not in rows.column_names:
        replaces = np.zeros(rows.num_rows, dtype=np.bool_)
        if KIND in rows.column_names:
            replaces = flat(rows, KIND).to_numpy() != DELETE
        return np.asarray(np.lexsort([replaces, of_key]))
    within = [_ints(rows, name) for name in (POSITION, OFFSET) if name in rows.column_names]
    partition, times = _ints(rows, PARTITION), _ints(rows, ORDER)
    order = np.lexsort([*within, partition, of_key])
    ends: Bools = np.ones(len(order), dtype=np.bool_)
    ends[:-1] = (np.diff(of_key[order]) != 0) | (np.diff(partition[order]) != 0)
    run = np.cumsum(np.append(False, ends[:-1]))
    newest = times[order][ends][run] if len(order) else times
    # Changes of one partition stay together: offsets of different partitions cannot be compared, only the times of
    # their newest changes.
    return np.asarray(order[np.lexsort([np.arange(len(order)), partition[order], newest, of_key[order]])])


def _ints(rows: pa.Table, name: str) -> Ints:
    return np.asarray(flat(rows, name).cast(pa.int64()).fill_null(0).to_numpy())
