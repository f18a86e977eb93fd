"""Spark SQL text that is safe to put together, and the Expr around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from headwater.sql.spark_text import quote_name
from headwater.sql.typed import CalledFunction, Expr
from headwater.sql.types import SqlType

__all__ = ["Refused", "column", "combine", "evaluated_once", "lambda_name", "typed"]


class Refused(Exception):
    """A call or a cast that is not allowed. `argument` is the index of the guilty argument, if one can be named."""

    def __init__(self, fact: str, *, detail: str = "", hint: str = "", argument: int | None = None) -> None:
        super().__init__(fact)
        self.fact = fact
        self.detail = detail
        self.hint = hint
        self.argument = argument


def column(name: str, sql_type: SqlType, text: str = "") -> Expr:
    return Expr(quote_name(name), sql_type, frozenset({name}), text or name, column=name)


def combine(parts: Sequence[Expr], sql: str, sql_type: SqlType, text: str, *, deterministic: bool = True) -> Expr:
    """An expression made of others: it reads what they read."""
    # What an expression reads and calls is carried along here, once for all functions: pruning, pushing and
    # fingerprints rely on it.
    refs = frozenset[str]().union(*(part.refs for part in parts))
    functions = frozenset[CalledFunction]().union(*(part.functions for part in parts))
    deterministic = deterministic and all(part.deterministic for part in parts)
    opened = any(part.paths is not None for part in parts)
    paths = frozenset[tuple[str, ...]]().union(*(part.reads for part in parts)) if opened else None
    by_arrival = any(part.by_arrival for part in parts)
    return Expr(sql, sql_type, refs, text, deterministic, functions=functions, paths=paths, by_arrival=by_arrival)


def typed(expression: Expr, sql_type: SqlType) -> Expr:
    """The same value under another Flink type that Spark carries in the same way."""
    return replace(expression, type=sql_type)


def lambda_name(depth: int) -> str:
    """The variable of a lambda `depth` levels deep; it is no name that a user's column is likely to have."""
    return f"`__hw_e{depth}`"


def evaluated_once(parts: Sequence[Expr], body: Callable[[Sequence[Expr]], str], *, first: int = 0) -> str:
    """`body` of the parts, where a part that changes by itself (RAND) is bound to a variable first.

    For a body that mentions a part more than once: Spark would evaluate it at each mention.
    """
    for index in range(first, len(parts)):
        part = parts[index]
        if not part.deterministic:
            variable = f"`__hw_v{index}`"
            bound = [*parts[:index], replace(part, sql=variable, deterministic=True), *parts[index + 1 :]]
            inner = evaluated_once(bound, body, first=index + 1)
            # Spark SQL has no LET; a lambda over an array of one is the only way to name a value inside an
            # expression.
            return f"transform(array({part.sql}), {variable} -> {inner})[0]"
    return body(parts)
