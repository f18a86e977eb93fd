"""One net change per key: what is left of a batch of a full changelog for a sink that knows only "now" and "gone"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import flat, last_rows
from headwater.changelog.counted_rows import weights_of
from headwater.changelog.emission import Weighted, consolidated
from headwater.changelog.kinds import DELETE, INSERT, KIND, KIND_TYPE, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.normalize import newest_rows

__all__ = ["consolidate", "consolidate_in_order", "consolidate_last", "consolidate_net"]

_RANK = "__hw_rank_of_kind"


def consolidate_net(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """As `consolidate`, for changes of several partitions: what one retracts, another may have added again, and then
    nothing has changed."""
    net = consolidated(Weighted(rows.drop_columns([KIND]), weights_of(rows)))
    kinds = np.where(net.weights > 0, INSERT, DELETE).astype(np.int8)
    changes = net.rows.append_column(pa.field(KIND, KIND_TYPE), pa.array(kinds, KIND_TYPE))
    return consolidate(changes.select(rows.column_names), key)


def consolidate(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Per key: the row that was added, if any; else its delete. At most one row of a key is ever alive."""
    kinds = flat(rows, KIND).to_numpy()
    added = (kinds == INSERT) | (kinds == UPDATE_AFTER)
    # Rows of a batch have no order after a shuffle: what was added wins over retractions, wherever they stand.
    ranked = rows.append_column(_RANK, pa.array(added.astype(np.int8)))
    left = last_rows(ranked, key, [_RANK])
    alive = flat(left, _RANK).to_numpy() == 1
    net = pa.array(np.where(alive, UPDATE_AFTER, DELETE).astype(np.int8), KIND_TYPE)
    left = left.drop_columns([_RANK])
    return left.set_column(left.schema.get_field_index(KIND), KIND, net)


def consolidate_last(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """As `consolidate`, for changes that come in their order: a key may appear and be gone again in one batch."""
    left = last_rows(rows, key, [])
    kinds = flat(left, KIND).to_numpy()
    alive = (kinds == INSERT) | (kinds == UPDATE_AFTER)
    net = pa.array(np.where(alive, UPDATE_AFTER, DELETE).astype(np.int8), KIND_TYPE)
    return left.set_column(left.schema.get_field_index(KIND), KIND, net)


def consolidate_in_order(rows: pa.Table, key: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Per key: its last change, as `columns` and the net kind. The rows have their positions."""
    left = newest_rows(rows, key)
    kinds = flat(left, KIND).to_numpy()
    gone = (kinds == UPDATE_BEFORE) | (kinds == DELETE)
    net = pa.array(np.where(gone, DELETE, UPDATE_AFTER).astype(np.int8), KIND_TYPE)
    return left.select(list(columns)).append_column(KIND, net)
