"""The functions that users have defined in a session. Names are as in Flink: their case does not matter.

A temporary system function goes before a built-in one of the same name; any other function of the user's comes behind
the built-in ones and belongs to a database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headwater.errors import DependentError, Position, ValidationError
from headwater.options.closest import did_you_mean
from headwater.python_functions.called import NamedFunction
from headwater.sql.expressions.calls import NAMED_AGGREGATES
from headwater.sql.functions import REGISTRY
from headwater.sql.functions.special_calls import SPECIAL_CALLS
from headwater.sql.paths import split

__all__ = ["Functions"]

SYSTEM = ""


class Functions:
    """By database and upper-case name."""

    def __init__(self) -> None:
        self._functions: dict[tuple[str, str], NamedFunction] = {}
        self._broken: set[str] = set()
        self._created: dict[tuple[str, str], int] = {}

    def copy(self) -> Functions:
        other = Functions()
        other._functions = dict(self._functions)
        other._broken = set(self._broken)
        other._created = dict(self._created)
        return other

    def names(self) -> list[str]:
        return sorted({function.name for function in self._functions.values()})

    def create(self, function: NamedFunction, database: str) -> None:
        if self.exists(function.name, database):
            raise ValidationError(
                f"A function named '{function.name}' already exists.", hint="Write IF NOT EXISTS, or DROP it first."
            )
        self.replace(function, database)

    def replace(self, function: NamedFunction, database: str) -> None:
        """Create the function, or put it in the place of the one of this name."""
        key = (database, split(function.name)[-1].upper())
        generation = self._created.get(key, 0)
        self._created[key] = generation + 1
        self._functions[key] = replace(function, generation=generation)

    def exists(self, name: str, database: str) -> bool:
        return (database, split(name)[-1].upper()) in self._functions

    def drop(self, name: str, database: str) -> None:
        if not self.exists(name, database):
            raise self._unknown(name, database)
        del self._functions[database, split(name)[-1].upper()]

    def find(self, name: str, current: str, position: Position | None = None) -> NamedFunction | None:
        """The function that a call means; None for a built-in one, and for one that nobody has defined."""
        *given, last = split(name)
        simple = last.upper()
        if not given and (SYSTEM, simple) in self._functions:
            return self._functions[SYSTEM, simple]
        if not given and _is_built_in(simple):
            return None
        found = self._functions.get((given[0] if given else current, simple))
        if found is None and simple in self._broken:
            raise DependentError(f"The function '{name}' could not be created.", position=position)
        return found

    def mark_broken(self, name: str) -> None:
        """The statement that creates it is wrong: calling it raises a DependentError."""
        self._broken |= {part.upper() for part in split(name)[-1:]}

    def _unknown(self, name: str, database: str) -> ValidationError:
        known: Mapping[str, object] = {f.name: f for (place, _), f in self._functions.items() if place == database}
        hint = did_you_mean(name, known) or (f"There are: {', '.join(sorted(known))}." if known else "")
        if not hint and _is_built_in(split(name)[-1].upper()):
            hint = "Built-in functions cannot be dropped."
        return ValidationError(f"There is no function '{name}'.", hint=hint)


def _is_built_in(name: str) -> bool:
    return name in REGISTRY.functions or name in NAMED_AGGREGATES or name in SPECIAL_CALLS
