"""All rules together, and the two ways in."""

from __future__ import annotations

from sqlglot import exp

from headwater.sql.expressions.calls import CALLS
from headwater.sql.expressions.case_and_cast import CASE_AND_CAST
from headwater.sql.expressions.compiler import Compiler, Locate, Rules
from headwater.sql.expressions.literals import LITERALS
from headwater.sql.expressions.names import NAMES
from headwater.sql.expressions.operators import OPERATORS
from headwater.sql.expressions.predicates import PREDICATES
from headwater.sql.expressions.scope import Scope
from headwater.sql.typed import Expr

__all__ = ["RULES", "compile_expression", "compile_predicate"]

RULES: Rules = {**LITERALS, **NAMES, **OPERATORS, **PREDICATES, **CASE_AND_CAST, **CALLS}


def compile_expression(node: exp.Expr, scope: Scope, locate: Locate) -> Expr:
    """A scalar expression over the columns of `scope`, or a SqlError at its place."""
    return Compiler(scope, locate, RULES).compile(node)


def compile_predicate(node: exp.Expr, scope: Scope, locate: Locate) -> Expr:
    """A BOOLEAN expression, as WHERE and HAVING need."""
    return Compiler(scope, locate, RULES).condition(node, "The condition")
