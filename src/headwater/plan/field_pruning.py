"""Of a ROW that a table has, only the fields that a query names are decoded.

What is read of a column is followed through the nodes that take every row on its own. A column that goes into a state,
a sink, or anything else as a whole is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headwater.plan import nodes as n
from headwater.plan.rewrite import rewrite
from headwater.sql.spark_text import quote_name
from headwater.sql.typed import Expr

__all__ = ["open_rows"]

Path = tuple[str, ...]
"""(column,) or, of a ROW, (column, field)."""


def open_rows(root: n.Write) -> n.Write:
    """Every scan with the `fields` that are read of its rows. Comes last: columns are pruned, projections merged."""
    read: dict[int, set[Path]] = {id(node): set() for node in n.walk(root)}
    for node in reversed(n.walk(root)):
        for child, paths in zip(node.inputs, _reads(node, read[id(node)]), strict=True):
            read[id(child)] |= paths
    opened = {id(node): _fields(node, read[id(node)]) for node in n.walk(root) if isinstance(node, n.Scan)}
    return rewrite(root, lambda node: replace(node, fields=opened[id(node)]) if isinstance(node, n.Scan) else node)


def _reads(node: n.Node, above: set[Path]) -> Iterator[set[Path]]:
    """What a node reads of each input, if `above` is what is read of it."""
    match node:
        case n.Project():
            yield {path for column, e in node.items for path in _through(column.name, e, above)}
        case n.Filter():
            yield above | node.predicate.reads
        case n.Watermark():
            yield above | node.expression.reads | {(node.column,)}
        case n.Aggregate():
            yield {(name,) for name in node.groups} | {path for e in node.decisive for path in e.reads}
        case _:
            yield from (set[Path]((name,) for name in names) for names in node.needs(frozenset(node.names)))


def _through(name: str, expression: Expr, above: set[Path]) -> Iterator[Path]:
    """What reads of a projected column read of the input: of a column that is only passed on, the same."""
    mine = [path for path in above if path[0] == name]
    column = expression.column
    if column is not None and expression.sql == quote_name(column):
        yield from ((column, *rest) for _, *rest in mine)
    elif mine:
        yield from expression.reads


def _fields(scan: n.Scan, read: set[Path]) -> tuple[tuple[str, n.Key], ...]:
    """Columns of which nothing but fields is read, with those in the order that the ROW has them."""
    found = []
    for column in scan.columns:
        mine = [path for path in read if path[0] == column.name]
        if column.type.name == "ROW" and mine and all(len(path) > 1 for path in mine):
            named = {path[1] for path in mine}
            found.append((column.name, tuple(f.name for f in column.type.fields if f.name in named)))
    return tuple(found)
