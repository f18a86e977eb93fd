"""Limits that conditions set on the numbers of ranks: WHERE n <= 3 around ROW_NUMBER() OVER (…) AS n.

A rank without a limit cannot be kept up to date: one row in front changes the numbers of all others. In the order of
time, rows only come behind: then their numbers are final, as those of other functions with OVER.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp

from headwater.errors import SqlError
from headwater.plan import nodes as n
from headwater.plan.predicates import conjuncts
from headwater.plan.rewrite import rewrite
from headwater.sql.typed import Expr
from headwater.sql.types import BIGINT

__all__ = ["refuse_unlimited_ranks", "with_rank_limits"]

Compile = Callable[[exp.Expr], Expr]


@dataclass(frozen=True)
class _Limits:
    """What a condition says of a column: from `first` to `last`."""

    column: str
    first: int = 1
    last: int | None = None


def with_rank_limits(node: n.Node, condition: exp.Expr, compile_: Compile) -> tuple[n.Node, exp.Expr | None]:
    """The node with the limits that the condition sets on ranks below it, and what is left of the condition."""
    if not any(isinstance(below, n.Rank) for below in n.walk(node)):
        return node, condition
    left = []
    for part in conjuncts(condition):
        limits = _limits(part, compile_)
        limited = _limited(node, limits) if limits is not None else None
        if limited is None:
            left.append(part)
        else:
            node = limited
    return node, reduce(exp.and_, left) if left else None


def refuse_unlimited_ranks(root: n.Write) -> n.Write:
    """The plan, in which ROW_NUMBER() in the order of time is computed like other functions with OVER."""
    root = rewrite(root, _numbered_by_time)
    for node in n.walk(root):
        if isinstance(node, n.Rank) and node.last is None:
            function = f"{node.function.upper()}()"
            raise SqlError(
                f"{function} needs a limit.",
                position=node.position,
                detail="Without one, every row that comes first would change the numbers of all others.",
                hint=f"Filter by it in the query around: SELECT … FROM (SELECT …, {function} OVER (…) AS n …) "
                "WHERE n <= 10.",
            )
    return root


def _numbered_by_time(node: n.Node) -> n.Node:
    if not isinstance(node, n.Rank) or node.last is not None or node.function != "row_number" or not node.number:
        return node
    ascending = len(node.order) == 1 and not node.order[0].descending
    if not ascending or node.order[0].name not in node.input.times or node.input.mode is not n.Mode.APPEND:
        return node
    by = f"PARTITION BY {', '.join(node.partition)} " if node.partition else ""
    text = f"ROW_NUMBER() OVER ({by}ORDER BY {node.order[0]})"
    call = n.OverCall("ROW_NUMBER", "", n.OverFrame("rows"), node.columns[-1].type, text)
    return n.OverTime(node.columns, node.input, node.partition, node.order, (call,))


def _limits(tree: exp.Expr, compile_: Compile) -> _Limits | None:
    if isinstance(tree, exp.Between):
        low, high = (_number(tree.args[name], compile_) for name in ("low", "high"))
        column = compile_(tree.this).column
        return _Limits(column, low, high) if column and low is not None and high is not None else None
    swapped = _SWAPPED.get(type(tree))
    if swapped is None:
        return None
    kind, left, right = type(tree), tree.this, tree.expression
    if isinstance(left, exp.Literal):
        kind, left, right = swapped, right, left
    number = _number(right, compile_)
    column = compile_(left).column if number is not None else None
    if column is None or number is None:
        return None
    first, last = _BOUNDS[kind](number)
    return _Limits(column, first, last)


def _number(tree: exp.Expr, compile_: Compile) -> int | None:
    literal = compile_(tree).literal if isinstance(tree, exp.Literal) else None
    return literal if isinstance(literal, int) and not isinstance(literal, bool) else None


_BOUNDS: dict[type[exp.Expr], Callable[[int], tuple[int, int | None]]] = {
    exp.EQ: lambda number: (number, number),
    exp.LT: lambda number: (1, number - 1),
    exp.LTE: lambda number: (1, number),
    exp.GT: lambda number: (number + 1, None),
    exp.GTE: lambda number: (number, None),
}
_SWAPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


_FIRST = Expr("1L", BIGINT.not_null(), frozenset(), "1", literal=1)


def _with_known_number(rank: n.Rank) -> n.Node:
    """The number of the first row to come is 1, so the rank need not give it: rows are then passed on as they come, and
    keep their times."""
    unnumbered = replace(rank, columns=rank.input.columns, number="")
    if unnumbered.kept != "first":
        return rank
    items = tuple(_FIRST if c.name == rank.number else n.column_reference(c) for c in rank.columns)
    return n.Project(rank.columns, unnumbered, items)


def _limited(node: n.Node, limits: _Limits) -> n.Node | None:
    """The node with these limits on the rank whose number the column is; None if it is not one. Filters in between do
    not change numbers; whatever else may, so it is not looked through."""
    match node:
        case n.Rank() if node.number == limits.column:
            lasts = [last for last in (node.last, limits.last) if last is not None]
            first, last = max(node.first, limits.first), min(lasts, default=None)
            # No number is within such limits: left to the filter, which drops all rows.
            if last is not None and last < first:
                return None
            return _with_known_number(replace(node, first=first, last=last))
        case n.Project():
            column = next((e.column for c, e in node.items if c.name == limits.column), None)
            below = _limited(node.input, replace(limits, column=column)) if column is not None else None
        case n.Filter():
            below = _limited(node.input, limits)
        case _:
            return None
    return node.with_inputs([below]) if below is not None else None
