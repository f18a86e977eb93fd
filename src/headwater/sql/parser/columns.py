"""The part of CREATE TABLE between the parentheses: columns, the primary key, the watermark."""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.errors import Position
from headwater.sql.parser.parser import Parser
from headwater.sql.script import Script
from headwater.sql.statements import Column, ComputedColumn, MetadataColumn, PhysicalColumn, WatermarkDeclaration
from headwater.sql.tokens import Token, TokenKind
from headwater.sql.types import SqlType

__all__ = ["AlteredColumnParser", "ColumnParser", "TableElements"]

_NOT_ENFORCED = (
    "Headwater does not own the data, so it cannot check a key. Write PRIMARY KEY (…) NOT ENFORCED "
    "to declare a key that the data is known to have."
)
_UNIQUE = "Declare the key of a table with PRIMARY KEY (…) NOT ENFORCED."


@dataclass
class TableElements:
    """What has been read so far. `key` and `watermark_column` are where those names are mentioned."""

    columns: list[Column] = field(default_factory=list)
    positions: dict[str, Position] = field(default_factory=dict)
    key: list[Token] | None = None
    watermark: WatermarkDeclaration | None = None
    watermark_column: Token | None = None
    places: dict[str, str | None] = field(default_factory=dict)

    @property
    def primary_key(self) -> tuple[str, ...] | None:
        return None if self.key is None else tuple(token.text for token in self.key)

    def kind_of(self, name: str) -> type[Column] | None:
        return next((type(column) for column in self.columns if column.name == name), None)


class ColumnParser:
    """Whether the names mentioned in keys and watermarks exist is checked later: LIKE may bring more columns."""

    def __init__(self, parser: Parser, script: Script) -> None:
        self.parser = parser
        self.cursor = parser.cursor
        self.script = script
        self.elements = TableElements()

    def parse(self) -> TableElements:
        """`( element, … )`."""
        self.cursor.expect("(")
        self.cursor.comma_separated(self._element)
        self.cursor.expect(")", hint=self._missing_comma())
        return self.elements

    def _missing_comma(self) -> str:
        """What comes next could be the name of a column, or the beginning of a constraint."""
        here = self.cursor.here
        return "Is a ',' missing before it?" if here.kind in (TokenKind.WORD, TokenKind.NAME) else ""

    def _element(self) -> None:
        # PRIMARY, WATERMARK and UNIQUE alone may be names of columns; the word behind them decides.
        if self.cursor.at("PRIMARY", "KEY") or self.cursor.at("CONSTRAINT"):
            self._constraint()
        elif self.cursor.at("UNIQUE", "("):
            self.cursor.fail("UNIQUE is not supported", hint=_UNIQUE)
        elif self.cursor.at("WATERMARK", "FOR"):
            self._watermark()
        else:
            self._column()

    def _constraint(self) -> None:
        """`[CONSTRAINT name] PRIMARY KEY (a, b) NOT ENFORCED`."""
        if self.cursor.accept("CONSTRAINT"):
            self.cursor.name("the name of the constraint")
        if self.cursor.at("UNIQUE"):
            self.cursor.fail("UNIQUE is not supported", hint=_UNIQUE)
        start = self.cursor.here
        self.cursor.expect("PRIMARY", "KEY")
        key = self.parser.names.columns(" in the primary key")
        self._not_enforced()
        self._set_key(start, key)

    def _set_key(self, start: Token, key: list[Token]) -> None:
        if self.elements.key is not None:
            self.cursor.fail("A table has one primary key", at=start)
        self.elements.key = key

    def _not_enforced(self) -> None:
        if self.cursor.accept("NOT", "ENFORCED"):
            return
        if self.cursor.at("ENFORCED"):
            self.cursor.fail("A primary key cannot be ENFORCED", hint=_NOT_ENFORCED)
        self.cursor.fail_expected("NOT ENFORCED", hint=_NOT_ENFORCED)

    def _watermark(self) -> None:
        """`WATERMARK FOR column AS expression`."""
        start = self.cursor.here
        self.cursor.expect("WATERMARK", "FOR")
        token = self.cursor.here
        name = self.parser.names.column().name
        if self.cursor.at("."):
            hint = "Declare a computed column for the nested field."
            self.cursor.fail("The time of a watermark must be a column", hint=hint)
        self.cursor.expect("AS")
        expression = self.parser.expression()
        # Reported at the second one, once it is known to be a whole watermark and not a column of that name.
        if self.elements.watermark is not None:
            self.cursor.fail("A table has one watermark", at=start)
        self.elements.watermark = WatermarkDeclaration(name, expression)
        self.elements.watermark_column = token

    def _column(self) -> None:
        token = self.cursor.here
        name = self.parser.names.column("a column, PRIMARY KEY or WATERMARK").name
        # Names are compared with their case, as in Flink: `ID` and `id` are two columns.
        if self.elements.kind_of(name) is not None:
            self.cursor.fail(f"The column '{name}' appears twice", at=token)
        if self.cursor.accept("AS"):
            expression = self.parser.expression()
            column: Column = ComputedColumn(name, expression, self.parser.comment())
        else:
            column = self._typed_column(token, name)
        self.elements.columns.append(column)
        self.elements.positions[name] = self.script.position(token)
        self.place(name)

    def place(self, name: str) -> None:
        """What may say where the column goes: nothing in CREATE TABLE, whose columns are in order."""

    def _typed_column(self, token: Token, name: str) -> Column:
        sql_type = self.parser.data_type()
        if self.cursor.accept("METADATA"):
            return self._metadata_column(name, sql_type)
        if self.cursor.at_any(("DEFAULT", "GENERATED")):
            hint = "A computed column is written: name AS expression."
            self.cursor.fail(f"{self.cursor.here.word} is not Flink SQL", hint=hint)
        start = self.cursor.here
        named = self.cursor.accept("CONSTRAINT")
        if named:
            self.cursor.name("the name of the constraint")
        if self.cursor.accept("PRIMARY"):
            self.cursor.expect("KEY")
            self._not_enforced()
            self._set_key(start, [token])
        elif named:
            self.cursor.fail_expected("PRIMARY KEY NOT ENFORCED")
        return PhysicalColumn(name, sql_type, self.parser.comment())

    def _metadata_column(self, name: str, sql_type: SqlType) -> MetadataColumn:
        """`METADATA [FROM 'key'] [VIRTUAL]`."""
        key = self.parser.literals.string().name if self.cursor.accept("FROM") else name
        virtual = self.cursor.accept("VIRTUAL")
        return MetadataColumn(name, sql_type, key, virtual, self.parser.comment())


class AlteredColumnParser(ColumnParser):
    """What ALTER TABLE … ADD and MODIFY take: one element, or several in parentheses. A column says where it goes."""

    def parse(self) -> TableElements:
        if self.cursor.at("("):
            return super().parse()
        self._element()
        return self.elements

    def place(self, name: str) -> None:
        """`FIRST` or `AFTER other` behind a column."""
        if self.cursor.accept("FIRST"):
            self.elements.places[name] = None
        elif self.cursor.accept("AFTER"):
            self.elements.places[name] = self.parser.names.column().name
