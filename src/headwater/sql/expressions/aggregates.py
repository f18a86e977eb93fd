"""COUNT, SUM, AVG, MIN and MAX, with Flink's result types, and functions of the user's. The others:
`named_aggregates`."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headwater.sql.expressions.calls import AGGREGATES, NAMED_AGGREGATES, called_name, plain_arguments
from headwater.sql.expressions.compiler import Compiler, Locate
from headwater.sql.expressions.named_aggregates import LEAST_SCALE, Nulls, compile_named
from headwater.sql.expressions.rules import RULES
from headwater.sql.expressions.scope import Scope
from headwater.sql.functions.spark_sql import Refused
from headwater.sql.functions.type_rules import MAX_PRECISION, is_temporal
from headwater.sql.typed import AggregateCall, Expr
from headwater.sql.types import BIGINT, SqlType, decimal, has_map
from headwater.sql.user_calls import AggregateFunctionCall, function_of

__all__ = ["compile_aggregate", "is_aggregate"]


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node is the call of an aggregate, with its FILTER if it has one. A call with OVER is none."""
    if isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        return True
    return isinstance(node, (*AGGREGATES, AggregateFunctionCall)) or _is_named(node)


def _is_named(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and called_name(node) in NAMED_AGGREGATES


def compile_aggregate(node: exp.Expr, scope: Scope, locate: Locate) -> AggregateCall:
    """The call, or a SqlError at its place."""
    compiler = Compiler(scope, locate, RULES)
    condition = None
    nulls: Nulls = ""
    call = node
    # FILTER and IGNORE NULLS may be nested in either order.
    while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        if isinstance(call, exp.Filter):
            condition = compiler.condition(call.expression.this, "The condition of FILTER")
        else:
            nulls = "IGNORE" if isinstance(call, exp.IgnoreNulls) else "RESPECT"
        call = call.this
    compiled = _compile(compiler, call, nulls)
    if condition is None:
        return compiled
    return replace(compiled, filter=condition, text=f"{compiled.text} FILTER (WHERE {condition.text})")


def _compile(compiler: Compiler, call: exp.Expr, nulls: Nulls) -> AggregateCall:
    if isinstance(call, AggregateFunctionCall):
        return _user_aggregate(compiler, call, nulls)
    if isinstance(call, exp.Anonymous) and _is_named(call):
        return compile_named(compiler, call, called_name(call), nulls)
    if not isinstance(call, AGGREGATES):
        return _refuse(compiler, call, nulls)
    function = str(call.sql_name())
    if nulls:
        raise compiler.error(call, f"{function} with {nulls} NULLS is not supported")
    argument, distinct = _argument(compiler, call, function)
    # Distinct values are keys of the state, and maps cannot be hashed.
    if function == "COUNT" and distinct and argument is not None and has_map(argument.type):
        raise compiler.error(call, f"COUNT(DISTINCT …) cannot compare values of type {argument.type.as_nullable()}")
    sql_type = compiler.attempt(call, lambda: _result(function, argument))
    inside = "*" if argument is None else ("DISTINCT " if distinct else "") + argument.text
    return AggregateCall(function, argument, distinct, None, sql_type, f"{function}({inside})")


def _user_aggregate(compiler: Compiler, call: AggregateFunctionCall, nulls: Nulls) -> AggregateCall:
    function, nodes = function_of(call), list(call.expressions)
    if nulls:
        raise compiler.error(call, f"{function.name} with {nulls} NULLS is not supported")
    distinct = bool(nodes) and isinstance(nodes[0], exp.Distinct)
    if distinct:
        nodes = [*nodes[0].expressions, *nodes[1:]]
    arguments = plain_arguments(compiler, function.name, nodes)
    made = compiler.attempt(call, lambda: function.aggregate(arguments), nodes)
    inside = ", ".join(argument.text for argument in arguments)
    return replace(made, distinct=distinct, text=f"{function.name}({'DISTINCT ' if distinct else ''}{inside})")


def _refuse(compiler: Compiler, node: exp.Expr, nulls: Nulls) -> AggregateCall:
    if isinstance(node, exp.WithinGroup):
        if isinstance(node.this, exp.Anonymous) and not _is_named(node.this):
            # For its error: a function that is not supported itself is named first.
            compiler.compile(node.this)
        hint = "LISTAGG concatenates in the order in which rows come."
        raise compiler.error(node, "WITHIN GROUP is not supported", hint=hint)
    if isinstance(node, exp.Anonymous):
        compiler.compile(node)
        if nulls:
            raise compiler.error(node, f"{nulls} NULLS is not supported")
        raise compiler.error(node, f"{called_name(node)} is not an aggregate and takes no FILTER")
    raise compiler.error(
        node, f"{str(node.key).upper()} is not supported", hint="'headwater docs functions' lists all aggregates."
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


def _result(function: str, argument: Expr | None) -> SqlType:
    if function == "COUNT":
        return BIGINT.not_null()
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
    return decimal(MAX_PRECISION, max(kind.scale, LEAST_SCALE) if function == "AVG" else kind.scale)
