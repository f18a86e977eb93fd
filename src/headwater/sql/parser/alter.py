"""ALTER TABLE and VIEW, databases and USE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headwater.sql.parser.columns import AlteredColumnParser
from headwater.sql.parser.origin import StatementText
from headwater.sql.parser.parser import Parser
from headwater.sql.parser.unsupported import refuse
from headwater.sql.paths import DEFAULT_CATALOG
from headwater.sql.statements import (
    AlterSchema,
    AlterTable,
    AlterView,
    CreateDatabase,
    DropDatabase,
    DropFromSchema,
    RenameColumn,
    SchemaChange,
    Statement,
    Use,
)
from headwater.sql.tokens import Token

__all__ = ["AlterationParser"]

_BY_TOPIC = "The topic decides how its rows are spread over partitions."
_PARTS = {
    ("PARTITION", "("): "PARTITION",
    ("IF", "NOT", "EXISTS", "PARTITION"): "PARTITION",
    ("IF", "EXISTS", "PARTITION"): "PARTITION",
    ("DISTRIBUTION", "BY"): "DISTRIBUTION",
    ("DISTRIBUTION", "INTO"): "DISTRIBUTION",
}
"""What tables have in other systems, and topics have not."""


@dataclass(frozen=True)
class _Start:
    """ALTER TABLE [IF EXISTS] name."""

    first: Token
    subject: Token
    name: str
    if_exists: bool


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
        hint = "Supported: ALTER TABLE … ADD, MODIFY, DROP, RENAME, SET, RESET; ALTER VIEW … AS, RENAME TO."
        return self.cursor.fail(what, hint=hint)

    def _alter_table(self, first: Token) -> AlterTable | SchemaChange:
        if_exists = self._if("EXISTS")
        name = self.parser.names.table_name()
        subject = self.cursor.previous
        start = _Start(first, subject, name, if_exists)
        if self.cursor.accept("RENAME"):
            if not self.cursor.at("TO"):
                return self._rename_column(start)
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
        if action := self.cursor.accept_any(("ADD", "MODIFY")):
            return self._alter_schema(start, "ADD" if action == "ADD" else "MODIFY")
        if self.cursor.accept("DROP"):
            return self._drop(start)
        return self.cursor.fail_expected("SET, RESET, RENAME, ADD, MODIFY or DROP")

    def _alter_schema(self, start: _Start, action: Literal["ADD", "MODIFY"]) -> AlterSchema:
        self._refuse_parts(action)
        elements = AlteredColumnParser(self.parser, self.text.script).parse()
        return AlterSchema(
            name=start.name,
            action=action,
            columns=tuple(elements.columns),
            places=elements.places,
            column_positions=elements.positions,
            primary_key=elements.primary_key,
            watermark=elements.watermark,
            if_exists=start.if_exists,
            **self.text.since(start.first, start.subject),
        )

    def _drop(self, start: _Start) -> DropFromSchema:
        """`DROP column`, `DROP (a, b)`, `DROP PRIMARY KEY`, `DROP WATERMARK`."""
        self._refuse_parts("DROP")
        if self.cursor.at("CONSTRAINT") and self.cursor.peek().word != "":
            hint = "The primary key is the only constraint: write DROP PRIMARY KEY."
            self.cursor.fail("ALTER TABLE … DROP CONSTRAINT is not supported", hint=hint)
        what: Literal["COLUMNS", "PRIMARY KEY", "WATERMARK"] = "COLUMNS"
        columns: list[Token] = []
        if self.cursor.accept("PRIMARY", "KEY"):
            what = "PRIMARY KEY"
        elif self.cursor.accept("WATERMARK"):
            what = "WATERMARK"
        elif self.cursor.at("("):
            columns = self.parser.names.columns()
        else:
            columns = [self.cursor.here]
            self.parser.names.column()
        return DropFromSchema(
            name=start.name,
            columns=tuple(token.text for token in columns),
            column_positions={token.text: self.text.script.position(token) for token in columns},
            what=what,
            if_exists=start.if_exists,
            **self.text.since(start.first, start.subject),
        )

    def _rename_column(self, start: _Start) -> RenameColumn:
        token = self.cursor.here
        old = self.parser.names.column().name
        self.cursor.expect("TO")
        new_token = self.cursor.here
        new = self.parser.names.column().name
        positions = {old: self.text.script.position(token), new: self.text.script.position(new_token)}
        origin = self.text.since(start.first, start.subject)
        return RenameColumn(
            name=start.name, old=old, new=new, column_positions=positions, if_exists=start.if_exists, **origin
        )

    def _refuse_parts(self, action: str) -> None:
        for words, part in _PARTS.items():
            if self.cursor.at(*words):
                self.cursor.fail(f"ALTER TABLE … {action} {part} is not supported", hint=_BY_TOPIC)

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
