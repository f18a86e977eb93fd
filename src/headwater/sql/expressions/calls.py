"""Function calls: found in the registry, or with a form of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches

from sqlglot import exp

from headwater.sql.expressions.compiler import Compiler, Rules
from headwater.sql.expressions.operators import arithmetic
from headwater.sql.functions import REGISTRY
from headwater.sql.functions.json import JSON_FUNCTIONS, JSON_MAKERS, Clauses
from headwater.sql.functions.spark_sql import Refused
from headwater.sql.functions.special_calls import SPECIAL_CALLS
from headwater.sql.functions.time_units import extract, round_to, timestamp_add, timestamp_diff
from headwater.sql.trees import to_type
from headwater.sql.typed import OWN_WATERMARK, Expr
from headwater.sql.types import TIMESTAMPS, SqlType
from headwater.sql.user_calls import AggregateFunctionCall, ScalarCall, TableCall, function_of

__all__ = [
    "AGGREGATES",
    "CALLS",
    "NAMED_AGGREGATES",
    "called_name",
    "is_unknown",
    "json_clauses",
    "plain_arguments",
    "unknown_function",
]

AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)
NAMED_AGGREGATES = frozenset(
    {
        *("FIRST_VALUE", "LAST_VALUE", "LISTAGG", "ARRAY_AGG", "COLLECT", "JSON_ARRAYAGG", "JSON_OBJECTAGG"),
        *("STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP", "APPROX_COUNT_DISTINCT"),
    }
)
"""Aggregates whose calls are plain function calls in the tree."""
_OVER_ONLY = frozenset({"LAG", "LEAD", "NTILE", "CUME_DIST", "PERCENT_RANK", "PERCENTILE"})
_GROUP_WINDOWS = ("TUMBLE", "HOP", "SESSION")
_OF_WINDOWS = frozenset(
    f"{window}{part}" for window in _GROUP_WINDOWS for part in ("", "_START", "_END", "_ROWTIME", "_PROCTIME")
)
_NO_VARIANT = "There is no type VARIANT. JSON_VALUE and JSON_QUERY read a part of a JSON string."
_NO_OBJECTS = "There are no structured types. Write ROW(…), and a CAST to name its fields."
_NOT_HERE = {
    "CURRENT_DATABASE": "Write the name as a string.",
    "JSON": "In JSON_OBJECT and JSON_ARRAY, what another call of them gives is JSON; any other string is quoted.",
    "OBJECT_OF": _NO_OBJECTS,
    "OBJECT_UPDATE": _NO_OBJECTS,
    "PARSE_JSON": _NO_VARIANT,
    "SOURCE_WATERMARK": "No connector has watermarks of its own. Write for example ts - INTERVAL '5' SECOND.",
    "TRY_PARSE_JSON": _NO_VARIANT,
}
"""Functions of Flink, and what to do without them."""
_OTHER_AGGREGATES = (
    "'headwater docs functions' lists all aggregates; 'headwater docs functions-python' says how to write another one."
)
_OTHER_FUNCTIONS = (
    "'headwater docs functions' lists all functions, and 'headwater docs functions-python' says how to write others."
)
_TRIMS = {"BOTH": "TRIM", "LEADING": "LTRIM", "TRAILING": "RTRIM"}


def called_name(node: exp.Anonymous) -> str:
    return str(node.this.name if isinstance(node.this, exp.Identifier) else node.this).upper()


def _call(compiler: Compiler, node: exp.Anonymous) -> Expr:
    name = called_name(node)
    # Before the registry: their arguments are no plain expressions (units, types, clauses), which compiling would
    # refuse.
    special = _SPECIAL.get(name)
    if special is not None:
        return special(compiler, node)
    if name in NAMED_AGGREGATES:
        return _aggregate_here(compiler, node)
    if is_unknown(name):
        fact, hint = unknown_function(name)
        raise compiler.error(node, fact, hint=hint)
    if name in ("LAG", "LEAD"):
        raise compiler.error(node, f"{name} needs OVER (…)", hint=f"Write {name}(…) OVER (ORDER BY …).")
    if name in _OVER_ONLY:
        raise compiler.error(node, f"{name} is not supported", hint=_OTHER_AGGREGATES)
    arguments = plain_arguments(compiler, name, node.expressions)
    return compiler.attempt(node, lambda: REGISTRY.call(name, arguments), node.expressions)


def plain_arguments(compiler: Compiler, name: str, nodes: Sequence[exp.Expr]) -> list[Expr]:
    for node in nodes:
        if isinstance(node, exp.Distinct):
            raise compiler.error(node, f"{name} takes no DISTINCT", hint="Only aggregates do.")
        if isinstance(node, exp.Kwarg):
            raise compiler.error(node, f"{name} takes its arguments by position", hint="Leave out the name and =>.")
    return compiler.compile_all(nodes)


def is_unknown(name: str) -> bool:
    """Whether no function, of whatever kind, has this name."""
    return not (name in REGISTRY.functions or name in _SPECIAL or name in NAMED_AGGREGATES or name in _OVER_ONLY)


def unknown_function(name: str) -> tuple[str, str]:
    """Fact and hint for a function that does not exist, or not where it stands."""
    if name in _OF_WINDOWS:
        window = name.rpartition("_")[0] or name
        hint = "Of a window table function, select window_start and window_end."
        return f"{name} needs {window}(…) with the same arguments in GROUP BY", hint
    if name in _NOT_HERE:
        return f"{name} is not supported", _NOT_HERE[name]
    near = get_close_matches(name, [*REGISTRY.functions, *SPECIAL_CALLS, *NAMED_AGGREGATES], n=1, cutoff=0.65)
    found = f"Did you mean {near[0]}? " if near else ""
    return f"Unknown function {name}", f"{found}{_OTHER_FUNCTIONS}"


def _user_call(compiler: Compiler, node: ScalarCall) -> Expr:
    function = function_of(node)
    arguments = plain_arguments(compiler, function.name, node.expressions)
    return compiler.attempt(node, lambda: function.call(arguments), node.expressions)


def _table_here(compiler: Compiler, node: TableCall) -> Expr:
    name = function_of(node).name
    hint = f"It stands in FROM: CROSS JOIN LATERAL TABLE({name}(…)) AS t."
    raise compiler.error(node, f"{name} is a table function", hint=hint)


def _modulo(compiler: Compiler, node: exp.Anonymous) -> Expr:
    arguments = plain_arguments(compiler, "MOD", node.expressions)
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
    plain, arguments, clauses = json_clauses(compiler, node)
    return compiler.attempt(node, lambda: JSON_FUNCTIONS[name](arguments, clauses), plain)


def json_clauses(compiler: Compiler, node: exp.Anonymous) -> tuple[list[exp.Expr], list[Expr], Clauses]:
    """The arguments of a call, as written and compiled, and its clauses."""
    plain = [argument for argument in node.expressions if not isinstance(argument, exp.Kwarg)]
    arguments = compiler.compile_all(plain)
    raw = frozenset(index for index, argument in enumerate(plain) if _makes_json(argument))
    return plain, arguments, _clauses(compiler, [a for a in node.expressions if isinstance(a, exp.Kwarg)], raw)


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
    named = called_name(node) if isinstance(node, exp.Anonymous) else ""
    if isinstance(node, AggregateFunctionCall):
        named = function_of(node).name
    name = named or str(node.sql_name() if isinstance(node, exp.Func) else "FILTER")
    hint = "An aggregate may stand in SELECT and HAVING, and not inside another one."
    raise compiler.error(node, f"{name} is not allowed here", hint=hint)


def _window_here(compiler: Compiler, node: exp.Expr) -> Expr:
    call = node.this.this if isinstance(node.this, exp.Filter) else node.this
    name = called_name(call) if isinstance(call, exp.Anonymous) else str(call.sql_name())
    hint = "'headwater docs sql' lists the functions that OVER takes, in SELECT."
    raise compiler.error(node, f"{name} with OVER is not supported here", hint=hint)


def _rank_here(compiler: Compiler, node: exp.Func) -> Expr:
    raise compiler.error(node, f"{node.sql_name()} needs OVER (…)", hint="It is supported in a Top-N query only.")


def _query_here(compiler: Compiler, node: exp.Expr) -> Expr:
    raise compiler.error(node, "A query inside an expression is not supported", hint="Join the tables instead.")


def _current_watermark(compiler: Compiler, node: exp.Anonymous) -> Expr:
    """The column beside the row that holds it. Whether the argument is a time attribute is checked by the planner."""
    if len(node.expressions) != 1:
        raise Refused("CURRENT_WATERMARK takes the column of an event time")
    (time,) = plain_arguments(compiler, "CURRENT_WATERMARK", node.expressions)
    if time.column is None or time.type.name not in TIMESTAMPS:
        raise Refused("CURRENT_WATERMARK takes the column of an event time", argument=0)
    sql = f"`{OWN_WATERMARK}`"
    # Watermarks have no zone: they are what a clock in UTC shows.
    if time.type.name == "TIMESTAMP_LTZ":
        sql = f"CAST(CAST({sql} AS STRING) || 'Z' AS TIMESTAMP)"
    kind = SqlType(time.type.name, precision=3)
    return Expr(sql, kind, time.refs, f"CURRENT_WATERMARK({time.text})", by_arrival=True)


_SPECIAL: dict[str, Callable[[Compiler, exp.Anonymous], Expr]] = {
    "CURRENT_WATERMARK": _current_watermark,
    "MOD": _modulo,
    "TIMESTAMPADD": _with_unit(timestamp_add),
    "TIMESTAMPDIFF": _with_unit(timestamp_diff),
    **dict.fromkeys(JSON_FUNCTIONS, _json),
}
CALLS: Rules = {
    exp.Anonymous: _call,
    ScalarCall: _user_call,
    TableCall: _table_here,
    exp.Trim: _trim,
    exp.Extract: _extract,
    exp.Ceil: _round,
    exp.Floor: _round,
    **dict.fromkeys((*AGGREGATES, AggregateFunctionCall, exp.Filter), _aggregate_here),
    **dict.fromkeys(_RANKS, _rank_here),
    exp.Window: _window_here,
    **dict.fromkeys((exp.Subquery, exp.Select, exp.Exists, exp.Union), _query_here),
}
