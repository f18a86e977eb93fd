"""The expressions in plan nodes, whatever their kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from headwater.catalog.tables import Table
from headwater.plan import nodes as n
from headwater.sql.typed import CalledFunction, Expr

__all__ = ["expressions_of", "functions_of"]


def expressions_of(node: n.Node) -> Iterator[Expr]:
    """Those of one node, not of its inputs."""
    return _expressions([getattr(node, field.name) for field in fields(node)])


def functions_of(node: n.Node) -> set[CalledFunction]:
    """The user's functions that one node calls."""
    return {function for expression in expressions_of(node) for function in expression.functions}


def _expressions(parts: object) -> Iterator[Expr]:
    match parts:
        case Expr():
            yield parts
        case tuple() | list():
            for part in parts:
                yield from _expressions(part)
        case n.Node() | Table():
            return
        case _ if is_dataclass(parts) and not isinstance(parts, type):  # an aggregate, a condition, an order
            yield from _expressions([getattr(parts, field.name) for field in fields(parts)])
