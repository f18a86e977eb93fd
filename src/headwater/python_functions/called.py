"""A Python function under a name in SQL, and its calls as expressions: checked, converted, and under a name for Spark
that is the same whenever the same call is planned."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwater.python_functions.declare import PythonFunction
from headwater.python_functions.types import FunctionParameter
from headwater.sql.functions.casts import convert
from headwater.sql.functions.spark_sql import Refused, combine
from headwater.sql.spark_text import quote_name, string_literal
from headwater.sql.typed import AggregateCall, Expr, UserAggregate
from headwater.sql.types import BOOLEAN, Field, SqlType

__all__ = ["AGGREGATE", "NamedFunction", "PythonCall"]

AGGREGATE = "PYTHON"
"""What an `AggregateCall` names every aggregate function."""


@dataclass(frozen=True, eq=False)
class NamedFunction:
    """`path` is the 'module.attribute' it was created from, empty for one that was registered; `directories` is where
    workers look for it. `generation` tells functions of one name apart."""

    name: str
    function: PythonFunction
    path: str = ""
    directories: tuple[str, ...] = ()
    generation: int = 0

    @property
    def kind(self) -> str:
        return self.function.kind

    @property
    def signature(self) -> str:
        inside = [str(parameter) for parameter in self.function.parameters]
        if self.function.repeats:
            inside[-1] += " …"
        return f"{self.name}({', '.join(inside)})"

    def call(self, arguments: Sequence[Expr]) -> Expr:
        """The call; of a table function it is an array of its rows."""
        values = self.converted(arguments)
        call = PythonCall(self, tuple(value.type.as_nullable() for value in values))
        result = self.function.result
        kind = SqlType("ARRAY", element=result) if self.kind == "table" else result
        # Spark calls no function over columns without a column: how many rows there are would not be known.
        inside = ", ".join(value.sql for value in values) or "0"
        text = f"{self.name}({', '.join(argument.text for argument in arguments)})"
        expression = combine(
            values, f"{quote_name(call.sql_name)}({inside})", kind.as_nullable(), text,
            deterministic=self.function.deterministic,
        )  # fmt: skip
        return replace(expression, functions=expression.functions | {call})

    def aggregate(self, arguments: Sequence[Expr]) -> AggregateCall:
        values = self.converted(arguments)
        call = PythonCall(self, tuple(value.type.as_nullable() for value in values))
        result, text = self.function.result.as_nullable(), f"{self.name}({', '.join(a.text for a in arguments)})"
        expression = combine(values, "", result, text, deterministic=self.function.deterministic)
        user = UserAggregate(replace(expression, functions=frozenset({call})), self.function.can)
        return AggregateCall(AGGREGATE, _row(values), False, None, result, text, nulls=True, user=user)

    def converted(self, arguments: Sequence[Expr]) -> list[Expr]:
        """The arguments as the function takes them, or Refused."""
        count, most = len(arguments), len(self.function.parameters)
        if count < self.function.least or (count > most and not self.function.repeats):
            number = f"{count} argument" + ("" if count == 1 else "s")
            raise Refused(f"{self.name} does not take {number}", detail=f"It is {self.signature}.")
        return [self._converted(index, argument) for index, argument in enumerate(arguments)]

    def _converted(self, index: int, argument: Expr) -> Expr:
        parameter = self.parameter(index)
        if not parameter.takes(argument.type):
            actual = argument.type.as_nullable()
            castable = parameter.type is not None and argument.text
            hint = f"CAST({argument.text} AS {parameter}) converts it." if castable else ""
            if actual.name == "NULL":
                hint = "Write CAST(NULL AS INT), for example."
            raise Refused(
                f"Argument {index + 1} of {self.name} must be {parameter}, not {actual}",
                detail=f"It is {self.signature}.",
                hint=hint,
                argument=index,
            )
        return argument if parameter.type is None else convert(argument, parameter.type)

    def parameter(self, index: int) -> FunctionParameter:
        return self.function.parameters[min(index, len(self.function.parameters) - 1)]


@dataclass(frozen=True)
class PythonCall:
    """A function with the types of its arguments at one place: what is registered with Spark."""

    function: NamedFunction
    arguments: tuple[SqlType, ...]

    @property
    def declaration(self) -> str:
        function = self.function.function
        version = f" version '{function.version}'" if function.version else ""
        inside = ", ".join(map(str, self.arguments))
        return f"{self.function.name}({inside}) -> {function.result}{version}"

    @property
    def sql_name(self) -> str:
        """Two functions of one name may meet in a query: a view keeps the one it was created with."""
        # Made of the declaration and not counted up: the same call has the same name whenever it is planned.
        digest = hashlib.sha256(f"{self.declaration} {self.function.generation}".encode()).hexdigest()[:12]
        return f"headwater_python_{digest}"


def _row(values: Sequence[Expr]) -> Expr:
    """The arguments of an aggregate function as one value. Without any it is a row of TRUE: it is counted, too."""
    given = values or [Expr("TRUE", BOOLEAN.not_null(), frozenset(), "TRUE")]
    fields = tuple(Field(f"f{index}", value.type) for index, value in enumerate(given))
    pairs = ", ".join(f"{string_literal(f.name)}, {value.sql}" for f, value in zip(fields, given, strict=True))
    text = f"ROW({', '.join(value.text for value in given)})"
    return combine(given, f"named_struct({pairs})", SqlType("ROW", fields=fields, nullable=False), text)
