"""sqlglot trees in Flink's meaning → Spark SQL with a known type, without Spark.

scope        the names an expression may use
compiler     one rule per kind of node, errors with a caret
literals, names, operators, predicates, case_and_cast, calls    the rules
aggregates, named_aggregates    aggregate functions
"""

from __future__ import annotations

from headwater.sql.expressions.aggregates import compile_aggregate, is_aggregate
from headwater.sql.expressions.compiler import Locate
from headwater.sql.expressions.names import bind, bound_column, bound_to, name_nodes, rebound
from headwater.sql.expressions.rules import compile_expression, compile_predicate
from headwater.sql.expressions.scope import Scope, ScopeColumn

__all__ = [
    "Locate",
    "Scope",
    "ScopeColumn",
    "bind",
    "bound_column",
    "bound_to",
    "compile_aggregate",
    "compile_expression",
    "compile_predicate",
    "is_aggregate",
    "name_nodes",
    "rebound",
]
