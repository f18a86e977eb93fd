"""SQL types from what a Python function says about itself: annotations, strings like 'ROW<a INT>', PyFlink's types."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import types as python_types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.errors import SqlError, ValidationError
from headwater.sql import types as t
from headwater.sql.types import Field, SqlType

__all__ = ["ANYTHING", "FunctionParameter", "declared_type", "parameter_of", "type_of", "unwrapped"]

_DECIMAL = t.decimal(38, 18)  # as in Flink, where a function names none
_SCALARS: dict[object, SqlType] = {
    bool: t.BOOLEAN,
    int: t.BIGINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    decimal.Decimal: _DECIMAL,
    dt.date: t.DATE,
    dt.time: t.TIME,
    dt.datetime: t.timestamp(6),
    dt.timedelta: SqlType("INTERVAL DAY"),
}
# Arguments of these annotations are handed over with the type they have in the query.
_AS_THEY_ARE: dict[object, frozenset[str]] = {
    decimal.Decimal: frozenset({"DECIMAL"}),
    dt.datetime: t.TIMESTAMPS,
    dt.time: frozenset({"TIME"}),
}
_SEQUENCES = (list, tuple, Sequence, Iterable, Iterator)


@dataclass(frozen=True)
class FunctionParameter:
    """What a function takes at one place: `type` is what the argument is converted to, None for what it is already;
    `names` are then the types it may be, none for any."""

    type: SqlType | None = None
    names: frozenset[str] = frozenset()

    def takes(self, actual: SqlType) -> bool:
        # A bare NULL has no type that Arrow could carry, unless the function asks for one.
        if actual.name == "NULL":
            return self.type is not None
        if self.type is None:
            return not self.names or actual.name in self.names
        from headwater.sql.functions.type_rules import common_type  # which workers never need

        wanted = self.type.as_nullable()
        return common_type(actual.as_nullable(), wanted) == wanted or _same_family(actual, wanted)

    def __str__(self) -> str:
        if self.type is not None:
            return str(self.type.as_nullable())
        return " or ".join(sorted(self.names)) or "any type"


ANYTHING = FunctionParameter()


def _same_family(a: SqlType, b: SqlType) -> bool:
    """A longer string, or a time with more digits, is no reason to refuse a call."""
    if (a.is_string and b.is_string) or (a.is_binary and b.is_binary):
        return True
    return a.name == b.name and a.name in {*t.TIMESTAMPS, "TIME"}


def parameter_of(annotation: Any) -> FunctionParameter:
    """From the annotation of a parameter."""
    annotation = unwrapped(annotation)
    if annotation is Any or annotation is object:
        return ANYTHING
    if annotation in _AS_THEY_ARE:
        return FunctionParameter(names=_AS_THEY_ARE[annotation])
    return FunctionParameter(type_of(annotation))


def declared_type(declared: Any) -> SqlType:
    """From what a decorator is given: a text, a Python type, or one of PyFlink's DataTypes."""
    if isinstance(declared, SqlType):
        return declared
    if isinstance(declared, str):
        return _parsed(declared)
    if hasattr(declared, "type_name") and hasattr(declared, "_nullable"):
        from headwater.python_functions.pyflink import type_of_pyflink

        return type_of_pyflink(declared)
    return type_of(declared)


def _parsed(text: str) -> SqlType:
    from headwater.sql.parser import parse_type  # workers import this module with the user's

    try:
        return parse_type(text)
    except SqlError as error:
        raise ValidationError(f"'{text}' is not a type.", detail=error.fact, hint=error.hint) from error


def unwrapped(annotation: Any) -> Any:
    """`int | None` and `Optional[int]` are int: every SQL value may be NULL."""
    if typing.get_origin(annotation) in (typing.Union, python_types.UnionType):
        rest = [part for part in typing.get_args(annotation) if part is not type(None)]
        return unwrapped(rest[0]) if len(rest) == 1 else annotation
    if typing.get_origin(annotation) is typing.Annotated:
        return typing.get_args(annotation)[0]
    return annotation


def type_of(annotation: Any) -> SqlType:
    """The SQL type that a Python type stands for; raises ValidationError if there is none."""
    annotation = unwrapped(annotation)
    try:
        if annotation in _SCALARS:
            return _SCALARS[annotation]
    except TypeError:  # not hashable: certainly not one of them
        pass
    fields = row_fields(annotation)
    if fields is not None:
        return SqlType("ROW", fields=tuple(Field(name, type_of(kind)) for name, kind in fields.items()))
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in _SEQUENCES and len([a for a in arguments if a is not Ellipsis]) == 1:
        return SqlType("ARRAY", element=type_of(arguments[0]))
    if origin in (dict, Mapping) and len(arguments) == 2:
        return SqlType("MAP", key=type_of(arguments[0]), element=type_of(arguments[1]))
    if origin is tuple and arguments:
        return SqlType("ROW", fields=tuple(Field(f"f{i}", type_of(kind)) for i, kind in enumerate(arguments)))
    raise ValidationError(
        f"The Python type {_shown(annotation)} has no SQL type.",
        hint="Declare it: result_type='ROW<a INT, b STRING>', input_types=['BIGINT'].",
    )


def row_fields(annotation: Any) -> dict[str, Any] | None:
    """Of a dataclass, a NamedTuple or a TypedDict."""
    if not isinstance(annotation, type):
        return None
    if dataclasses.is_dataclass(annotation) or hasattr(annotation, "_fields") or typing.is_typeddict(annotation):
        return typing.get_type_hints(annotation)
    return None


def _shown(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
