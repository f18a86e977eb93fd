"""CASE, CAST and TRY_CAST."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from headwater.sql.expressions.compiler import Compiler, Rules
from headwater.sql.expressions.literals import typed_literal
from headwater.sql.functions.casts import cast, convert
from headwater.sql.functions.comparisons import compare
from headwater.sql.functions.spark_sql import Refused, combine, evaluated_once
from headwater.sql.functions.type_rules import common_type_of
from headwater.sql.trees import to_type
from headwater.sql.typed import Cases, Expr

__all__ = ["CASE_AND_CAST"]


def _case(compiler: Compiler, node: exp.Case) -> Expr:
    branches: Sequence[exp.If] = node.args["ifs"]
    results = compiler.compile_all([branch.args["true"] for branch in branches])
    default = node.args.get("default")
    if default is not None:
        results.append(compiler.compile(default))
    kind = common_type_of([result.type for result in results])
    if kind is None or kind.name == "NULL":
        kinds = ", ".join(dict.fromkeys(str(result.type.as_nullable()) for result in results))
        raise Refused(f"The results of CASE have no common type: {kinds}", hint="CAST them to one type.")
    kind = kind.as_nullable(nullable=kind.nullable or default is None)
    converted = [convert(result, kind) for result in results]
    values = [result.sql for result in converted]
    otherwise = f" ELSE {values.pop()}" if default is not None else ""
    operand = node.args.get("this")
    parts = _conditions(compiler, operand, branches)

    def body(bound: Sequence[Expr]) -> str:
        tests = [compare("=", bound[0], part).sql for part in bound[1:]] if operand else [part.sql for part in bound]
        whens = " ".join(f"WHEN {test} THEN {value}" for test, value in zip(tests, values, strict=True))
        return f"CASE {whens}{otherwise} END"

    sql = evaluated_once(parts, body)
    whole = combine([*parts, *results], sql, kind, _case_text(node, parts, results))
    tests = [part.as_predicate for part in parts] if operand is None else []
    known = [test for test in tests if test is not None]
    if len(known) < len(branches):
        return whole
    whens = tuple(zip(known, converted, strict=False))
    return replace(whole, cases=Cases(sql, whens, converted[-1] if default is not None else None))


def _conditions(compiler: Compiler, operand: exp.Expr | None, branches: Sequence[exp.If]) -> list[Expr]:
    """The conditions; for `CASE x WHEN v …` x and then the values."""
    if operand is None:
        return [compiler.condition(branch.this, "A condition of CASE") for branch in branches]
    value = compiler.compile(operand)
    others = compiler.compile_all([branch.this for branch in branches])
    for branch, other in zip(branches, others, strict=True):
        # For its error alone, at the value that cannot be compared; the comparison is made below, once the operand is
        # bound.
        compiler.attempt(branch.this, lambda other=other: compare("=", value, other))  # type: ignore[misc]
    return [value, *others]


def _case_text(node: exp.Case, parts: Sequence[Expr], results: Sequence[Expr]) -> str:
    simple, has_default = node.args.get("this") is not None, node.args.get("default") is not None
    tests = parts[1:] if simple else parts
    whens = "".join(f" WHEN {a.text} THEN {b.text}" for a, b in zip(tests, results, strict=False))
    head = f"CASE {parts[0].text}" if simple else "CASE"
    return f"{head}{whens}{f' ELSE {results[-1].text}' if has_default else ''} END"


def _cast(compiler: Compiler, node: exp.Cast) -> Expr:
    target = to_type(node.args["to"])
    if isinstance(node.this, exp.Literal) and node.this.is_string:
        # A literal and no conversion: it is a constant that is never NULL, and the planner knows it.
        literal = typed_literal(str(node.this.this), target)
        if literal is not None:
            return literal
    return cast(compiler.compile(node.this), target)


def _try_cast(compiler: Compiler, node: exp.TryCast) -> Expr:
    return cast(compiler.compile(node.this), to_type(node.args["to"]), "TRY_CAST")


CASE_AND_CAST: Rules = {exp.Case: _case, exp.Cast: _cast, exp.TryCast: _try_cast}
