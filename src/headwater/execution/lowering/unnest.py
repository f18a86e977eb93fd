"""UNNEST by Spark's own generator."""

from __future__ import annotations

from pyspark.sql import DataFrame

from headwater.changelog.kinds import KIND
from headwater.changelog.operator import ORIGIN, OWN_WATERMARK
from headwater.execution.lowering.base import Lowering, lowers
from headwater.plan import nodes as n
from headwater.sql.spark_text import quote_name

__all__: list[str] = []

_PLACE, _ELEMENT = "__hw_place", "__hw_element"


@lowers(n.Unnest)
def _unnest(lowering: Lowering, node: n.Unnest) -> DataFrame:
    frame = lowering.lower(node.input)
    hidden = [quote_name(c) for c in (KIND, OWN_WATERMARK, ORIGIN) if c in frame.columns]
    names = [quote_name(name) for name in node.input.names]
    generator = "posexplode_outer" if node.outer else "posexplode"
    exploded = frame.selectExpr(*names, *hidden, f"{generator}({_array(node)}) AS ({_PLACE}, {_ELEMENT})")
    place = [f"CAST({_PLACE} + 1 AS INT) AS {quote_name(node.ordinality)}"] if node.ordinality else []
    own = [f"{sql} AS {quote_name(c.name)}" for c, sql in zip(node.elements, _fields(node), strict=True)]
    return exploded.selectExpr(*names, *own, *place, *hidden)


def _array(node: n.Unnest) -> str:
    """The collection as an array. A multiset is a map from its elements to how often each is there."""
    sql, kind = node.collection.sql, node.collection.type.name
    if kind == "MAP":
        return f"map_entries({sql})"
    if kind == "MULTISET":
        return f"flatten(transform(map_entries({sql}), e -> array_repeat(e.key, e.value)))"
    return sql


def _fields(node: n.Unnest) -> list[str]:
    """The columns of an element: the fields of a row, key and value of a map's entry, or the element itself."""
    kind = node.collection.type
    if kind.name == "MAP":
        return [f"{_ELEMENT}.key", f"{_ELEMENT}.value"]
    if kind.element is not None and kind.element.name == "ROW":
        return [f"{_ELEMENT}.{quote_name(field.name)}" for field in kind.element.fields]
    return [_ELEMENT]
