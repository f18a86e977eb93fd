"""Comparisons, logic, IN, BETWEEN, LIKE, IS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from headwater.sql.expressions.compiler import Compiler, Rules
from headwater.sql.functions.casts import convert
from headwater.sql.functions.comparisons import compare, meeting_type
from headwater.sql.functions.json import is_json
from headwater.sql.functions.like import like_sql, similar_sql
from headwater.sql.functions.spark_sql import Refused, combine, evaluated_once
from headwater.sql.typed import Expr, Predicate
from headwater.sql.types import BOOLEAN, STRING

__all__ = ["PREDICATES"]

_SIGNS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


def _compare(compiler: Compiler, node: exp.Binary) -> Expr:
    if isinstance(node.right, exp.Any | exp.All):
        hint = "Write = ANY as IN; compare with the MAX or MIN of a query for the others: a > (SELECT MAX(b) FROM t)."
        raise compiler.error(node.right, "A comparison with ANY or ALL is not supported", hint=hint)
    left, right = compiler.compile_all([node.left, node.right])
    return compare(_SIGNS[type(node)], left, right)


def _not_distinct(compiler: Compiler, node: exp.NullSafeEQ) -> Expr:
    left, right = compiler.compile_all([node.left, node.right])
    return compare("<=>", left, right)


def _distinct(compiler: Compiler, node: exp.NullSafeNEQ) -> Expr:
    left, right = compiler.compile_all([node.left, node.right])
    same = compare("<=>", left, right)
    return replace(same, sql=f"(NOT {same.sql})", text=f"({left.text} IS DISTINCT FROM {right.text})")


def _connect(compiler: Compiler, node: exp.Connector) -> Expr:
    """AND and OR; a long chain is one level."""
    word = "AND" if isinstance(node, exp.And) else "OR"
    parts = [compiler.condition(part, f"Each side of {word}") for part in node.flatten()]
    sql = f"({f' {word} '.join(part.sql for part in parts)})"
    sql_type = BOOLEAN.as_nullable(nullable=any(part.type.nullable for part in parts))
    whole = _logic(word, parts, combine(parts, sql, sql_type, f"({f' {word} '.join(part.text for part in parts)})"))
    return replace(whole, conjuncts=tuple(parts)) if word == "AND" else whole


def _not(compiler: Compiler, node: exp.Not) -> Expr:
    value = compiler.condition(node.this, "What follows NOT")
    text = f"NOT {value.text}"
    for word in ("IS", "IN", "LIKE", "BETWEEN", "SIMILAR TO"):
        if isinstance(node.this, _NEGATED.get(word, ())):
            text = value.text.replace(f" {word} ", f" {'IS NOT' if word == 'IS' else f'NOT {word}'} ", 1)
    return _logic("NOT", [value], combine([value], f"(NOT {value.sql})", value.type, text))


def _logic(operator: str, parts: Sequence[Expr], whole: Expr) -> Expr:
    """`whole`, as data too if all of its parts are."""
    # A condition is also kept as data, as long as all of it can be: readers evaluate it on Arrow columns, before the
    # shuffle.
    operands = [part.as_predicate for part in parts]
    known = tuple(operand for operand in operands if operand is not None)
    return (
        replace(whole, predicate=Predicate(whole.sql, operator, operands=known)) if len(known) == len(parts) else whole
    )


def _is(compiler: Compiler, node: exp.Is) -> Expr:
    value, what = compiler.compile(node.this), node.expression
    never_null = BOOLEAN.not_null()
    if isinstance(what, exp.JSON):
        if not value.type.is_string and value.type.name != "NULL":
            raise Refused(f"IS JSON tests a string, not {value.type.as_nullable()}")
        return is_json(convert(value, STRING), str(what.this))
    if isinstance(what, exp.Null):
        absent = combine([value], f"({value.sql} IS NULL)", never_null, f"{value.text} IS NULL")
        return replace(absent, predicate=Predicate(absent.sql, "IS NULL", value.column)) if value.column else absent
    word = "TRUE" if what.this else "FALSE"
    value = compiler.condition(node.this, f"What is before IS {word}")
    return combine([value], f"({value.sql} IS {word})", never_null, f"{value.text} IS {word}")


def _in(compiler: Compiler, node: exp.In) -> Expr:
    if node.args.get("query") is not None:
        hint = "It can stand in WHERE, HAVING and SELECT, and in ON of an inner join."
        raise compiler.error(node, "A query in IN is not supported here", hint=hint)
    values = compiler.compile_all([node.this, *node.expressions])
    kind = meeting_type(values)
    if kind.is_nested and kind.name != "ROW" and kind.name != "ARRAY":
        raise Refused(f"IN cannot look for a value of type {kind.as_nullable()}")
    # All in one type, found over all of them: compared pair by pair, 1 IN ('1', 1.5) could be true in two ways.
    first, *others = [convert(value, kind) for value in values]
    sql = f"({first.sql} IN ({', '.join(other.sql for other in others)}))"
    text = f"{values[0].text} IN ({', '.join(value.text for value in values[1:])})"
    return combine(values, sql, BOOLEAN.as_nullable(nullable=any(v.type.nullable for v in values)), text)


def _between(compiler: Compiler, node: exp.Between) -> Expr:
    parts = compiler.compile_all([node.this, node.args["low"], node.args["high"]])
    symmetric = bool(node.args.get("symmetric"))

    def body(bound: Sequence[Expr]) -> str:
        value, low, high = bound
        inside = f"({compare('>=', value, low).sql} AND {compare('<=', value, high).sql})"
        if not symmetric:
            return inside
        return f"({inside} OR ({compare('>=', value, high).sql} AND {compare('<=', value, low).sql}))"

    nullable = any(part.type.nullable for part in parts)
    word = "BETWEEN SYMMETRIC" if symmetric else "BETWEEN"
    text = f"{parts[0].text} {word} {parts[1].text} AND {parts[2].text}"
    return combine(parts, evaluated_once(parts, body), BOOLEAN.as_nullable(nullable=nullable), text)


def _like(compiler: Compiler, node: exp.Like | exp.SimilarTo, escape: str = "") -> Expr:
    parts = compiler.compile_all([node.this, node.expression])
    word = "LIKE" if isinstance(node, exp.Like) else "SIMILAR TO"
    for part in parts:
        if not part.type.is_string and part.type.name != "NULL":
            raise Refused(
                f"{word} compares strings, not {part.type.as_nullable()}", hint=f"CAST({part.text} AS STRING)."
            )
    value, pattern = (convert(part, STRING) for part in parts)
    rule = like_sql if word == "LIKE" else similar_sql
    sql = f"({value.sql} {rule(pattern, escape)})"
    shown = f" ESCAPE '{escape}'" if escape else ""
    nullable = value.type.nullable or pattern.type.nullable
    return combine(parts, sql, BOOLEAN.as_nullable(nullable=nullable), f"{parts[0].text} {word} {parts[1].text}{shown}")


def _escape(compiler: Compiler, node: exp.Escape) -> Expr:
    return _like(compiler, node.this, str(node.expression.name))


_NEGATED: dict[str, tuple[type[exp.Expr], ...]] = {
    "IS": (exp.Is,),
    "IN": (exp.In,),
    "LIKE": (exp.Like, exp.Escape),
    "BETWEEN": (exp.Between,),
    "SIMILAR TO": (exp.SimilarTo,),
}
PREDICATES: Rules = {
    **dict.fromkeys(_SIGNS, _compare),
    exp.NullSafeEQ: _not_distinct,
    exp.NullSafeNEQ: _distinct,
    exp.And: _connect,
    exp.Or: _connect,
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.SimilarTo: _like,
    exp.Escape: _escape,
}
