"""One net change per key: what is left of a batch of exact changes for a sink that knows only "now" and "gone"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import flat, last_rows
from headwater.changelog.kinds import DELETE, INSERT, KIND, KIND_TYPE, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.normalize import newest_rows

__all__ = ["collapse", "collapse_in_order", "keep_last"]

_RANK = "__rank_of_kind"


def collapse(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Per key: the row that was added, if any; else its delete. At most one row of a key is ever alive."""
    kinds = flat(rows, KIND).to_numpy()
    added = (kinds == INSERT) | (kinds == UPDATE_AFTER)
    ranked = rows.append_column(_RANK, pa.array(added.astype(np.int8)))
    left = last_rows(ranked, key, [_RANK])
    alive = flat(left, _RANK).to_numpy() == 1
    net = pa.array(np.where(alive, UPDATE_AFTER, DELETE).astype(np.int8), KIND_TYPE)
    left = left.drop_columns([_RANK])
    return left.set_column(left.schema.get_field_index(KIND), KIND, net)


def collapse_in_order(rows: pa.Table, key: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Per key: its last change, as `columns` and the net kind. The rows say where they stood."""
    left = newest_rows(rows, key)
    kinds = flat(left, KIND).to_numpy()
    gone = (kinds == UPDATE_BEFORE) | (kinds == DELETE)
    net = pa.array(np.where(gone, DELETE, UPDATE_AFTER).astype(np.int8), KIND_TYPE)
    return left.select(list(columns)).append_column(KIND, net)


def keep_last(rows: pa.Table, key: str, partition: str, offset: str) -> pa.Table:
    """Per key and partition: the message with the highest offset. The others are superseded within the batch."""
    if pc.count_distinct(rows.column(partition)).as_py() > 1:
        return last_rows(rows, [key, partition], [offset])
    places = np.argsort(flat(rows, offset).to_numpy(), kind="stable")
    codes = flat(rows, key).dictionary_encode(null_encoding="encode")
    last = np.empty(len(codes.dictionary), dtype=np.int64)
    last[codes.indices.to_numpy()[places]] = places  # of several the last one stays
    return rows.take(pa.array(np.sort(last)))
