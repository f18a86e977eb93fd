"""Rows numbered by their content: equal rows, and only they, get equal numbers. NULL equals NULL, NaN equals NaN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.changelog.columns import Ints
from headwater.dates import numbered_values

__all__ = ["row_ids", "take_table"]

_DENSE = 1 << 31
"""Numbers below this can be combined with those of another column without overflow."""


def row_ids(columns: Sequence[pa.Array], length: int) -> Ints:
    """A number for each row, from 0, smaller than 2**31 as long as there are fewer rows."""
    ids: Ints = np.zeros(length, dtype=np.int64)
    size = 1
    for column in columns:
        codes, count = _codes(column)
        ids, size = ids * count + codes, size * count
        if size >= _DENSE:
            distinct, ids = np.unique(ids, return_inverse=True)
            size = len(distinct)
    return ids


def take_table(rows: pa.Table, index: Ints) -> pa.Table:
    """Rows of a table, which may have no columns."""
    return rows.take(pa.array(index)).combine_chunks()


def _codes(column: pa.Array) -> tuple[Ints, int]:
    """A number for each value, and one more than the greatest."""
    kind = column.type
    if pa.types.is_floating(kind):
        column = _bits(column)
    elif pa.types.is_struct(kind):
        # Without its validity, a NULL row would equal one whose fields are all NULL.
        ids = row_ids([*column.flatten(), column.is_valid()], len(column))
        return ids, int(ids.max(initial=0)) + 1
    elif pa.types.is_nested(kind):
        # Arrow has no dictionaries of lists and maps.
        column = pa.array([None if v is None else repr(v) for v in numbered_values(column)], pa.large_string())
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), max(1, len(encoded.dictionary))


def _bits(column: pa.Array) -> pa.Array:
    return column.view(pa.int64() if column.type == pa.float64() else pa.int32())
