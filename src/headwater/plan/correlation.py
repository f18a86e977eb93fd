"""Conditions of a query that name columns of the query around it."""

from __future__ import annotations

from sqlglot import exp

from headwater.plan.from_clause import resolves
from headwater.plan.relation import Locate
from headwater.sql.expressions import Scope, bind, name_nodes

__all__ = ["compared_with"]


def compared_with(tree: exp.Expr, inner: Scope, outer: Scope, locate: Locate) -> tuple[exp.Expr, exp.Expr] | None:
    """Of an equality between a value of the query and one of the query around it: both, the second one bound. None if
    the condition is something else."""
    if not isinstance(tree, exp.EQ):
        return None
    for own, other in ((tree.left, tree.right), (tree.right, tree.left)):
        names = list(name_nodes(other))
        if resolves(own, inner) and names and not any(resolves(name, inner) for name in names):
            return own, bind(other, outer, locate)
    return None
