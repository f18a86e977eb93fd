"""A function is declared once: signature, Spark SQL, meaning. Typing, errors and docs/functions.md follow from it.

    fn("LEFT(STRING, INT) -> STRING", "left({0}, {1})", "The first n characters")

The signature names the kinds of its arguments (see `kinds`), `[, …]` around optional ones and `…` behind one that may
be repeated. The result is NULL if an argument is; a mark behind the result says otherwise: `?` it may be NULL for other
reasons, `!` it never is, `*` only if all arguments are, `=` as the `result` rule says. The SQL is a template over the
arguments, or a function of them. One name may have several signatures; the first that takes the arguments is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from headwater.sql.functions.casts import convert
from headwater.sql.functions.signatures import Bindings, Signature, parse_signature
from headwater.sql.functions.spark_sql import Refused, combine, evaluated_once
from headwater.sql.typed import Expr
from headwater.sql.types import SqlType

__all__ = ["Function", "FunctionRegistry", "Render", "ResultRule", "fn"]

_PLACE = re.compile(r"\{(\*|\d)\}")
Render = Callable[[Sequence[Expr]], str]
ResultRule = Callable[[Sequence[Expr]], SqlType]


@dataclass(frozen=True)
class Function:
    """One signature of a function. `result` overrides the signature's result where it depends on the arguments."""

    signature: Signature
    render: str | Render
    meaning: str
    result: ResultRule | None = None
    deterministic: bool = True
    family: str = ""

    @property
    def name(self) -> str:
        return self.signature.name

    def call(self, arguments: Sequence[Expr], written: str) -> Expr:
        """The call over arguments that this signature takes; `written` is the name in the query."""
        bindings = self.signature.bind(arguments)
        values = [convert(a, kind) if kind else a for a, kind in zip(arguments, bindings.targets, strict=True)]
        sql_type = self._result(values, bindings)
        if sql_type.name == "NULL":
            raise Refused(f"{self.name} of NULL alone has no type", hint="Write CAST(NULL AS INT), for example.")
        body = self.render if callable(self.render) else _template(self.render)
        # Only what is mentioned twice needs to be bound: the lambda for it is not free.
        once = isinstance(self.render, str) and all(self.render.count(f"{{{i}}}") < 2 for i in range(len(values)))
        sql = body(values) if once else evaluated_once(values, body)
        text = f"{written}({', '.join(a.text for a in arguments)})"
        return combine(values, sql, sql_type, text, deterministic=self.deterministic)

    def _result(self, values: Sequence[Expr], bindings: Bindings) -> SqlType:
        sql_type = self.result(values) if self.result is not None else self.signature.result_type(bindings)
        return sql_type.as_nullable(nullable=_NULLABLE[self.signature.nullness](sql_type, values))


# What the mark behind a result means.
_NULLABLE: dict[str, Callable[[SqlType, Sequence[Expr]], bool]] = {
    "": lambda _, values: any(v.type.nullable for v in values),
    "?": lambda *_: True,
    "!": lambda *_: False,
    "*": lambda _, values: all(v.type.nullable for v in values),
    "=": lambda result, _: result.nullable,
}


def _template(template: str) -> Render:
    """`{0}` is the first argument, `{*}` all of them; any other brace is only a brace."""

    def render(values: Sequence[Expr]) -> str:
        sqls = [value.sql for value in values]
        return _PLACE.sub(lambda found: ", ".join(sqls) if found[1] == "*" else sqls[int(found[1])], template)

    return render


def fn(
    signature: str,
    render: str | Render,
    meaning: str,
    *,
    result: ResultRule | None = None,
    deterministic: bool = True,
) -> Function:
    return Function(parse_signature(signature), render, meaning, result, deterministic)


@dataclass
class FunctionRegistry:
    """All functions by name."""

    functions: dict[str, list[Function]] = field(default_factory=dict)

    def add(self, family: str, functions: Iterable[Function]) -> None:
        for function in functions:
            self.functions.setdefault(function.name, []).append(replace(function, family=family))

    def call(self, name: str, arguments: Sequence[Expr]) -> Expr:
        """The call of a function that exists, or Refused with what it accepts."""
        candidates = self.functions[name.upper()]
        # Where several fit, the order in which they are declared decides.
        for function in candidates:
            if function.signature.mismatch(arguments) is None:
                return function.call(arguments, name.upper())
        raise _wrong_arguments(candidates, arguments)


def _wrong_arguments(candidates: Sequence[Function], arguments: Sequence[Expr]) -> Refused:
    name = candidates[0].name
    forms = " or ".join(dict.fromkeys(function.signature.text for function in candidates))
    given = ", ".join(str(a.type.as_nullable()) for a in arguments)
    counts = [f for f in candidates if f.signature.takes(len(arguments))]
    if not counts:
        number = f"{len(arguments)} argument" + ("" if len(arguments) == 1 else "s")
        return Refused(f"{name} does not take {number}", detail=f"It is {forms}.")
    mismatch = counts[0].signature.mismatch(arguments)
    assert mismatch is not None
    if len(counts) > 1:
        return Refused(f"{name} does not take ({given})", detail=f"It is {forms}.")
    index, expected = mismatch
    actual = arguments[index].type.as_nullable()
    fact = f"Argument {index + 1} of {name} must be {expected}, not {actual}"
    return Refused(fact, detail=f"It is {forms}.", hint=_advice(expected, arguments[index]), argument=index)


def _advice(expected: str, argument: Expr) -> str:
    castable = {"STRING", "INT", "BIGINT", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"}
    target = "DOUBLE" if expected == "a number" else expected
    if target in castable | {"DOUBLE"} and len(argument.text) <= 60:
        return f"CAST({argument.text} AS {target}) converts it."
    return ""
