"""Conditions taken apart: what is joined by AND, what it compares, whether it holds a query."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from sqlglot import exp

__all__ = ["COMPARISONS", "conjuncts", "has_query", "is_true", "unwrapped"]

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def unwrapped(tree: exp.Expr) -> exp.Expr:
    """Without parentheses around it."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def conjuncts(tree: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that must all hold. `(a AND b) OR (a AND c)` gives a, and b OR c: an equality that stands in every
    branch of an OR can be the key of a join."""
    if tree is None:
        return []
    tree = unwrapped(tree)
    if isinstance(tree, exp.And):
        return [part for side in (tree.left, tree.right) for part in conjuncts(side)]
    if isinstance(tree, exp.Or):
        return list(_factored(tree))
    return [tree]


def _factored(tree: exp.Or) -> Iterator[exp.Expr]:
    # By text: trees of different places are different objects, also where they say the same.
    branches = [{repr(part): part for part in conjuncts(branch)} for branch in _disjuncts(tree)]
    common = [text for text in branches[0] if all(text in other for other in branches[1:])]
    if not common:
        yield tree
        return
    yield from (branches[0][text] for text in common)
    rest = [[part for text, part in branch.items() if text not in common] for branch in branches]
    # A branch with nothing else holds whenever the common part does.
    if all(rest):
        yield reduce(exp.or_, [reduce(exp.and_, parts) for parts in rest])


def _disjuncts(tree: exp.Expr) -> list[exp.Expr]:
    tree = unwrapped(tree)
    return (
        [part for side in (tree.left, tree.right) for part in _disjuncts(side)] if isinstance(tree, exp.Or) else [tree]
    )


def has_query(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Query) or any(has_query(child) for child in tree.iter_expressions())


def is_true(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Boolean) and bool(tree.this)
