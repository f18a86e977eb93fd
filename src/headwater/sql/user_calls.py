"""Calls of functions that users have defined, and how the parser's trees come to hold them.

The parser cannot tell `f(x)` of a user from any other function. `bound` looks the names up when a statement is
executed, so a view keeps the function it was created with. Nothing here knows in which language a function is written.

A table function gives an array of rows: `LATERAL TABLE(f(a)) AS t (x, y)` becomes UNNEST of a scalar call of f.

An aggregate function is an aggregate like the built-in ones, over a ROW of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol, TypeVar

from sqlglot import exp

from headwater.sql.script import Script
from headwater.sql.typed import AggregateCall, Expr

__all__ = ["AggregateFunctionCall", "FindFunction", "ScalarCall", "TableCall", "UserFunction", "bound", "function_of"]


class UserFunction(Protocol):
    """`kind` is scalar, table or aggregate."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    def call(self, arguments: Sequence[Expr]) -> Expr:
        """The call, or Refused with what it accepts."""
        ...

    def aggregate(self, arguments: Sequence[Expr]) -> AggregateCall:
        """The call of an aggregate function, without DISTINCT and FILTER, or Refused."""
        ...


class ScalarCall(exp.Anonymous):
    """`f(x)` in an expression; `function_of` has the function."""


class TableCall(exp.Anonymous):
    """`f(x)` in an expression, where f is a table function: an error. In FROM it is a ScalarCall inside UNNEST."""


class AggregateFunctionCall(exp.Anonymous):
    """`f(x)` of an aggregate function; DISTINCT stands inside, FILTER around it."""


_FUNCTION = "function"
_CALLS = {"scalar": ScalarCall, "table": TableCall, "aggregate": AggregateFunctionCall}
FindFunction = Callable[[str, exp.Expr], UserFunction | None]
T = TypeVar("T")


def function_of(node: exp.Expr) -> UserFunction:
    """What a bound call calls."""
    function: UserFunction = node.args[_FUNCTION]
    return function


def bound(part: T, lookup: FindFunction) -> T:
    """The statement, or a part of one, whose trees name the functions that `lookup` knows. The original is as it was:
    a script is validated as a whole before any of it happens."""
    return _bound(part, lookup)  # type: ignore[no-any-return]


def _bound(part: Any, lookup: FindFunction) -> Any:
    match part:
        case exp.Expr():
            return _tree(part.copy(), lookup) if part.find(exp.Anonymous) is not None else part
        case tuple():
            items = tuple(_bound(item, lookup) for item in part)
            return items if any(a is not b for a, b in zip(items, part, strict=True)) else part
        case Script():
            return part
    if not is_dataclass(part) or isinstance(part, type):
        return part
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    found = {name: _bound(value, lookup) for name, value in values.items()}
    changed = {name: value for name, value in found.items() if value is not values[name]}
    return replace(part, **changed) if changed else part


def _tree(tree: exp.Expr, lookup: FindFunction) -> exp.Expr:
    return tree.transform(lambda node: _call(node, lookup), copy=False)


def _call(node: exp.Expr, lookup: FindFunction) -> exp.Expr:
    if isinstance(node, exp.Lateral | exp.Table):
        return _in_from(node, lookup)
    if type(node) is not exp.Anonymous:
        return node
    name = node.this.name if isinstance(node.this, exp.Identifier) else str(node.this)
    function = lookup(name, node)
    if function is None:
        return node
    arguments = [_tree(argument, lookup) for argument in node.expressions]  # which `transform` leaves to us
    # Under its own name, however it is written here: GROUP BY must recognise it.
    made = _CALLS[function.kind](this=function.name, expressions=arguments, **{_FUNCTION: function})
    made.meta.update(node.meta)
    return made


def _in_from(node: exp.Expr, lookup: FindFunction) -> exp.Expr:
    made = _call(node.this, lookup) if type(node.this) is exp.Anonymous else None
    if not isinstance(made, TableCall):
        return node
    rows = ScalarCall(**made.args)
    rows.meta.update(made.meta)
    elements = exp.Unnest(expressions=[rows], alias=node.args.get("alias"))
    elements.meta.update(node.meta)
    return elements
