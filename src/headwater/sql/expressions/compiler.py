"""Walks a tree: one rule per kind of node. A node without a rule is an error, never passed through."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sqlglot import exp

from headwater.errors import Position, SqlError
from headwater.sql.expressions.scope import Scope
from headwater.sql.functions.casts import convert
from headwater.sql.functions.spark_sql import Refused
from headwater.sql.typed import Expr
from headwater.sql.types import BOOLEAN

__all__ = ["Compiler", "Locate", "Rule", "Rules"]

Locate = Callable[[exp.Expr], Position | None]
Rule = Callable[["Compiler", Any], Expr]
Rules = Mapping[type[exp.Expr], Rule]
_T = TypeVar("_T")


class Compiler:
    """One expression's way to Spark SQL."""

    def __init__(self, scope: Scope, locate: Locate, rules: Rules) -> None:
        self.scope = scope
        self.locate = locate
        self._rules = rules

    def compile(self, node: exp.Expr) -> Expr:
        rule = self._rules.get(type(node))
        if rule is None:
            raise self.error(node, f"{_described(node)} is not supported in an expression")
        try:
            return self.attempt(node, lambda: rule(self, node))
        # At the innermost node that still has room to report it; Python would show a thousand frames.
        except RecursionError:
            raise self.error(node, "The expression is nested too deeply") from None

    def compile_all(self, nodes: Sequence[exp.Expr]) -> list[Expr]:
        return [self.compile(node) for node in nodes]

    def condition(self, node: exp.Expr, what: str) -> Expr:
        """A BOOLEAN; `what` names the place that needs one."""
        value = self.compile(node)
        if value.type.name not in {"BOOLEAN", "NULL"}:
            hint = "Write a comparison, for example x = 1." if not value.type.is_string else "Write x = 'true'."
            raise self.error(node, f"{what} must be BOOLEAN, not {value.type.as_nullable()}", hint=hint)
        return convert(value, BOOLEAN)

    def attempt(self, node: exp.Expr, action: Callable[[], _T], arguments: Sequence[exp.Expr] = ()) -> _T:
        """`action`, with a refusal shown at the argument it is about, else at the node."""
        try:
            return action()
        except Refused as refusal:
            index = refusal.argument
            at = arguments[index] if index is not None and index < len(arguments) else node
            raise self.error(at, refusal.fact, detail=refusal.detail, hint=refusal.hint) from None

    def error(self, node: exp.Expr, fact: str, *, detail: str = "", hint: str = "") -> SqlError:
        return SqlError(fact, position=self.locate(node), detail=detail, hint=hint)


def _described(node: exp.Expr) -> str:
    if isinstance(node, exp.Query | exp.Exists):
        return "A query"
    return str(node.key).upper().replace("_", " ")
