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
from headwater.sql.spark_text import quote_name
from headwater.sql.typed import Expr
from headwater.sql.types import Field, SqlType

__all__ = ["NamedFunction", "PythonCall"]


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
        """The call; of a table function it is an array of its rows. An aggregate function has one argument: an array
        with a row of arguments for each row of the group."""
        values = [self._rows(arguments[0])] if self.kind == "aggregate" else self.converted(arguments)
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

    def _rows(self, rows: Expr) -> Expr:
        assert rows.type.element is not None
        fields = rows.type.element.fields
        if not self.function.parameters and [field.type.name for field in fields] == ["BOOLEAN"]:
            return rows  # f() is called over rows of TRUE
        kinds = [value.type for value in self.converted([Expr("", f.type, frozenset(), "") for f in fields])]
        wanted = tuple(Field(field.name, kind) for field, kind in zip(fields, kinds, strict=True))
        return convert(rows, replace(rows.type, element=replace(rows.type.element, fields=wanted)))

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
    def arity(self) -> int:
        """Of an aggregate function, how many fields of the rows it is given are its arguments."""
        row = self.arguments[0].element
        return len(row.fields) if row is not None and self.function.function.parameters else 0

    @property
    def declaration(self) -> str:
        function = self.function.function
        version = f" version '{function.version}'" if function.version else ""
        inside = ", ".join(map(str, self.arguments))
        return f"{self.function.name}({inside}) -> {function.result}{version}"

    @property
    def sql_name(self) -> str:
        """Two functions of one name may meet in a query: a view keeps the one it was created with."""
        digest = hashlib.sha256(f"{self.declaration} {self.function.generation}".encode()).hexdigest()[:12]
        return f"headwater_python_{digest}"
