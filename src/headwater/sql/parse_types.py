"""Flink's type grammar: `DECIMAL(10, 2) NOT NULL`, `ROW<a INT, b ARRAY<STRING>>`, `INT ARRAY`, …

A type inside an expression (CAST) is an `exp.DataType` whose tree is the Spark type that carries it, with the Flink
type beside it in `meta`; `to_type` reads it back.
"""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from headwater.sql import types
from headwater.sql.parse_cursor import Cursor, place
from headwater.sql.types import Field, SqlType

__all__ = ["MAX_LENGTH", "TypeParser", "data_type_node", "to_type"]

MAX_LENGTH = 2147483647
_META = "sql_type"

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
_UNBOUNDED = {"VARCHAR": types.STRING, "VARBINARY": types.BYTES}
_DECIMALS = frozenset({"DECIMAL", "DEC", "NUMERIC"})
_TIMES = frozenset({"TIME", "TIMESTAMP", "TIMESTAMP_LTZ"})
_CONSTRUCTED = frozenset({"ARRAY", "MULTISET", "MAP", "ROW"})
_YEAR_UNITS = ("YEAR", "MONTH")
_DAY_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")

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
_ALL = (
    "CHAR, VARCHAR, STRING, BOOLEAN, BINARY, VARBINARY, BYTES, DECIMAL, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, "
    "DATE, TIME, TIMESTAMP, TIMESTAMP_LTZ, ARRAY, MAP, MULTISET, ROW"
)


def data_type_node(sql_type: SqlType) -> exp.DataType:
    """The type as a node of an expression tree."""
    node = exp.DataType.build(sql_type.spark(), dialect="spark", kind=str(sql_type))
    node.meta[_META] = sql_type
    return node


def to_type(node: exp.Expr) -> SqlType:
    """The Flink type of an `exp.DataType` that came from a script (or `data_type_node`)."""
    sql_type = node.meta.get(_META)
    if not isinstance(sql_type, SqlType):
        raise TypeError(f"not a type from a Flink script: {node!r}")
    return sql_type


