"""A projection that only renames and reorders becomes part of the one below it."""

from __future__ import annotations

from dataclasses import replace

from headwater.plan import nodes as n
from headwater.plan.expression import Expr

__all__ = ["merge_projects"]


def merge_projects(root: n.Write) -> n.Write:
    return replace(root, input=_merge(root.input))


def _merge(node: n.Node) -> n.Node:
    match node:
        case n.Project(input=n.Project() as below) if all(e.column is not None for e in node.expressions):
            inner = dict(zip(below.names, below.expressions, strict=True))
            taken = tuple(_as(inner[e.column], e) for e in node.expressions if e.column is not None)
            return _merge(n.Project(node.columns, below.input, taken))
        case n.UnionAll():
            return replace(node, parts=tuple(_merge(part) for part in node.parts))
        case n.Project() | n.Filter() | n.Aggregate():
            return replace(node, input=_merge(node.input))
    return node


def _as(inner: Expr, outer: Expr) -> Expr:
    return replace(inner, type=outer.type)
