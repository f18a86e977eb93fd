"""Names of tables and columns."""

from __future__ import annotations

from sqlglot import exp

from headwater.sql.parser.cursor import Cursor, positioned
from headwater.sql.parser.hints import HintParser
from headwater.sql.paths import DEFAULT_CATALOG, joined
from headwater.sql.reserved_columns import is_reserved
from headwater.sql.tokens import Token

__all__ = ["NameParser", "check_column_name"]


def check_column_name(cursor: Cursor, name: str, token: Token) -> None:
    if is_reserved(name):
        cursor.fail(f"Headwater has a column '{name}' itself", at=token, hint="Give the column another name.")


class NameParser:
    def __init__(self, cursor: Cursor, hints: HintParser) -> None:
        self.cursor = cursor
        self.hints = hints

    def column(self, what: str = "the name of a column") -> exp.Identifier:
        token = self.cursor.here
        name = self.cursor.name(what)
        check_column_name(self.cursor, name.name, token)
        return name

    def columns(self, where: str = "") -> list[Token]:
        """`(a, b, …)`, each name once; `where` ends the sentence that says so."""
        tokens: list[Token] = []

        def one() -> None:
            token = self.cursor.here
            name = self.column().name
            if any(name == earlier.text for earlier in tokens):
                self.cursor.fail(f"The column '{name}' appears twice{where}", at=token)
            tokens.append(token)

        self.cursor.parenthesized(one)
        return tokens

    def table_name(self, what: str = "the name of a table") -> str:
        """`t`, `database.t` or `default_catalog.database.t`, as `sql.paths` writes it."""
        return joined([name.name for name in self._path(what, 2)])

    def database(self) -> str:
        return self._path("the name of a database", 1)[0].name

    def table(self) -> exp.Table:
        """A table's name with its hints."""
        token = self.cursor.here
        *database, name = self._path("the name of a table", 2)
        table = positioned(exp.Table(this=name, db=database[0] if database else None), token)
        if hints := self.hints.of_table():
            table.set("hints", hints)
        return table

    def _path(self, what: str, longest: int) -> list[exp.Identifier]:
        """Names with dots between them, at most so many and the catalog in front, which is left out."""
        first = self.cursor.here
        names = [self.cursor.name(what)]
        while self.cursor.accept("."):
            names.append(self.cursor.name(what))
        if len(names) <= longest:
            return names
        # The catalog is dropped here, so that one table has one name everywhere else.
        if len(names) > longest + 1 or names[0].name != DEFAULT_CATALOG:
            path = ".".join(name.name for name in names[:-longest])
            hint = f"There is one catalog, {DEFAULT_CATALOG}: write {joined([n.name for n in names[-longest:]])}."
            self.cursor.fail(f"Unknown catalog '{path}'", at=first, hint=hint)
        return names[1:]