class TypeParser(Cursor):
    def data_type(self) -> SqlType:
        """A whole type: with `NOT NULL`, and with ARRAY or MULTISET behind it."""
        result = self._nullability(self._bare_type())
        while True:
            if self.accept("ARRAY"):
                result = self._nullability(SqlType("ARRAY", element=result))
            elif self.accept("MULTISET"):
                result = self._nullability(SqlType("MULTISET", element=result))
            else:
                return result

    def _parse_types(
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.Expr | None:
        token = self.here
        return place(data_type_node(self.data_type()), token)

    def _nullability(self, sql_type: SqlType) -> SqlType:
        if self.accept("NOT", "NULL"):
            return sql_type.as_nullable(False)
        if not self.ahead("NULL", "ON"):  # the NULL ON EMPTY of JSON_VALUE(… RETURNING INT NULL ON EMPTY)
            self.accept("NULL")
        return sql_type

    def _bare_type(self) -> SqlType:
        token = self.here
        word = token.text.upper() if token and token.token_type != TokenType.IDENTIFIER else ""
        if not word or not (word[0].isalpha() or word[0] == "_") or token.token_type == TokenType.STRING:
            self.fail_expected("a type")
        self.skip()
        if word in _PLAIN:
            return self._no_length(token, _PLAIN[word])
        if word == "DOUBLE":
            self.accept("PRECISION")
            return self._no_length(token, types.DOUBLE)
        if word in _SIZED:
            return self._sized(token, _SIZED[word])
        if word in _DECIMALS:
            return self._decimal()
        if word in _TIMES:
            return self._temporal(token, word)
        if word in _CONSTRUCTED:
            return self._constructed(word)
        if word == "INTERVAL":
            return self._interval_type()
        return self._unknown_type(token, word)

    def _unknown_type(self, token: Token, word: str) -> NoReturn:
        if word in _ELSEWHERE:
            self.fail(f"Unknown type '{token.text}'", at=token, hint=f"In Flink SQL write {_ELSEWHERE[word]}.")
        if word in {"RAW", "VARIANT", "BITMAP", "NULL"}:
            self.fail(f"The type {word} is not supported", at=token, hint=f"Supported types: {_ALL}.")
        self.fail(f"Unknown type '{token.text}'", at=token, hint=f"Supported types: {_ALL}.")

    def _no_length(self, token: Token, sql_type: SqlType) -> SqlType:
        if self.ahead("("):
            self.fail(f"{token.text.upper()} takes no length")
        return sql_type

    def _numbers(self, most: int) -> list[tuple[int, Token]]:
        """`(n)` or `(n, m)`, if any."""
        if not self.ahead("("):
            return []
        numbers = self.comma_separated(self._whole_number)
        if len(numbers) > most:
            self.fail("Too many numbers in the type", at=numbers[most][1])
        return numbers

    def _whole_number(self) -> tuple[int, Token]:
        token = self.here
        if token.token_type != TokenType.NUMBER or not token.text.isdigit():
            self.fail_expected("a whole number")
        self.skip()
        return int(token.text), token

    def _in_range(self, what: str, number: tuple[int, Token], low: int, high: int) -> int:
        value, token = number
        if not low <= value <= high:
            self.fail(f"{what} must be between {low} and {high}, not {value}", at=token)
        return value

    def _sized(self, token: Token, name: str) -> SqlType:
        if name in {"CHAR"} and self.accept("VARYING"):
            name = "VARCHAR"
        numbers = self._numbers(1)
        length = self._in_range(f"The length of {name}", numbers[0], 1, MAX_LENGTH) if numbers else 1
        if length == MAX_LENGTH and name in _UNBOUNDED:
            return _UNBOUNDED[name]
        return SqlType(name, length=length)

    def _decimal(self) -> SqlType:
        numbers = self._numbers(2)
        precision = self._in_range("The precision of DECIMAL", numbers[0], 1, 38) if numbers else 10
        scale = self._in_range("The scale of DECIMAL", numbers[1], 0, precision) if len(numbers) > 1 else 0
        return types.decimal(precision, scale)

    def _temporal(self, token: Token, word: str) -> SqlType:
        numbers = self._numbers(1)
        default = 0 if word == "TIME" else 6
        precision = self._in_range(f"The precision of {word}", numbers[0], 0, 9) if numbers else default
        if word != "TIMESTAMP_LTZ" and self.ahead("WITH"):
            word = self._with_zone(token, word)
        elif word != "TIMESTAMP_LTZ" and self.accept("WITHOUT"):
            self.expect("TIME", "ZONE")
        return SqlType(word, precision=precision)

    def _with_zone(self, token: Token, word: str) -> str:
        """WITH may also begin what follows the type, so nothing is read unless a time zone is meant."""
        if word == "TIMESTAMP" and self.accept("WITH", "LOCAL", "TIME", "ZONE"):
            return "TIMESTAMP_LTZ"
        if self.ahead("WITH", "TIME", "ZONE") or self.ahead("WITH", "LOCAL", "TIME"):
            self.fail(
                f"{word} WITH {'LOCAL ' if self.ahead('WITH', 'LOCAL') else ''}TIME ZONE is not supported",
                at=token,
                hint="An instant is TIMESTAMP_LTZ(p), also written TIMESTAMP(p) WITH LOCAL TIME ZONE.",
            )
        return word

    def _constructed(self, word: str) -> SqlType:
        if word == "ROW":
            return self._row()
        self.expect("<")
        key = None
        if word == "MAP":
            key = self.data_type()
            self.expect(",")
        element = self.data_type()
        self._closing_angle()
        return SqlType(word, key=key, element=element)

    def _row(self) -> SqlType:
        """`ROW<a INT, b STRING 'comment'>` or `ROW(a INT)`."""
        fields: list[Field] = []
        angle = self.accept("<")
        if not angle:
            if self.ahead("<>"):
                self.fail("A ROW needs at least one field")
            self.expect("(")
        while True:
            name_token = self.here
            name = self.name("a field's name").name
            if any(f.name == name for f in fields):
                self.fail(f"The field '{name}' appears twice in a ROW", at=name_token)
            sql_type = self.data_type()
            comment = self.skip().text if self.here.token_type == TokenType.STRING else ""
            fields.append(Field(name, sql_type, comment))
            if not self.accept(","):
                break
        if angle:
            self._closing_angle()
        else:
            self.expect(")")
        return SqlType("ROW", fields=tuple(fields))

    def _closing_angle(self) -> None:
        if not self._match(TokenType.GT):
            self.fail_expected("'>'")

    def _interval_type(self) -> SqlType:
        first = self._interval_unit((*_YEAR_UNITS, *_DAY_UNITS))
        family = _YEAR_UNITS if first in _YEAR_UNITS else _DAY_UNITS
        if self.accept("TO"):
            self._interval_unit(family[family.index(first) + 1 :])
        return SqlType("INTERVAL YEAR" if family is _YEAR_UNITS else "INTERVAL DAY")

    def _interval_unit(self, allowed: tuple[str, ...]) -> str:
        for unit in allowed:
            if self.accept(unit):
                for number in self._numbers(2):
                    self._in_range("The precision of an interval", number, 0, 10)
                return unit
        return self.fail_expected(" or ".join(allowed) if allowed else "the end of the interval")
