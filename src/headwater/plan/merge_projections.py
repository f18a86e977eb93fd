"""A projection that only renames and reorders becomes part of the one below it; one that only leaves columns out is
gone where the node above leaves them out as well."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from headwater.plan import nodes as n
from headwater.plan.rewrite import rewrite
from headwater.sql.typed import Expr

__all__ = ["merge_projects"]


def merge_projects(root: n.Write) -> n.Write:
    return rewrite(root, _merge)


def _merge(node: n.Node) -> n.Node:
    match node:
        # Only where the upper one renames: merging computations would evaluate an expression as often as it is used.
        case n.Project(input=n.Project() as below) if _only_renames(node, below):
            inner = dict(zip(below.names, below.expressions, strict=True))
            taken = tuple(_as(inner[e.column], e) for e in node.expressions if e.column is not None)
            return n.Project(node.columns, below.input, taken)
        case n.Project(input=n.Project() as below) | n.Aggregate(input=n.Project() as below) if _only_narrows(below):
            return node.with_inputs([below.input])
    return node


def _only_renames(node: n.Project, below: n.Project) -> bool:
    used = Counter(e.column for e in node.expressions)
    # What is never the same twice, such as UUID(), would be computed for each of its uses.
    twice = [e for name, e in zip(below.names, below.expressions, strict=True) if used[name] > 1]
    return None not in used and all(e.deterministic for e in twice)


def _only_narrows(node: n.Project) -> bool:
    return all(expression.column == column.name for column, expression in node.items)


def _as(inner: Expr, outer: Expr) -> Expr:
    return replace(inner, type=outer.type)
