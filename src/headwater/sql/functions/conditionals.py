"""Choices between values, and questions about types."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.sql.functions.comparisons import compare
from headwater.sql.functions.registry import Render, fn
from headwater.sql.functions.type_rules import common_type_of
from headwater.sql.spark_text import string_literal
from headwater.sql.typed import Expr
from headwater.sql.types import SqlType

__all__ = ["CONDITIONALS"]


def _extreme(spark: str) -> Render:
    """NULL if any argument is; Spark's own skips NULLs."""

    def render(args: Sequence[Expr]) -> str:
        if len(args) == 1:
            return args[0].sql
        call = f"{spark}({', '.join(a.sql for a in args)})"
        # Only of those that can be NULL: the usual call stays a single function.
        nulls = " OR ".join(f"{a.sql} IS NULL" for a in args if a.type.nullable)
        return f"CASE WHEN {nulls} THEN NULL ELSE {call} END" if nulls else call

    return render


def _nullif(args: Sequence[Expr]) -> str:
    return f"CASE WHEN {compare('=', args[0], args[1]).sql} THEN NULL ELSE {args[0].sql} END"


def _branches(args: Sequence[Expr]) -> SqlType:
    found = common_type_of([a.type for a in args[1:]])
    assert found is not None  # the signature has the same T for both
    return found


CONDITIONALS = (
    fn("COALESCE(T…) -> T*", "coalesce({*})", "The first value that is not NULL"),
    fn("IFNULL(T, T) -> T*", "coalesce({0}, {1})", "The first value, or the second if that is NULL"),
    fn("NVL(T, T) -> T*", "coalesce({0}, {1})", "The same as IFNULL"),
    fn("NULLIF(ANY, ANY) -> ANY?", _nullif, "The first value, or NULL if both are equal", result=lambda a: a[0].type),
    fn(
        "IF(BOOLEAN, T, T) -> T=",
        "if({0}, {1}, {2})",
        "The second value if the condition is true, else the third",
        result=_branches,
    ),
    fn("GREATEST(T…) -> T", _extreme("greatest"), "The greatest value; NULL if one is NULL"),
    fn("LEAST(T…) -> T", _extreme("least"), "The least value; NULL if one is NULL"),
    fn("TYPEOF(ANY) -> STRING!", lambda a: string_literal(str(a[0].type)), "The type, as in CREATE TABLE"),
)
