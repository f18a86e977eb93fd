"""The names an expression may use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from headwater.errors import Position, SqlError
from headwater.sql.types import SqlType

__all__ = ["Scope", "ScopeColumn"]

_MOST_SHOWN = 12


@dataclass(frozen=True)
class ScopeColumn:
    """`qualifier.name` in the query is the input's column `column`. Where USING has `merged` it with another, it has to
    be named with its qualifier. `path` are catalog and database of the table, if it goes by its own name."""

    qualifier: str
    name: str
    column: str
    type: SqlType
    merged: bool = False
    path: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """Its name, with the number that tells it apart in a plan from one of another table."""
        return self.column if self.column.removeprefix(self.name).isdigit() else self.name


@dataclass(frozen=True)
class Scope:
    """Names are compared as they are written, as in Flink. A name that is not here may be one of the query around this
    one, whose scope is `outer`."""

    columns: tuple[ScopeColumn, ...]
    outer: Scope | None = None

    def resolve(self, name: str, qualifier: str | None = None, position: Position | None = None) -> ScopeColumn:
        """The one column of that name, or a SqlError."""
        found = self.find(name, qualifier)
        if not found:
            raise self._unknown(name, qualifier, position)
        if len({column.column for column in found}) > 1:
            tables = [column.qualifier for column in found]
            raise SqlError(
                f"Column '{name}' is ambiguous",
                position=position,
                detail=f"It is in {' and '.join(repr(table) for table in tables)}.",
                hint=f"Write {' or '.join(f'{table}.{name}' for table in tables)}.",
            )
        return found[0]

    def find(self, name: str, qualifier: str | None = None) -> list[ScopeColumn]:
        if qualifier is None:
            return [c for c in self.columns if c.name == name and not c.merged]
        return [c for c in self.columns if c.name == name and c.qualifier == qualifier]

    def at(self, column: str) -> ScopeColumn:
        """The one whose values are in that column of the input."""
        return next(c for c in self.columns if c.column == column)

    def knows(self, parts: Sequence[str]) -> bool:
        """Whether `a.b.c` begins with a column of this scope."""
        parts = parts[self._before_table(parts) :]
        return bool(self.find(parts[0]) or (len(parts) > 1 and self.find(parts[1], parts[0])))

    def resolve_path(
        self, parts: Sequence[str], locate: Callable[[int], Position | None] = lambda _: None
    ) -> tuple[ScopeColumn, Sequence[str]]:
        """The column that `a.b.c` begins with, and the fields behind it; `locate` says where a part is written.

        `a` is a table of FROM if it has a column `b`, else a column. Catalog and database may stand before a table.
        """
        if self.outer is not None and not self.knows(parts) and self.outer.knows(parts):
            return self.outer.resolve_path(parts, locate)
        if skipped := self._before_table(parts):
            path = tuple(parts[:skipped])
            of_database = Scope(tuple(c for c in self.columns if c.path[-skipped:] == path))
            return of_database.resolve_path(parts[skipped:], lambda place: locate(place + skipped))
        if len(parts) > 1 and self.find(parts[1], parts[0]):
            return self.resolve(parts[1], parts[0], locate(0)), parts[2:]
        if len(parts) == 1 or self.find(parts[0]):
            return self.resolve(parts[0], None, locate(0)), parts[1:]
        # The table is right and the column is not: an error about the whole path would point at the wrong word.
        if any(c.qualifier == parts[0] for c in self.columns):
            raise self._unknown(parts[1], parts[0], locate(1))
        tables = list(dict.fromkeys(c.qualifier for c in self.columns if c.qualifier))
        names = [*tables, *(c.name for c in self.columns)]
        raise SqlError(
            f"'{parts[0]}' is neither a table in FROM nor a column",
            position=locate(0),
            detail=f"Tables here: {', '.join(tables)}." if tables else "",
            hint=_closest(parts[0], names),
        )

    def _before_table(self, parts: Sequence[str]) -> int:
        """How many of the parts are catalog and database of a table of FROM: `db.t.a`, `default_catalog.db.t.a`."""
        if len(parts) < 3 or self.find(parts[0]) or any(c.qualifier == parts[0] for c in self.columns):
            return 0
        paths = {(*c.path[start:], c.qualifier) for c in self.columns if c.path for start in range(len(c.path))}
        return next((len(path) - 1 for path in paths if tuple(parts[: len(path)]) == path), 0)

    def _unknown(self, name: str, qualifier: str | None, position: Position | None) -> SqlError:
        names = [c.name for c in self.columns if qualifier in (None, c.qualifier)]
        shown = ", ".join(dict.fromkeys(names[:_MOST_SHOWN])) + (", …" if len(names) > _MOST_SHOWN else "")
        where = f" in '{qualifier}'" if qualifier else ""
        detail = f"Columns{where or ' here'}: {shown}." if names else "There are no columns here."
        return SqlError(f"Unknown column '{name}'{where}", position=position, detail=detail, hint=_closest(name, names))


def _closest(name: str, names: Sequence[str]) -> str:
    folded = {candidate.lower(): candidate for candidate in names}
    close = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return f"Did you mean '{folded[close[0]]}'?" if close else ""
