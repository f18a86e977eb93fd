"""CREATE and DROP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from headwater.errors import Position
from headwater.sql.parser.alter import AlterationParser
from headwater.sql.parser.columns import ColumnParser, TableElements
from headwater.sql.parser.origin import StatementText
from headwater.sql.parser.parser import Parser
from headwater.sql.parser.user_functions import UserFunctionParser
from headwater.sql.statements import CreateTable, CreateView, Drop, LikeClause, PhysicalColumn, Statement
from headwater.sql.tokens import Token

__all__ = ["TableParser"]

_LIKE_FEATURES = ("ALL", "OPTIONS", "GENERATED", "METADATA", "CONSTRAINTS", "WATERMARKS", "PARTITIONS")
_LIKE_ACTIONS = ("INCLUDING", "EXCLUDING", "OVERWRITING")
_OVERWRITABLE = frozenset({"OPTIONS", "GENERATED", "METADATA", "WATERMARKS"})
_CLAUSES = "(columns), COMMENT, PARTITIONED BY, WITH, LIKE or AS"
_OTHER_KINDS = {
    "CATALOG": "There is one catalog, default_catalog. Tables are created by the script that uses them.",
    "MODEL": "Models are not supported; see 'headwater docs limits'.",
    "MATERIALIZED": "Write CREATE TABLE … WITH (…) AS SELECT …: its topic is kept up to date as long as the job runs.",
}


@dataclass(frozen=True)
class _Creation:
    """What stands in front of the word TABLE or VIEW."""

    first: Token
    temporary: bool
    or_replace: bool


class TableParser:
    def __init__(self, parser: Parser, text: StatementText) -> None:
        self.parser = parser
        self.cursor = parser.cursor
        self.text = text
        self.alterations = AlterationParser(parser, text)
        self.functions = UserFunctionParser(parser, text)

    def create(self) -> Statement:
        first = self.cursor.expect("CREATE")
        or_replace = self.cursor.accept("OR")
        if or_replace:
            self.cursor.expect("REPLACE")
        temporary = self.cursor.accept("TEMPORARY")
        if self.cursor.accept("TABLE"):
            return self._create_table(_Creation(first, temporary, or_replace))
        if self.cursor.accept("VIEW"):
            return self._create_view(_Creation(first, temporary, or_replace))
        if not temporary and not or_replace and self.cursor.accept("DATABASE"):
            return self.alterations.create_database(first)
        if not or_replace and self.functions.at_function():
            return self.functions.create(first, temporary=temporary)
        return self._unsupported("CREATE")

    def drop(self) -> Statement:
        first = self.cursor.expect("DROP")
        temporary = self.cursor.accept("TEMPORARY")
        if not temporary and self.cursor.accept("DATABASE"):
            return self.alterations.drop_database(first)
        if self.functions.at_function():
            return self.functions.drop(first, temporary=temporary)
        kind = self.cursor.accept_any(("TABLE", "VIEW")) or self._unsupported("DROP")
        if_exists = self.cursor.accept("IF")
        if if_exists:
            self.cursor.expect("EXISTS")
        name = self.parser.names.table_name(f"the name of the {kind.lower()}")
        origin = self.text.since(first, self.cursor.previous)
        return Drop(kind=kind, name=name, if_exists=if_exists, temporary=temporary, **origin)

    def _unsupported(self, verb: str) -> NoReturn:
        if self.cursor.at_end:
            self.cursor.fail(f"{verb} what?", hint=f"Supported: {verb} TABLE, VIEW, DATABASE, FUNCTION.")
        kind = self.cursor.here.text.upper()
        hint = _OTHER_KINDS.get(kind, f"Supported: {verb} TABLE, VIEW, DATABASE, FUNCTION.")
        self.cursor.fail(f"{verb} {kind} is not supported", hint=hint)

    def _if_not_exists(self) -> bool:
        found = self.cursor.accept("IF")
        if found:
            self.cursor.expect("NOT", "EXISTS")
        return found

    def _create_view(self, creation: _Creation) -> CreateView:
        if_not_exists = self._if_not_exists()
        name = self.parser.names.table_name("the name of the view")
        columns = self.parser.names.columns() if self.cursor.at("(") else []
        comment = self.parser.comment()
        self.cursor.expect("AS")
        return CreateView(
            name=name,
            query=self.parser.query(),
            columns=tuple(token.text for token in columns),
            comment=comment,
            temporary=creation.temporary,
            if_not_exists=if_not_exists,
            or_replace=creation.or_replace,
            **self.text.since(creation.first),
        )

    def _create_table(self, creation: _Creation) -> CreateTable:
        if_not_exists = self._if_not_exists()
        name = self.parser.names.table_name()
        order = self.parser.names.columns() if self._at_names() else []
        columns = ColumnParser(self.parser, self.text.script)
        elements = columns.parse() if self.cursor.at("(") and not order else TableElements()
        comment = self.parser.comment()
        partitions = self._partitioned_by()
        options, option_positions = self._with()
        like = self._like()
        query = self._query(order)
        self._end_of_table()
        # Either may bring the columns that a key or a watermark names, so they cannot be checked yet.
        if like is None and query is None:
            self._check_names(elements, partitions)
        return CreateTable(
            name=name,
            columns=tuple(elements.columns),
            options=options,
            option_positions=option_positions,
            column_positions=elements.positions,
            primary_key=elements.primary_key,
            watermark=elements.watermark,
            partitioned_by=tuple(token.text for token in partitions),
            like=like,
            comment=comment,
            temporary=creation.temporary,
            if_not_exists=if_not_exists,
            or_replace=creation.or_replace,
            query=query,
            query_columns=tuple(token.text for token in order),
            **self.text.since(creation.first),
        )

    def _at_names(self) -> bool:
        """Whether names without types come next: `(a, b)`, which puts the columns of a query behind AS in order."""
        return self.cursor.at("(") and self.cursor.peek(2).word in (",", ")")

    def _query(self, order: list[Token]) -> exp.Expr | None:
        """`AS query`."""
        if self.cursor.accept("AS"):
            return self.parser.query()
        if order:
            hint = "Only CREATE TABLE … AS SELECT takes its types from a query."
            self.cursor.fail(f"The column '{order[0].text}' needs a type", at=order[0], hint=hint)
        return None

    def _end_of_table(self) -> None:
        if not self.cursor.at_end:
            hint = f"The order is: CREATE TABLE name {_CLAUSES}. Is a ';' missing?"
            self.cursor.fail(f"Unexpected '{self.cursor.here.text}'", hint=hint)

    def _check_names(self, elements: TableElements, partitions: list[Token]) -> None:
        """Every name that the key, the watermark and the partitions mention is a column of this table."""
        key = elements.key or []
        watermark = [elements.watermark_column] if elements.watermark_column is not None else []
        for token in (*key, *partitions, *watermark):
            if elements.kind_of(token.text) is None:
                known = ", ".join(column.name for column in elements.columns)
                hint = f"The columns are: {known}." if known else ""
                self.cursor.fail(f"There is no column '{token.text}'", at=token, hint=hint)
        for token in key:
            if elements.kind_of(token.text) is not PhysicalColumn:
                detail = "A key consists of physical columns."
                self.cursor.fail(f"The primary key cannot contain '{token.text}'", at=token, detail=detail)

    def _partitioned_by(self) -> list[Token]:
        if self.cursor.at("DISTRIBUTED"):
            hint = "Leave it out: the topic decides how its rows are spread over partitions."
            self.cursor.fail("DISTRIBUTED BY is not supported", hint=hint)
        if not self.cursor.accept("PARTITIONED"):
            return []
        self.cursor.expect("BY")
        if self.cursor.at("(") and self.cursor.peek(2).word not in (",", ")"):
            hint = "They are columns of the table: declare them there, and name them here without their types."
            self.cursor.fail("PARTITIONED BY takes names of columns", at=self.cursor.peek(2), hint=hint)
        return self.parser.names.columns()

    def _with(self) -> tuple[dict[str, str], dict[str, Position]]:
        """`WITH ('key' = 'value', …)`: the options, and where each of them is."""
        pairs = self.parser.hints.options() if self.cursor.accept("WITH") else []
        # An error about an option underlines it from its key to its value.
        options = {key.text: value.text for key, value in pairs}
        return options, {key.text: self.text.script.span(key.start, value.end) for key, value in pairs}

    def _like(self) -> LikeClause | None:
        if not self.cursor.accept("LIKE"):
            return None
        table = self.parser.names.table_name("the name of the table to be like")
        rules: dict[str, str] = {}
        if self.cursor.accept("("):
            while not self.cursor.accept(")"):
                self._like_rule(rules)
                # Flink has no comma between the rules of LIKE; people write one.
                self.cursor.accept(",")
        return LikeClause(table, rules)

    def _like_rule(self, rules: dict[str, str]) -> None:
        """`INCLUDING ALL`, `OVERWRITING OPTIONS`, …"""
        action = self.cursor.expect_any(_LIKE_ACTIONS, "INCLUDING, EXCLUDING or OVERWRITING")
        token = self.cursor.here
        features = ", ".join(_LIKE_FEATURES[:-1]) + f" or {_LIKE_FEATURES[-1]}"
        feature = self.cursor.expect_any(_LIKE_FEATURES, features)
        if action == "OVERWRITING" and feature not in _OVERWRITABLE:
            hint = "Use INCLUDING or EXCLUDING."
            self.cursor.fail(f"OVERWRITING is not possible for {feature}", at=token, hint=hint)
        if feature in rules:
            self.cursor.fail(f"{feature} appears twice", at=token)
        rules[feature] = action
