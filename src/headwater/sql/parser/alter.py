"""ALTER TABLE and VIEW, databases and USE."""

from __future__ import annotations

from typing import NoReturn

from headwater.sql.parser.origin import StatementText
from headwater.sql.parser.parser import Parser
from headwater.sql.parser.unsupported import refuse
from headwater.sql.paths import DEFAULT_CATALOG
from headwater.sql.statements import AlterTable, AlterView, CreateDatabase, DropDatabase, Statement, Use
from headwater.sql.tokens import Token

__all__ = ["AlterationParser"]


class AlterationParser:
    def __init__(self, parser: Parser, text: StatementText) -> None:
        self.parser = parser
        self.cursor = parser.cursor
        self.text = text

    def alter(self) -> Statement:
        first = self.cursor.expect("ALTER")
        if self.cursor.accept("TABLE"):
            return self._alter_table(first)
        if self.cursor.accept("VIEW"):
            return self._alter_view(first)
        what = "ALTER what?" if self.cursor.at_end else f"ALTER {self.cursor.here.text.upper()} is not supported"
        return self.cursor.fail(what, hint="Supported: ALTER TABLE … SET, RESET, RENAME TO; ALTER VIEW.")

    def _alter_table(self, first: Token) -> AlterTable:
        if_exists = self._if("EXISTS")
        name = self.parser.names.table_name()
        subject = self.cursor.previous
        if self.cursor.accept("RENAME"):
            self._refuse_column()
            rename = self._renamed()
            return AlterTable(name=name, rename=rename, if_exists=if_exists, **self.text.since(first, subject))
        if self.cursor.accept("SET"):
            pairs = self.parser.hints.options()
            options = {key.text: value.text for key, value in pairs}
            # Kept per option: an error about a value points to it, and not to the statement.
            positions = {key.text: self.text.script.span(key.start, value.end) for key, value in pairs}
            origin = self.text.since(first, subject)
            return AlterTable(name=name, options=options, option_positions=positions, if_exists=if_exists, **origin)
        if self.cursor.accept("RESET"):
            keys = tuple(self.parser.hints.keys())
            return AlterTable(name=name, reset=keys, if_exists=if_exists, **self.text.since(first, subject))
        return self._unsupported(name)

    def _unsupported(self, name: str) -> NoReturn:
        word = self.cursor.here.text.upper()
        if word not in ("ADD", "MODIFY", "DROP"):
            self.cursor.fail_expected("SET, RESET or RENAME TO")
        hint = f"Change the columns in CREATE TABLE, or write CREATE OR REPLACE TABLE {name}."
        self.cursor.fail(f"ALTER TABLE … {word} is not supported", hint=hint)

    def _refuse_column(self) -> None:
        """`RENAME a TO b` is about a column, `RENAME TO b` about the table."""
        if not self.cursor.at("TO"):
            hint = "Change the columns in CREATE TABLE, or write CREATE OR REPLACE TABLE."
            self.cursor.fail("ALTER TABLE … RENAME of a column is not supported", hint=hint)

    def _alter_view(self, first: Token) -> AlterView:
        name = self.parser.names.table_name("the name of the view")
        subject = self.cursor.previous
        if self.cursor.accept("RENAME"):
            rename = self._renamed()
            return AlterView(name=name, rename=rename, **self.text.since(first, subject))
        if not self.cursor.accept("AS"):
            self.cursor.fail_expected("AS or RENAME TO")
        query = self.parser.query()
        return AlterView(name=name, query=query, **self.text.since(first, subject))

    def _renamed(self) -> str:
        self.cursor.expect("TO")
        return self.parser.names.table_name("the new name")

    def create_database(self, first: Token) -> CreateDatabase:
        """`CREATE DATABASE [IF NOT EXISTS] name [COMMENT '…'] [WITH (…)]`, from its name on."""
        if_not_exists = self._if("NOT", "EXISTS")
        name = self.parser.names.database()
        comment = self.parser.comment()
        pairs = self.parser.hints.options() if self.cursor.accept("WITH") else []
        return CreateDatabase(
            name=name,
            comment=comment,
            if_not_exists=if_not_exists,
            options=tuple(key.text for key, _ in pairs),
            **self.text.since(first),
        )

    def drop_database(self, first: Token) -> DropDatabase:
        if_exists = self._if("EXISTS")
        name = self.parser.names.database()
        subject = self.cursor.previous
        cascade = self.cursor.accept_any(("RESTRICT", "CASCADE")) == "CASCADE"
        return DropDatabase(name=name, if_exists=if_exists, cascade=cascade, **self.text.since(first, subject))

    def use(self) -> Use:
        """`USE database`, `USE default_catalog.database`, `USE CATALOG default_catalog`."""
        if self.cursor.at("USE", "MODULES"):
            refuse(self.cursor)
        first = self.cursor.expect("USE")
        if not self.cursor.accept("CATALOG"):
            database = self.parser.names.database()
            return Use(database=database, **self.text.since(first, self.cursor.previous))
        token = self.cursor.here
        if self.cursor.name("the name of a catalog").name != DEFAULT_CATALOG:
            hint = f"There is one catalog, {DEFAULT_CATALOG}, which is in use from the start."
            self.cursor.fail(f"There is no catalog '{token.text}'", at=token, hint=hint)
        return Use(**self.text.since(first))

    def _if(self, *words: str) -> bool:
        found = self.cursor.accept("IF")
        if found:
            self.cursor.expect(*words)
        return found
