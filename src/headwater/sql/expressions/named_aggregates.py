"""Aggregates whose calls are plain function calls: values in the order they come, lists of them, and their spread.

Result types are Flink's: VAR_POP, STDDEV_POP and their kin have the type of AVG. APPROX_COUNT_DISTINCT counts exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from headwater.sql.expressions.calls import json_clauses
from headwater.sql.expressions.compiler import Compiler
from headwater.sql.functions.json import aggregated_array, aggregated_object
from headwater.sql.functions.spark_sql import Refused
from headwater.sql.functions.type_rules import MAX_PRECISION
from headwater.sql.typed import AggregateCall, Expr
from headwater.sql.types import BIGINT, STRING, SqlType, decimal

__all__ = ["LEAST_SCALE", "Nulls", "compile_named"]

LEAST_SCALE = 6  # of AVG, VAR_POP, … of DECIMAL
Nulls = Literal["", "IGNORE", "RESPECT"]

_OTHER_NAMES = {"STDDEV": "STDDEV_SAMP", "VARIANCE": "VAR_SAMP"}


@dataclass(frozen=True)
class _Call:
    """A call without DISTINCT: the arguments, and what its rule needs to complain at the right place."""

    name: str
    arguments: list[exp.Expr]
    compiler: Compiler
    node: exp.Anonymous
    distinct: bool
    nulls: Nulls

    def only(self) -> Expr:
        if len(self.arguments) != 1:
            raise Refused(f"{self.name} takes one argument")
        return self.value(self.arguments[0])

    def value(self, node: exp.Expr) -> Expr:
        value = self.compiler.compile(node)
        if value.type.name == "NULL":
            hint = "Write CAST(NULL AS INT), for example."
            raise self.compiler.error(node, f"{self.name} of NULL needs a type", hint=hint)
        return value

    def made(self, function: str, argument: Expr, kind: SqlType, text: str = "") -> AggregateCall:
        inside = ("DISTINCT " if self.distinct else "") + argument.text + text
        return AggregateCall(function, argument, self.distinct, None, kind, f"{self.name}({inside})")


def compile_named(compiler: Compiler, node: exp.Anonymous, name: str, nulls: Nulls) -> AggregateCall:
    """The call without its FILTER, or a SqlError at its place."""
    arguments = list(node.expressions)
    distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = [*arguments[0].expressions, *arguments[1:]]
    if nulls and nulls not in _NULLS.get(name, ()):
        raise compiler.error(node, f"{name} with {nulls} NULLS is not supported")
    call = _Call(name, arguments, compiler, node, distinct, nulls)
    return compiler.attempt(node, lambda: _RULES[name](call), arguments)


def _by_arrival(call: _Call) -> AggregateCall:
    value = call.only()
    return call.made(call.name, value, value.type.as_nullable())


def _listagg(call: _Call) -> AggregateCall:
    if not 1 <= len(call.arguments) <= 2:
        raise Refused("LISTAGG takes a string and a separator")
    value = call.value(call.arguments[0])
    if not value.type.is_string:
        raise Refused(f"LISTAGG takes a string, not {value.type.as_nullable()}", hint="CAST it to STRING.", argument=0)
    separator = call.compiler.compile(call.arguments[1]).literal if len(call.arguments) == 2 else ","
    if not isinstance(separator, str):
        raise Refused("The separator of LISTAGG must be a literal string", argument=1)
    text = f", '{separator}'" if len(call.arguments) == 2 else ""
    return replace(call.made("LISTAGG", value, STRING, text), separator=separator)


def _array_agg(call: _Call) -> AggregateCall:
    value = call.only()
    text = " IGNORE NULLS" if call.nulls == "IGNORE" else ""
    made = call.made("ARRAY_AGG", value, SqlType("ARRAY", element=value.type), text)
    return replace(made, nulls=call.nulls != "IGNORE")


def _collect(call: _Call) -> AggregateCall:
    value = call.only()
    if value.type.is_nested:
        raise Refused(f"COLLECT cannot compare values of type {value.type.as_nullable()}", argument=0)
    kind = SqlType("MULTISET", element=value.type.not_null(), nullable=False)
    return call.made("COLLECT", value, kind)


def _json_array(call: _Call) -> AggregateCall:
    _, values, clauses = json_clauses(call.compiler, call.node)
    if call.distinct or len(values) != 1:
        raise Refused("JSON_ARRAYAGG takes one value, without DISTINCT")
    return call.made("JSON_ARRAYAGG", aggregated_array(values[0], clauses), STRING.not_null())


def _json_object(call: _Call) -> AggregateCall:
    _, values, clauses = json_clauses(call.compiler, call.node)
    if call.distinct or len(values) != 2:
        raise Refused("JSON_OBJECTAGG takes one key and one value: JSON_OBJECTAGG(KEY k VALUE v)")
    return call.made("JSON_OBJECTAGG", aggregated_object(values[0], values[1], clauses), STRING.not_null())


def _spread(call: _Call) -> AggregateCall:
    value = call.only()
    kind = value.type.as_nullable()
    if call.distinct:
        raise Refused(f"{call.name} with DISTINCT is not supported", hint="Aggregate a query with SELECT DISTINCT.")
    if not kind.is_numeric:
        raise Refused(f"{call.name} takes a number, not {kind}", hint="CAST it." if kind.is_string else "", argument=0)
    if kind.name == "DECIMAL":
        assert kind.scale is not None
        kind = decimal(MAX_PRECISION, max(kind.scale, LEAST_SCALE))
    return call.made(_OTHER_NAMES.get(call.name, call.name), value, kind)


def _count_distinct(call: _Call) -> AggregateCall:
    value = call.only()
    return replace(call.made("COUNT", value, BIGINT.not_null()), distinct=True)


_NULLS: dict[str, tuple[Nulls, ...]] = {
    "FIRST_VALUE": ("IGNORE",),
    "LAST_VALUE": ("IGNORE",),
    "ARRAY_AGG": ("IGNORE", "RESPECT"),
}
_RULES: dict[str, Callable[[_Call], AggregateCall]] = {
    "FIRST_VALUE": _by_arrival,
    "LAST_VALUE": _by_arrival,
    "LISTAGG": _listagg,
    "ARRAY_AGG": _array_agg,
    "COLLECT": _collect,
    "JSON_ARRAYAGG": _json_array,
    "JSON_OBJECTAGG": _json_object,
    "APPROX_COUNT_DISTINCT": _count_distinct,
    **dict.fromkeys(("STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP"), _spread),
}
