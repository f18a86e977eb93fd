"""COUNT, SUM, AVG, MIN and MAX, with Flink's result types."""

from __future__ import annotations

from sqlglot import exp

from headwater.plan.expression import AggregateCall, Expr
from headwater.sql.expressions.calls import AGGREGATES
from headwater.sql.expressions.compiler import Compiler, Locate
from headwater.sql.expressions.rules import RULES
from headwater.sql.expressions.scope import Scope
from headwater.sql.functions.spark_sql import Refused
from headwater.sql.functions.type_rules import MAX_PRECISION, is_temporal
from headwater.sql.types import BIGINT, SqlType, decimal

__all__ = ["compile_aggregate", "is_aggregate"]

_LEAST_SCALE = 6  # of AVG


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node is the call of an aggregate, with its FILTER if it has one.

    A call with OVER counts too, so that it is refused as a whole and its inside is not taken for a plain aggregate.
    """
    if isinstance(node, exp.Filter | exp.Window | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        return True
    return isinstance(node, AGGREGATES)


def compile_aggregate(node: exp.Expr, scope: Scope, locate: Locate) -> AggregateCall:
    """The call, or a SqlError at its place."""
    compiler = Compiler(scope, locate, RULES)
    condition = None
    call = node
    if isinstance(node, exp.Filter):
        call = node.this
        condition = compiler.condition(node.expression.this, "The condition of FILTER")
    if not isinstance(call, AGGREGATES):
        return _refuse(compiler, call)
    function = str(call.sql_name())
    argument, distinct = _argument(compiler, call, function)
    sql_type = compiler.attempt(call, lambda: _result(function, argument, distinct))
    inside = "*" if argument is None else ("DISTINCT " if distinct else "") + argument.text
    where = f" FILTER (WHERE {condition.text})" if condition is not None else ""
    return AggregateCall(function, argument, distinct, condition, sql_type, f"{function}({inside}){where}")


def _refuse(compiler: Compiler, node: exp.Expr) -> AggregateCall:
    if isinstance(node, exp.Window):
        raise compiler.error(node, "A function with OVER is not supported here")
    if isinstance(node, exp.Anonymous):
        compiler.compile(node)
        raise compiler.error(node, f"{str(node.this).upper()} is not an aggregate and takes no FILTER")
    raise compiler.error(
        node, f"{str(node.key).upper()} is not supported", hint="Aggregates: COUNT, SUM, AVG, MIN, MAX."
    )


def _argument(compiler: Compiler, call: exp.Expr, function: str) -> tuple[Expr | None, bool]:
    inside = call.this
    others = call.args.get("expressions") or []
    if isinstance(inside, exp.Star):
        return None, False
    distinct = isinstance(inside, exp.Distinct)
    if distinct:
        inside, *others = inside.expressions
    if others:
        hint = (
            f"Put them into one: {function}({'DISTINCT ' if distinct else ''}ROW(a, b))." if function == "COUNT" else ""
        )
        raise compiler.error(others[0], f"{function} takes one argument", hint=hint)
    value = compiler.compile(inside)
    if value.type.name == "NULL":
        raise compiler.error(inside, f"{function} of NULL needs a type", hint="Write CAST(NULL AS INT), for example.")
    return value, distinct


def _result(function: str, argument: Expr | None, distinct: bool) -> SqlType:
    if function == "COUNT":
        if distinct and argument is not None and _has_map(argument.type):
            raise Refused(f"COUNT(DISTINCT …) cannot compare values of type {argument.type.as_nullable()}")
        return BIGINT.as_nullable(False)
    assert argument is not None
    kind = argument.type.as_nullable()
    if function in {"MIN", "MAX"}:
        if not (kind.is_numeric or kind.is_string or kind.name == "BOOLEAN" or is_temporal(kind)):
            raise Refused(f"{function} cannot compare values of type {kind}")
        return kind
    if not kind.is_numeric:
        raise Refused(f"{function} takes a number, not {kind}", hint="CAST it." if kind.is_string else "")
    if kind.name != "DECIMAL":
        return kind
    assert kind.scale is not None
    return decimal(MAX_PRECISION, max(kind.scale, _LEAST_SCALE) if function == "AVG" else kind.scale)


def _has_map(kind: SqlType) -> bool:
    parts = (*(field.type for field in kind.fields), *(part for part in (kind.key, kind.element) if part is not None))
    return kind.name in {"MAP", "MULTISET"} or any(_has_map(part) for part in parts)
