"""Questions about queries inside of conditions and expressions, asked of their trees."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from headwater.plan.grouping import needs_grouping
from headwater.plan.relation import without_alias

__all__ = ["SHAPES", "counts_rows", "is_plain", "is_strict", "query_of", "scalar_queries", "where_of", "with_replaced"]

_STRICT = (exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Cast)
"""What is NULL if an operand is."""
SHAPES = ("group", "having", "distinct", "limit", "offset", "windows")
"""Clauses that make more of a query than rows of FROM that pass WHERE."""


def query_of(tree: exp.Expr) -> exp.Expr:
    while isinstance(tree, exp.Subquery | exp.Exists):
        tree = tree.this
    return tree


def is_plain(query: exp.Expr) -> bool:
    """Rows of FROM that pass WHERE, nothing else."""
    if not isinstance(query, exp.Select) or query.args.get("from_") is None or query.args.get("with_") is not None:
        return False
    return not needs_grouping(query) and not any(query.args.get(shape) for shape in (*SHAPES, "order"))


def where_of(query: exp.Select) -> exp.Expr | None:
    where = query.args.get("where")
    return where.this if where is not None else None


def scalar_queries(tree: exp.Expr) -> Iterator[exp.Subquery]:
    if isinstance(tree, exp.Subquery):
        yield tree
    elif not isinstance(tree, exp.Query):
        for child in tree.iter_expressions():
            yield from scalar_queries(child)


def is_strict(tree: exp.Expr, query: exp.Subquery) -> bool:
    """Whether the condition is not TRUE if the query gives NULL."""
    node: exp.Expr | None = query.parent
    while node is not None and node is not tree:
        if not isinstance(node, _STRICT):
            return False
        node = node.parent
    return True


def with_replaced(tree: exp.Expr, query: exp.Subquery, column: exp.Expr) -> exp.Expr:
    if tree is query:
        return column
    copy = tree.copy()
    for key, value in tree.args.items():
        if isinstance(value, exp.Expr):
            copy.set(key, with_replaced(value, query, column))
    return copy


def counts_rows(query: exp.Expr) -> bool:
    item = without_alias(query.expressions[0]) if isinstance(query, exp.Select) else query
    return isinstance(item.this if isinstance(item, exp.Filter) else item, exp.Count)
