"""Signatures as text: `ARRAY_CONTAINS(ARRAY<T>, T) -> BOOLEAN`, read once, then asked what they take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from headwater.sql import types
from headwater.sql.functions.kinds import KINDS
from headwater.sql.functions.type_rules import common_type
from headwater.sql.typed import Expr
from headwater.sql.types import SqlType

__all__ = ["Bindings", "Signature", "parse_signature"]

_FORM = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\) -> (?P<result>[^?!*=]+)(?P<nullness>[?!*=]?)")
_VARIABLES = ("T", "K", "V")
_MANY = 1000
_PLAIN = (types.BOOLEAN, types.INT, types.BIGINT, types.DOUBLE, types.STRING, types.BYTES, types.DATE)
_RESULTS = {kind.name: kind for kind in _PLAIN}


@dataclass(frozen=True)
class Parameter:
    kind: str  # a key of KINDS, a variable, ARRAY<…> or MAP<…>
    literal: bool = False

    @property
    def meaning(self) -> str:
        meaning = KINDS[self.kind].meaning if self.kind in KINDS else self.kind
        return f"a literal {meaning}" if self.literal else meaning


@dataclass(frozen=True)
class Bindings:
    """What the type variables stand for, and the type each argument is turned into (None: as it is)."""

    variables: dict[str, SqlType]
    targets: tuple[SqlType | None, ...]


@dataclass(frozen=True)
class Signature:
    text: str
    name: str
    parameters: tuple[Parameter, ...]
    least: int
    repeats: bool
    result: str
    nullness: str

    def takes(self, count: int) -> bool:
        return self.least <= count <= (_MANY if self.repeats else len(self.parameters))

    def parameter(self, index: int) -> Parameter:
        return self.parameters[min(index, len(self.parameters) - 1)]

    def mismatch(self, arguments: Sequence[Expr]) -> tuple[int, str] | None:
        """The first argument that does not fit and what is expected there; None if all fit."""
        if not self.takes(len(arguments)):
            return 0, ""
        variables: dict[str, SqlType] = {}
        for index, argument in enumerate(arguments):
            parameter = self.parameter(index)
            if parameter.literal and argument.literal is None:
                return index, parameter.meaning
            if not _matches(parameter.kind, argument.type, variables):
                bound = variables.get(parameter.kind)
                return index, str(bound.as_nullable()) if bound is not None else parameter.meaning
        return None

    def bind(self, arguments: Sequence[Expr]) -> Bindings:
        variables: dict[str, SqlType] = {}
        for index, argument in enumerate(arguments):
            _matches(self.parameter(index).kind, argument.type, variables)
        targets = tuple(_target(self.parameter(index).kind, variables) for index in range(len(arguments)))
        return Bindings(variables, targets)

    def result_type(self, bindings: Bindings) -> SqlType:
        return _type(self.result, bindings.variables)


def _matches(kind: str, actual: SqlType, variables: dict[str, SqlType]) -> bool:
    """Whether the type fits; binds or widens the variables in `kind`."""
    if kind in _VARIABLES:
        found = common_type(variables[kind], actual) if kind in variables else actual
        if found is not None:
            variables[kind] = found
        return found is not None
    # A bare NULL fits everything; it gets its type from the others, or from the parameter.
    if actual.name == "NULL":
        return True
    if kind.startswith("ARRAY<"):
        return actual.element is not None and actual.name == "ARRAY" and _matches(kind[6:-1], actual.element, variables)
    if kind.startswith("MAP<"):
        key, value = kind[4:-1].split(", ")
        if actual.name != "MAP" or actual.key is None or actual.element is None:
            return False
        return _matches(key, actual.key, variables) and _matches(value, actual.element, variables)
    return KINDS[kind].accepts(actual)


def _target(kind: str, variables: dict[str, SqlType]) -> SqlType | None:
    if kind in KINDS:
        return KINDS[kind].becomes
    target = _type(kind, variables)
    return None if target.name == "NULL" else target


def _type(text: str, variables: dict[str, SqlType]) -> SqlType:
    """The type that a result's text stands for."""
    if text in _VARIABLES:
        return variables.get(text, types.NULL)
    if text.startswith("ARRAY<"):
        return SqlType("ARRAY", element=_type(text[6:-1], variables))
    if text.startswith("MAP<"):
        key, value = text[4:-1].split(", ")
        return SqlType("MAP", key=_type(key, variables), element=_type(value, variables))
    if found := re.fullmatch(r"(TIME|TIMESTAMP|TIMESTAMP_LTZ)\((\d)\)", text):
        return SqlType(found[1], precision=int(found[2]))
    return _RESULTS.get(text, types.NULL)


def parse_signature(text: str) -> Signature:
    found = _FORM.fullmatch(text)
    assert found, f"not a signature: {text}"
    written = found["arguments"]
    required, _, optional = written.partition("[")
    names = [p for p in _split(required.rstrip(", ")) if p]
    more = [p for p in _split(optional.replace("[", "").replace("]", "").lstrip(", ")) if p]
    repeats = written.rstrip("]").endswith("…")
    parameters = tuple(_parameter(name.removesuffix("…")) for name in (*names, *more))
    shown = f"{found['name']}({written.replace(chr(39), '')})"
    return Signature(shown, found["name"], parameters, len(names), repeats, found["result"], found["nullness"])


def _split(text: str) -> list[str]:
    """At commas that are not inside `<…>`."""
    return [part.strip() for part in re.split(r",(?![^<]*>)", text)]


def _parameter(text: str) -> Parameter:
    kind = text.removesuffix("'")
    assert kind in KINDS or kind in _VARIABLES or kind.startswith(("ARRAY<", "MAP<")), f"unknown kind {kind}"
    return Parameter(kind, text.endswith("'"))
