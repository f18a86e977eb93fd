"""Function calls: found in the registry, or with a form of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches

from sqlglot import exp

from headwater.errors import SqlError
from headwater.plan.expression import Expr
from headwater.sql.dialect import to_type
from headwater.sql.expressions.compiler import Compiler, Rules
from headwater.sql.expressions.operators import arithmetic
from headwater.sql.functions import REGISTRY
from headwater.sql.functions.forms import FORMS
from headwater.sql.functions.json import JSON_FUNCTIONS, JSON_MAKERS, Clauses
from headwater.sql.functions.spark_sql import Refused
from headwater.sql.functions.time_units import extract, round_to, timestamp_add, timestamp_diff

__all__ = ["AGGREGATES", "CALLS"]

AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)
_OTHER_AGGREGATES = frozenset(
    {
        *("COLLECT", "ARRAY_AGG", "LISTAGG", "JSON_OBJECTAGG", "JSON_ARRAYAGG", "APPROX_COUNT_DISTINCT", "PERCENTILE"),
        *("STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP", "FIRST_VALUE", "LAST_VALUE"),
        *("LAG", "LEAD", "NTILE", "CUME_DIST", "PERCENT_RANK"),
    }
)
_TRIMS = {"BOTH": "TRIM", "LEADING": "LTRIM", "TRAILING": "RTRIM"}


def _call(compiler: Compiler, node: exp.Anonymous) -> Expr:
    name = str(node.this.name if isinstance(node.this, exp.Identifier) else node.this).upper()
    special = _SPECIAL.get(name)
    if special is not None:
        return special(compiler, node)
    if name not in REGISTRY.functions:
        raise _unknown(compiler, node, name)
    arguments = _arguments(compiler, name, node.expressions)
    return compiler.attempt(node, lambda: REGISTRY.call(name, arguments), node.expressions)


def _arguments(compiler: Compiler, name: str, nodes: Sequence[exp.Expr]) -> list[Expr]:
    for node in nodes:
        if isinstance(node, exp.Distinct):
            raise compiler.error(node, f"{name} takes no DISTINCT", hint="Only aggregates do.")
        if isinstance(node, exp.Kwarg):
            raise compiler.error(node, f"{name} takes its arguments by place", hint="Leave out the name and =>.")
    return compiler.compile_all(nodes)


def _unknown(compiler: Compiler, node: exp.Expr, name: str) -> SqlError:
    if name in _OTHER_AGGREGATES:
        return compiler.error(node, f"{name} is not supported", hint="Supported aggregates: COUNT, SUM, AVG, MIN, MAX.")
    close = get_close_matches(name, [*REGISTRY.functions, *FORMS], n=1, cutoff=0.6)
    hint = f"Did you mean {close[0]}?" if close else "docs/functions.md lists all functions."
    return compiler.error(node, f"Unknown function {name}", hint=hint)


def _modulo(compiler: Compiler, node: exp.Anonymous) -> Expr:
    arguments = _arguments(compiler, "MOD", node.expressions)
    if len(arguments) != 2:
        raise Refused("MOD takes two arguments")
    return arithmetic("%", *arguments)


def _with_unit(rule: Callable[[str, Expr, Expr], Expr]) -> Callable[[Compiler, exp.Anonymous], Expr]:
    def compile_call(compiler: Compiler, node: exp.Anonymous) -> Expr:
        unit, *values = node.expressions
        if not isinstance(unit, exp.Var) or len(values) != 2:
            raise Refused(f"{node.name.upper()} takes a unit and two values")
        first, second = compiler.compile_all(values)
        return compiler.attempt(node, lambda: rule(str(unit.name).upper(), first, second), node.expressions)

    return compile_call


def _json(compiler: Compiler, node: exp.Anonymous) -> Expr:
    name = str(node.this).upper()
    plain = [argument for argument in node.expressions if not isinstance(argument, exp.Kwarg)]
    arguments = compiler.compile_all(plain)
    raw = frozenset(index for index, argument in enumerate(plain) if _makes_json(argument))
    clauses = _clauses(compiler, [a for a in node.expressions if isinstance(a, exp.Kwarg)], raw)
    return compiler.attempt(node, lambda: JSON_FUNCTIONS[name](arguments, clauses), plain)


def _makes_json(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).upper() in JSON_MAKERS


def _clauses(compiler: Compiler, clauses: Sequence[exp.Kwarg], raw: frozenset[int]) -> Clauses:
    returning, words, defaults = None, {}, {}
    for clause in clauses:
        value = clause.expression
        if clause.name == "RETURNING":
            returning = to_type(value)
        elif isinstance(value, exp.Var):
            words[clause.name] = str(value.name)
        else:
            defaults[clause.name] = compiler.compile(value)
    return Clauses(returning, words, defaults, raw)


def _trim(compiler: Compiler, node: exp.Trim) -> Expr:
    name = _TRIMS[str(node.args.get("position") or "BOTH")]
    nodes = [part for part in (node.this, node.args.get("expression")) if part is not None]
    arguments = compiler.compile_all(nodes)
    return compiler.attempt(node, lambda: REGISTRY.call(name, arguments), nodes)


def _extract(compiler: Compiler, node: exp.Extract) -> Expr:
    value = compiler.compile(node.expression)
    return compiler.attempt(node, lambda: extract(str(node.this.name).upper(), value), [node.expression])


def _round(compiler: Compiler, node: exp.Ceil | exp.Floor) -> Expr:
    name = "CEIL" if isinstance(node, exp.Ceil) else "FLOOR"
    value = compiler.compile(node.this)
    unit = node.args.get("to")
    if unit is None:
        return compiler.attempt(node, lambda: REGISTRY.call(name, [value]), [node.this])
    return compiler.attempt(node, lambda: round_to(name, value, str(unit.name).upper()), [node.this])


def _aggregate_here(compiler: Compiler, node: exp.Expr) -> Expr:
    name = str(node.sql_name() if isinstance(node, exp.Func) else "FILTER")
    hint = "An aggregate may stand in SELECT and HAVING, and not inside another one."
    raise compiler.error(node, f"{name} is not allowed here", hint=hint)


def _window_here(compiler: Compiler, node: exp.Expr) -> Expr:
    raise compiler.error(node, "A function with OVER is not supported here")


def _rank_here(compiler: Compiler, node: exp.Func) -> Expr:
    raise compiler.error(node, f"{node.sql_name()} needs OVER (…)", hint="It is supported in a Top-N query only.")


def _query_here(compiler: Compiler, node: exp.Expr) -> Expr:
    raise compiler.error(node, "A query inside an expression is not supported", hint="Join the tables instead.")


_SPECIAL: dict[str, Callable[[Compiler, exp.Anonymous], Expr]] = {
    "MOD": _modulo,
    "TIMESTAMPADD": _with_unit(timestamp_add),
    "TIMESTAMPDIFF": _with_unit(timestamp_diff),
    **dict.fromkeys(JSON_FUNCTIONS, _json),
}
CALLS: Rules = {
    exp.Anonymous: _call,
    exp.Trim: _trim,
    exp.Extract: _extract,
    exp.Ceil: _round,
    exp.Floor: _round,
    **dict.fromkeys((*AGGREGATES, exp.Filter), _aggregate_here),
    **dict.fromkeys(_RANKS, _rank_here),
    exp.Window: _window_here,
    **dict.fromkeys((exp.Subquery, exp.Select, exp.Exists, exp.Union), _query_here),
}
