"""Questions about queries inside of conditions and expressions, asked of their trees."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from sqlglot import exp

from headwater.plan.grouping import needs_grouping
from headwater.sql.expressions.calls import called_name
from headwater.sql.trees import data_type_node
from headwater.sql.types import BOOLEAN

__all__ = [
    "SHAPES",
    "Asked",
    "asked_of",
    "counts_rows",
    "is_null_with",
    "is_plain",
    "is_strict",
    "known_or_null",
    "query_of",
    "rows_asked_for",
    "scalar_queries",
    "where_of",
    "with_replaced",
]

_STRICT = (exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Cast)
"""What is NULL if an operand is."""
_COUNTS = frozenset({"APPROX_COUNT_DISTINCT"})
SHAPES = ("group", "having", "distinct", "limit", "offset", "windows")
"""Clauses that make more of a query than rows of FROM that pass WHERE."""


class Asked(Enum):
    """What a condition is asked for: whether it is TRUE, whether it is FALSE, or which of TRUE, FALSE and NULL."""

    TRUE = "true"
    FALSE = "false"
    VALUE = "value"


_OPPOSITE = {Asked.TRUE: Asked.FALSE, Asked.FALSE: Asked.TRUE, Asked.VALUE: Asked.VALUE}


def asked_of(tree: exp.Expr, part: str, asked: Asked) -> Asked:
    """What a tree that is asked for this asks for of one of its parts."""
    match tree:
        case exp.Paren() | exp.And() | exp.Or():
            return asked
        case exp.Not():
            return _OPPOSITE[asked]
        case exp.Case():  # its branches decide: a WHEN is taken if it is TRUE, but for CASE x WHEN value
            return Asked.TRUE if part == "ifs" and tree.this is None else Asked.VALUE
        case exp.Where():  # FILTER (WHERE …)
            return Asked.TRUE
        case exp.If():
            return asked if part == "this" else Asked.VALUE
    return Asked.VALUE


def known_or_null(equal: exp.Expr, possible: exp.Expr) -> exp.Expr:
    """TRUE if `equal`, else NULL if `possible`, else FALSE."""
    # NULL AND x is NULL if x is TRUE, and FALSE if x is FALSE.
    unknown = exp.And(this=exp.Cast(this=exp.Null(), to=data_type_node(BOOLEAN)), expression=possible)
    return exp.Paren(this=exp.Or(this=equal, expression=unknown))


def query_of(tree: exp.Expr) -> exp.Expr:
    while isinstance(tree, exp.Subquery | exp.Exists):
        tree = tree.this
    return tree


def is_values(tree: exp.Expr) -> bool:
    """Whether the query is nothing but VALUES, without an order or a limit."""
    query = query_of(tree)
    return isinstance(query, exp.Values) and not any(query.args.get(clause) for clause in ("order", "limit", "offset"))


def rows_asked_for(query: exp.Expr, *, any_row: bool) -> exp.Expr:
    """The query without what says nothing about which values are in it, nor, with `any_row`, about whether it has
    one: the order, duplicates, a limit."""
    if not isinstance(query, exp.Select) or query.args.get("offset") is not None:
        return query
    limit = query.args.get("limit")
    # EXISTS asks for any row, which a limit other than 0 does not change; which values IN finds, it does.
    if limit is not None and (not any_row or str(limit.expression) == "0"):
        return query
    copy = query.copy()
    for clause in ("order", "limit", "distinct"):
        copy.set(clause, None)
    return copy


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


def is_strict(tree: exp.Expr, query: exp.Expr) -> bool:
    """Whether the tree is NULL, or as a condition not TRUE, if the query or call in it gives NULL."""
    node: exp.Expr | None = query.parent
    while node is not None and node is not tree:
        if not isinstance(node, _STRICT):
            return False
        node = node.parent
    return True


def is_null_with(item: exp.Expr, call: exp.Expr) -> bool:
    """Whether the item is NULL if the call in it, or that is it, gives NULL."""
    return call is item or (isinstance(item, _STRICT) and is_strict(item, call))


def with_replaced(tree: exp.Expr, query: exp.Subquery, column: exp.Expr) -> exp.Expr:
    if tree is query:
        return column
    copy = tree.copy()
    for key, value in tree.args.items():
        if isinstance(value, exp.Expr):
            copy.set(key, with_replaced(value, query, column))
    return copy


def counts_rows(call: exp.Expr) -> bool:
    """Whether it is an aggregate that is 0 of no rows, and not NULL."""
    call = call.this if isinstance(call, exp.Filter) else call
    return isinstance(call, exp.Count) or (isinstance(call, exp.Anonymous) and called_name(call) in _COUNTS)
