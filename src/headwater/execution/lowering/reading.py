"""What readers may leave out: rows for which a condition is not TRUE, and the order of changes that nobody takes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pyarrow as pa

from headwater.changelog.conditions import And, ColumnRef, Compare, Condition, IsNull, Literal, Not, Or
from headwater.plan import nodes as n
from headwater.sql.typed import Expr, Predicate

__all__ = ["condition_of", "filters_above_scan", "readable_part", "takes_order"]

_PASS_ORDER_ON = (n.Project, n.Filter, n.FilterToDelete)
_IGNORE_ORDER = (n.Write, n.Aggregate, n.Join, n.UnionAll, n.Expand, n.SetOperation, n.Materialize)


def takes_order(root: n.Write, node: n.Node) -> bool:
    """Whether a node above needs to know in which order the changes of this one came. A sink without a key writes them
    as they come; operators that add rows up and take them away have the same result in any order. Of what is not
    known here it is assumed that it does."""
    users = [user for user in n.walk(root) if any(child is node for child in user.inputs)]
    return not users or any(
        takes_order(root, user) if isinstance(user, _PASS_ORDER_ON) else not isinstance(user, _IGNORE_ORDER)
        for user in users
    )


def filters_above_scan(node: n.Node) -> tuple[n.Scan, list[Expr]] | None:
    """The table below filters, and what they ask of it; None if there is anything else."""
    predicates: list[Expr] = []
    while isinstance(node, n.Filter):
        predicates.append(node.predicate)
        node = node.input
    return (node, predicates) if isinstance(node, n.Scan) else None


def readable_part(predicates: list[Expr]) -> Condition | None:
    """What readers can evaluate of filters that must all be passed: a row that fails it fails them."""
    parts = [part for predicate in predicates for part in predicate.conjuncts or (predicate,)]
    known = [part.as_predicate for part in parts]
    found = [condition_of(predicate) for predicate in known if predicate is not None]
    return reduce(And, found) if found else None


def condition_of(predicate: Predicate, values: Mapping[str, Condition] | None = None) -> Condition:
    """`values` are what stands for the columns it names, if not they themselves."""
    parts = [condition_of(operand, values) for operand in predicate.operands]
    column = values[predicate.column] if values is not None and not parts else ColumnRef(predicate.column)
    match predicate.operator:
        case "AND":
            return reduce(And, parts)
        case "OR":
            return reduce(Or, parts)
        case "NOT":
            return Not(parts[0])
        case "IS NULL":
            return IsNull(column)
    kind = pa.int64() if isinstance(predicate.literal, int) else pa.string()
    return Compare(predicate.operator, column, Literal(predicate.literal, kind))
