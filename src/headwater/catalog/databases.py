"""Databases: names in front of tables' names. Only the default one is there from the start."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.errors import Position, SqlError, ValidationError
from headwater.options.closest import did_you_mean
from headwater.sql.paths import DEFAULT_DATABASE, split

__all__ = ["Databases", "database_of"]


class Databases:
    """`current` is that of names that have no database."""

    def __init__(self) -> None:
        self._names = {DEFAULT_DATABASE}
        self.current = DEFAULT_DATABASE

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._names))

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def copy(self) -> Databases:
        other = Databases()
        other._names = set(self._names)
        other.current = self.current
        return other

    def check(self, name: str, position: Position | None = None) -> None:
        """Raises if there is no such database."""
        if name in self._names:
            return
        hint = did_you_mean(name, self._names) or f"There are: {', '.join(self)}. CREATE DATABASE creates one."
        if position is None:
            raise ValidationError(f"There is no database '{name}'.", hint=hint)
        raise SqlError(f"There is no database '{name}'.", position=position, hint=hint)

    def create(self, name: str) -> None:
        if name in self._names:
            raise ValidationError(f"A database named '{name}' already exists.", hint="Write IF NOT EXISTS.")
        self._names.add(name)

    def drop(self, name: str) -> None:
        self.check(name)
        if name in (self.current, DEFAULT_DATABASE):
            which = "the current" if name == self.current else "the default"
            raise ValidationError(f"'{name}' is {which} database and cannot be dropped.", hint="USE another one first.")
        self._names.remove(name)


def database_of(path: str) -> str:
    """The database of a table, from the name under which the catalog keeps it."""
    parts = split(path)
    return parts[0] if len(parts) > 1 else DEFAULT_DATABASE
