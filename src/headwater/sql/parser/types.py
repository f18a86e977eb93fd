"""Flink's type grammar: `DECIMAL(10, 2) NOT NULL`, `ROW<a INT, b ARRAY<STRING>>`, `INT ARRAY`, …"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NoReturn

from sqlglot import exp

from headwater.sql import types
from headwater.sql.intervals import DAY_UNITS, UNITS, YEAR_UNITS
from headwater.sql.parser.cursor import Cursor, positioned
from headwater.sql.parser.names import check_column_name
from headwater.sql.tokens import Token, TokenKind
from headwater.sql.trees import data_type_node
from headwater.sql.types import Field, SqlType

__all__ = ["TypeParser"]

_MAX_LENGTH = 2147483647

_PLAIN = {
    "BOOLEAN": types.BOOLEAN,
    "TINYINT": types.TINYINT,
    "SMALLINT": types.SMALLINT,
    "INT": types.INT,
    "INTEGER": types.INT,
    "BIGINT": types.BIGINT,
    "FLOAT": types.FLOAT,
    "STRING": types.STRING,
    "BYTES": types.BYTES,
    "DATE": types.DATE,
}
_SIZED = {"CHAR": "CHAR", "CHARACTER": "CHAR", "VARCHAR": "VARCHAR", "BINARY": "BINARY", "VARBINARY": "VARBINARY"}
# Of the greatest length there is, which Flink prints under the shorter name.
_UNBOUNDED = {"VARCHAR": types.STRING, "VARBINARY": types.BYTES}
_DECIMALS = frozenset({"DECIMAL", "DEC", "NUMERIC"})
_TIMES = frozenset({"TIME", "TIMESTAMP", "TIMESTAMP_LTZ"})

# What people bring from other databases, and what it is called here.
_ELSEWHERE = {
    **dict.fromkeys(("TEXT", "STR", "CLOB", "NVARCHAR", "VARCHAR2", "LONGTEXT"), "STRING"),
    **dict.fromkeys(("BOOL",), "BOOLEAN"),
    **dict.fromkeys(("LONG", "INT64", "INT8"), "BIGINT"),
    **dict.fromkeys(("INT32", "INT4", "MEDIUMINT"), "INT"),
    **dict.fromkeys(("SHORT", "INT2", "INT16"), "SMALLINT"),
    **dict.fromkeys(("BYTE", "INT1"), "TINYINT"),
    **dict.fromkeys(("REAL", "FLOAT4"), "FLOAT"),
    **dict.fromkeys(("FLOAT8",), "DOUBLE"),
    **dict.fromkeys(("NUMBER",), "DECIMAL(p, s)"),
    **dict.fromkeys(("BLOB", "BYTEA"), "BYTES"),
    **dict.fromkeys(("DATETIME", "TIMESTAMP_NTZ"), "TIMESTAMP(p)"),
    **dict.fromkeys(("TIMESTAMPTZ",), "TIMESTAMP_LTZ(p)"),
    **dict.fromkeys(("STRUCT",), "ROW<name type, …>"),
    **dict.fromkeys(("UUID", "JSON", "JSONB", "ENUM"), "STRING"),
}
_UNSUPPORTED = frozenset({"RAW", "VARIANT", "BITMAP", "NULL"})
_ALL = (
    "CHAR, VARCHAR, STRING, BOOLEAN, BINARY, VARBINARY, BYTES, DECIMAL, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, "
    "DATE, TIME, TIMESTAMP, TIMESTAMP_LTZ, ARRAY, MAP, MULTISET, ROW"
)


class TypeParser:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    def data_type(self) -> SqlType:
        """A whole type: with `NOT NULL`, and with ARRAY or MULTISET behind it."""
        result = self._nullability(self._bare_type())
        # Each ARRAY behind the type has a nullability of its own: INT NOT NULL ARRAY is nullable, its elements are not.
        while collection := self.cursor.accept_any(("ARRAY", "MULTISET")):
            result = self._nullability(SqlType(collection, element=result))
        return result

    def node(self) -> exp.DataType:
        """The type of a CAST."""
        token = self.cursor.here
        return positioned(data_type_node(self.data_type()), token)

    def interval_unit(self, allowed: Sequence[str]) -> str:
        """One of these units, with its precision, which says nothing about the value."""
        unit = self.cursor.expect_any(allowed, " or ".join(allowed) or "the end of the interval")
        for number in self._numbers(2):
            self._in_range("The precision of an interval", number, 0, 10)
        return unit

    def _nullability(self, sql_type: SqlType) -> SqlType:
        if self.cursor.accept("NOT", "NULL"):
            return sql_type.not_null()
        # JSON_VALUE(… RETURNING INT NULL ON EMPTY): this NULL belongs to the function.
        if not self.cursor.at("NULL", "ON"):
            self.cursor.accept("NULL")
        return sql_type

    def _bare_type(self) -> SqlType:
        token = self.cursor.here
        word = token.word
        if token.kind is not TokenKind.WORD or not (word[0].isalpha() or word[0] == "_"):
            self.cursor.fail_expected("a type")
        self.cursor.advance()
        if word in _PLAIN:
            return self._without_length(token, _PLAIN[word])
        if word == "DOUBLE":
            self.cursor.accept("PRECISION")
            return self._without_length(token, types.DOUBLE)
        if word in _SIZED:
            return self._sized(_SIZED[word])
        if word in _DECIMALS:
            return self._decimal()
        if word in _TIMES:
            return self._temporal(token)
        return self._constructed(token)

    def _constructed(self, token: Token) -> SqlType:
        match token.word:
            case "ARRAY" | "MULTISET":
                self.cursor.expect("<")
                return self._closed(SqlType(token.word, element=self.data_type()))
            case "MAP":
                self.cursor.expect("<")
                key = self.data_type()
                self.cursor.expect(",")
                return self._closed(SqlType("MAP", key=key, element=self.data_type()))
            case "ROW":
                return self._row()
            case "INTERVAL":
                return self._interval()
        return self._unknown(token)

    def _closed(self, sql_type: SqlType) -> SqlType:
        self.cursor.expect(">")
        return sql_type

    def _unknown(self, token: Token) -> NoReturn:
        fact, hint = f"Unknown type '{token.text}'", f"Supported types: {_ALL}."
        if token.word in _ELSEWHERE:
            hint = f"In Flink SQL write {_ELSEWHERE[token.word]}."
        elif token.word in _UNSUPPORTED:
            fact = f"The type {token.word} is not supported"
        elif close := difflib.get_close_matches(token.word, _ALL.split(", "), n=1):
            hint = f"Did you mean {close[0]}? {hint}"
        self.cursor.fail(fact, at=token, hint=hint)

    def _without_length(self, token: Token, sql_type: SqlType) -> SqlType:
        if self.cursor.at("("):
            self.cursor.fail(f"{token.word} takes no length", hint=f"Write {token.word} alone.")
        return sql_type

    def _numbers(self, most: int) -> list[tuple[int, Token]]:
        """`(n)` or `(n, m)`, if any."""
        if not self.cursor.at("("):
            return []
        numbers = self.cursor.parenthesized(self.cursor.whole_number)
        if len(numbers) > most:
            self.cursor.fail("Too many numbers in the type", at=numbers[most][1])
        return numbers

    def _in_range(self, what: str, number: tuple[int, Token], low: int, high: int) -> int:
        value, token = number
        if not low <= value <= high:
            self.cursor.fail(f"{what} must be between {low} and {high}, not {value}", at=token)
        return value

    def _sized(self, name: str) -> SqlType:
        if name == "CHAR" and self.cursor.accept("VARYING"):
            name = "VARCHAR"
        numbers = self._numbers(1)
        # CHAR and VARCHAR alone are of length 1, as the standard has it; a string of any length is STRING.
        length = self._in_range(f"The length of {name}", numbers[0], 1, _MAX_LENGTH) if numbers else 1
        if length == _MAX_LENGTH and name in _UNBOUNDED:
            return _UNBOUNDED[name]
        return SqlType(name, length=length)

    def _decimal(self) -> SqlType:
        numbers = self._numbers(2)
        precision = self._in_range("The precision of DECIMAL", numbers[0], 1, 38) if numbers else 10
        scale = self._in_range("The scale of DECIMAL", numbers[1], 0, precision) if len(numbers) > 1 else 0
        return types.decimal(precision, scale)

    def _temporal(self, token: Token) -> SqlType:
        name = token.word
        numbers = self._numbers(1)
        # Flink's defaults: seconds for TIME, microseconds for timestamps.
        default = 0 if name == "TIME" else 6
        precision = self._in_range(f"The precision of {name}", numbers[0], 0, 9) if numbers else default
        if name != "TIMESTAMP_LTZ" and self.cursor.accept("WITHOUT"):
            self.cursor.expect("TIME", "ZONE")
        elif name != "TIMESTAMP_LTZ":
            name = self._with_zone(token)
        return SqlType(name, precision=precision)

    def _with_zone(self, token: Token) -> str:
        """WITH may also begin what follows the type, so nothing is read unless a time zone is meant."""
        if token.word == "TIMESTAMP" and self.cursor.accept("WITH", "LOCAL", "TIME", "ZONE"):
            return "TIMESTAMP_LTZ"
        for zone in ("WITH TIME ZONE", "WITH LOCAL TIME ZONE"):
            if self.cursor.at(*zone.split()):
                hint = "An instant is TIMESTAMP_LTZ(p), also written TIMESTAMP(p) WITH LOCAL TIME ZONE."
                self.cursor.fail(f"{token.word} {zone} is not supported", at=token, hint=hint)
        return token.word

    def _row(self) -> SqlType:
        """`ROW<a INT, b STRING 'comment'>` or `ROW(a INT)`."""
        # `ROW<>` is one token, an operator everywhere else. `>>` never is one: ROW<a ARRAY<INT>> needs no space.
        if self.cursor.at("<>"):
            self.cursor.fail("A ROW needs at least one field")
        angle = self.cursor.accept("<")
        if not angle:
            self.cursor.expect("(")
        fields: list[Field] = []
        self.cursor.comma_separated(lambda: fields.append(self._field(fields)))
        self.cursor.expect(">" if angle else ")")
        return SqlType("ROW", fields=tuple(fields))

    def _field(self, before: Sequence[Field]) -> Field:
        token = self.cursor.here
        name = self.cursor.name("a field's name").name
        check_column_name(self.cursor, name, token)  # `SELECT r.name` is a column of that name
        if any(field.name == name for field in before):
            self.cursor.fail(f"The field '{name}' appears twice in a ROW", at=token)
        sql_type = self.data_type()
        comment = self.cursor.advance().text if self.cursor.here.kind is TokenKind.STRING else ""
        return Field(name, sql_type, comment)

    def _interval(self) -> SqlType:
        first = self.interval_unit(UNITS)
        family = YEAR_UNITS if first in YEAR_UNITS else DAY_UNITS
        if self.cursor.accept("TO"):
            self.interval_unit(family[family.index(first) + 1 :])
        return SqlType("INTERVAL YEAR" if family is YEAR_UNITS else "INTERVAL DAY")
