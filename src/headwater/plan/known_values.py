"""A CASE that a filter below has decided is its result: of a table whose rows are of several kinds, a view of one kind
then reads nothing of the others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace

from headwater.plan import nodes as n
from headwater.plan.rewrite import rewrite
from headwater.sql.typed import Expr, Predicate

__all__ = ["decide_cases"]

_COMPARISONS: dict[str, Callable[[object, object], bool]] = {"=": operator.eq, "<>": operator.ne}


def decide_cases(root: n.Write) -> n.Write:
    """Comes when filters are where they stay, and before columns are pruned."""
    return rewrite(root, _decided)


def _decided(node: n.Node) -> n.Node:
    if not isinstance(node, n.Project):
        return node
    known = _known_values(node.input)
    expressions = tuple(_chosen(e, known) for e in node.expressions)
    return replace(node, expressions=expressions) if known and expressions != node.expressions else node


def _known_values(node: n.Node) -> dict[str, str | int]:
    """Columns that have the same value in all rows that the filters let through."""
    found: dict[str, str | int] = {}
    while isinstance(node, n.Filter):
        for part in node.predicate.conjuncts or (node.predicate,):
            test = part.as_predicate
            if test is not None and test.operator == "=" and test.literal is not None:
                found[test.column] = test.literal
        node = node.input
    return found


def _chosen(expression: Expr, known: Mapping[str, str | int]) -> Expr:
    """The result of a CASE if `known` decides which one it is."""
    cases = expression.as_cases
    if cases is None:
        return expression
    for condition, result in cases.whens:
        answer = _answer(condition, known)
        if answer is None:
            return expression
        if answer:
            return replace(result, type=expression.type)
    return replace(cases.otherwise, type=expression.type) if cases.otherwise is not None else expression


def _answer(condition: Predicate, known: Mapping[str, str | int]) -> bool | None:
    """None: not known. A column that is known is not NULL, so that no other answer is possible."""
    parts = [_answer(operand, known) for operand in condition.operands]
    match condition.operator:
        case "AND":
            return False if False in parts else None if None in parts else True
        case "OR":
            return True if True in parts else None if None in parts else False
        case "NOT":
            return None if parts[0] is None else not parts[0]
        case "IS NULL":
            return False if condition.column in known else None
    if condition.column not in known or condition.operator not in _COMPARISONS:
        return None
    return _COMPARISONS[condition.operator](known[condition.column], condition.literal)
