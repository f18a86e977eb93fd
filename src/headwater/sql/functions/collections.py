"""Arrays and maps. Positions count from 1."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.sql.functions.registry import fn
from headwater.sql.functions.spark_sql import Refused, lambda_name
from headwater.sql.typed import Expr
from headwater.sql.types import Field, SqlType

__all__ = ["COLLECTIONS"]

_E = lambda_name(0)


def _slice(args: Sequence[Expr]) -> str:
    """Both ends belong to the slice; 0 is the first element; negative positions count from the end."""
    array, start = args[0].sql, args[1].sql
    size = f"size({array})"
    first = f"CASE WHEN {start} > 0 THEN {start} WHEN {start} = 0 THEN 1 WHEN {start} < 0 THEN "
    first += f"if({size} + {start} < 0, 1, {size} + {start} + 1) END"
    if len(args) == 2:
        last = size
    else:
        end = args[2].sql
        last = f"CASE WHEN {end} >= 0 THEN {end} WHEN {end} < 0 THEN {size} + {end} + 1 END"
    length = f"{last} - ({first}) + 1"
    return f"slice({array}, {first}, if({length} < 0, 0, {length}))"


def _sort(args: Sequence[Expr]) -> str:
    """NULLs come first in ascending and last in descending order, unless the third argument says otherwise."""
    flags = [a.literal for a in args[1:]]
    for index, flag in enumerate(flags, 1):
        if not isinstance(flag, bool):
            raise Refused("ARRAY_SORT takes TRUE or FALSE for its order", argument=index)
    ascending = flags[0] if flags else True
    array = args[0].sql
    # Spark's sort_array can put NULLs only where they are by default.
    if len(flags) < 2 or flags[1] == ascending:
        return f"sort_array({array}, {str(ascending).lower()})"
    nulls = f"filter({array}, {_E} -> {_E} IS NULL)"
    rest = f"sort_array(filter({array}, {_E} -> {_E} IS NOT NULL), {str(ascending).lower()})"
    return f"concat({nulls}, {rest})" if flags[1] else f"concat({rest}, {nulls})"


def _element(args: Sequence[Expr]) -> str:
    error = "raise_error('ELEMENT expects an array with at most one element')"
    return f"CASE WHEN size({args[0].sql}) > 1 THEN {error} ELSE try_element_at({args[0].sql}, 1) END"


def _join(args: Sequence[Expr]) -> str:
    return f"array_join({', '.join(a.sql for a in args)})"


def _entries(args: Sequence[Expr]) -> SqlType:
    t = args[0].type
    assert t.key is not None
    assert t.element is not None
    return SqlType("ARRAY", element=SqlType("ROW", fields=(Field("key", t.key), Field("value", t.element))))


COLLECTIONS = (
    fn("CARDINALITY(ARRAY) -> INT", "size({0})", "The number of elements"),
    fn("CARDINALITY(MAP) -> INT", "size({0})", "The number of entries"),
    fn("ELEMENT(ARRAY<T>) -> T?", _element, "The only element; an error if there are several"),
    fn("ARRAY_APPEND(ARRAY<T>, T) -> ARRAY<T>", "array_append({0}, {1})", "The array with a value behind it"),
    fn("ARRAY_PREPEND(ARRAY<T>, T) -> ARRAY<T>", "array_prepend({0}, {1})", "The array with a value before it"),
    fn(
        "ARRAY_CONTAINS(ARRAY<T>, T) -> BOOLEAN",
        f"exists({{0}}, {_E} -> {_E} <=> {{1}})",
        "Whether the value is an element; NULL can be one",
    ),
    fn(
        "ARRAY_POSITION(ARRAY<T>, T) -> INT",
        "CAST(array_position({0}, {1}) AS INT)",
        "Where the value is; 0 if nowhere",
    ),
    fn(
        "ARRAY_REMOVE(ARRAY<T>, T) -> ARRAY<T>",
        f"filter({{0}}, {_E} -> NOT ({_E} <=> {{1}}))",
        "The array without that value",
    ),
    fn("ARRAY_DISTINCT(ARRAY<T>) -> ARRAY<T>", "array_distinct({0})", "Each value once"),
    fn("ARRAY_REVERSE(ARRAY<T>) -> ARRAY<T>", "reverse({0})", "The elements in reverse order"),
    fn("ARRAY_SLICE(ARRAY<T>, INT [, INT]) -> ARRAY<T>", _slice, "From one position to another, both included"),
    fn(
        "ARRAY_SORT(ARRAY<T> [, BOOLEAN [, BOOLEAN]]) -> ARRAY<T>",
        _sort,
        "Sorted: ascending or not, NULLs first or not",
    ),
    fn("ARRAY_UNION(ARRAY<T>, ARRAY<T>) -> ARRAY<T>", "array_union({0}, {1})", "Values of either, each once"),
    fn("ARRAY_INTERSECT(ARRAY<T>, ARRAY<T>) -> ARRAY<T>", "array_intersect({0}, {1})", "Values of both, each once"),
    fn("ARRAY_EXCEPT(ARRAY<T>, ARRAY<T>) -> ARRAY<T>", "array_except({0}, {1})", "Values of the first only, each once"),
    fn("ARRAY_CONCAT(ARRAY<T>…) -> ARRAY<T>", "concat({*})", "The arrays one behind the other"),
    fn("ARRAY_MAX(ARRAY<T>) -> T?", "array_max({0})", "The greatest element"),
    fn("ARRAY_MIN(ARRAY<T>) -> T?", "array_min({0})", "The least element"),
    fn(
        "ARRAY_JOIN(ARRAY<STRING>, STRING [, STRING]) -> STRING",
        _join,
        "The elements joined by a separator; NULLs are skipped or replaced by a string",
    ),
    fn("MAP_KEYS(MAP<K, V>) -> ARRAY<K>", "map_keys({0})", "The keys"),
    fn("MAP_VALUES(MAP<K, V>) -> ARRAY<V>", "map_values({0})", "The values"),
    fn("MAP_ENTRIES(MAP<K, V>) -> ARRAY", "map_entries({0})", "The entries as rows of key and value", result=_entries),
    fn("MAP_UNION(MAP<K, V>…) -> MAP<K, V>", "map_concat({*})", "All entries; of the same key the last"),
    fn(
        "MAP_FROM_ARRAYS(ARRAY<K>, ARRAY<V>) -> MAP<K, V>",
        "map_from_arrays({0}, {1})",
        "The map with these keys and values",
    ),
)
