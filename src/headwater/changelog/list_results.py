"""Results that are made of a list of values: LISTAGG, ARRAY_AGG, COLLECT, JSON_ARRAYAGG and JSON_OBJECTAGG."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Ints
from headwater.changelog.identity import row_ids
from headwater.changelog.ordering import SortKey, sort_keys

__all__ = ["COLLECTIONS"]


def _listagg(lists: pa.Array, kind: pa.DataType, separator: str) -> pa.Array:
    return _joined(lists, separator).cast(kind)


def _array_agg(lists: pa.Array, kind: pa.DataType, _: str) -> pa.Array:
    return lists.cast(kind)


def _collect(lists: pa.Array, kind: pa.DataType, _: str) -> pa.Array:
    """A multiset is a map from values to how often they are there; here in the order of the values. Of no values it is
    empty."""
    values, parents = _elements(lists)
    _ids, first, counts = np.unique(
        row_ids([pa.array(parents), values], len(values)), return_index=True, return_counts=True
    )
    order = np.lexsort([*reversed(sort_keys(values.take(pa.array(first)), SortKey(""))), parents[first]])
    first, counts = first[order], counts[order]
    ends = _ends(np.bincount(parents[first], minlength=len(lists)))
    keys = values.take(pa.array(first)).cast(kind.key_type)
    return pa.MapArray.from_arrays(ends, keys, pa.array(counts, kind.item_type)).cast(kind)


def _json_arrayagg(lists: pa.Array, kind: pa.DataType, _: str) -> pa.Array:
    """The elements are JSON already."""
    return _bracketed(_joined(lists, ","), "[]").cast(kind)


def _json_objectagg(lists: pa.Array, kind: pa.DataType, _: str) -> pa.Array:
    """Of several values of a key the last one counts. Keys are in order."""
    objects = [{pair["k"]: pair["v"] for pair in pairs or ()} for pairs in lists.to_pylist()]
    strings = [",".join(f"{json.dumps(k, ensure_ascii=False)}:{o[k]}" for k in sorted(o)) for o in objects]
    return _bracketed(pa.array(strings, pa.large_string()), "{}").cast(kind)


def _joined(lists: pa.Array, separator: str) -> pa.Array:
    strings = lists.cast(pa.list_(pa.string()))
    return pc.binary_join(strings, separator).cast(pa.large_string())


def _bracketed(strings: pa.Array, brackets: str) -> pa.Array:
    first, last, nothing = (pa.scalar(text, pa.large_string()) for text in (*brackets, ""))
    # The last argument is the separator.
    return pc.binary_join_element_wise(first, pc.fill_null(strings, ""), last, nothing)


def _elements(lists: pa.Array) -> tuple[pa.Array, Ints]:
    """All elements, and which list each is from."""
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return lists.flatten(), np.repeat(np.arange(len(lists), dtype=np.int64), sizes)


def _ends(sizes: Ints) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))


COLLECTIONS: dict[str, Callable[[pa.Array, pa.DataType, str], pa.Array]] = {
    "LISTAGG": _listagg,
    "ARRAY_AGG": _array_agg,
    "COLLECT": _collect,
    "JSON_ARRAYAGG": _json_arrayagg,
    "JSON_OBJECTAGG": _json_objectagg,
}
