"""Literals: numbers, strings in all their forms, binary, DATE/TIME/TIMESTAMP and INTERVAL, each checked when read."""

from __future__ import annotations

import datetime as dt
import re

from sqlglot import exp

from headwater.sql.intervals import DAY_UNITS, UNITS, YEAR_UNITS, interval_parts, units_of
from headwater.sql.parser.cursor import Cursor, positioned
from headwater.sql.parser.types import TypeParser
from headwater.sql.parser.unicode_strings import unicode_string
from headwater.sql.tokens import Token, TokenKind
from headwater.sql.trees import data_type_node
from headwater.sql.types import DATE, SqlType

__all__ = ["LiteralParser"]

_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?")
_HEXADECIMAL = re.compile(r"([0-9a-fA-F]{2})*")
_TIME = re.compile(r"\d{1,2}:\d{1,2}:\d{1,2}(\.\d{1,9})?")
_TIMESTAMP = re.compile(r"(\d{4}-\d{1,2}-\d{1,2}) (\d{1,2}:\d{1,2}:\d{1,2})(?:\.(\d{1,9}))?")
_EXAMPLES = {"DATE": "2024-01-31", "TIME": "12:30:00", "TIMESTAMP": "2024-01-31 12:30:00"}

# Units that are not units of a type: so many of another one.
_OTHER_UNITS = {"QUARTER": ("MONTH", 3), "WEEK": ("DAY", 7)}
_INTERVAL_EXAMPLES = "For example INTERVAL '1' DAY, INTERVAL '1:30' MINUTE TO SECOND, INTERVAL '1-2' YEAR TO MONTH."


class LiteralParser:
    def __init__(self, cursor: Cursor, types: TypeParser) -> None:
        self.cursor = cursor
        self.types = types

    def literal(self) -> exp.Expr | None:
        """The literal that comes next, or None."""
        token = self.cursor.here
        if token.kind is TokenKind.NUMBER:
            return self._number()
        if token.kind in (TokenKind.STRING, TokenKind.UNICODE_STRING):
            return self.string()
        if token.word in ("TRUE", "FALSE", "NULL", "UNKNOWN"):
            return self.truth_value()
        if token.word == "INTERVAL":
            return self._interval()
        if self.cursor.peek().kind is TokenKind.STRING:
            return self._binary() if token.word == "X" else self._time_literal()
        return None

    def truth_value(self) -> exp.Expr:
        """TRUE, FALSE, NULL or UNKNOWN, which is another word for NULL."""
        token = self.cursor.advance()
        if token.word in ("NULL", "UNKNOWN"):
            return positioned(exp.Null(), token)
        return positioned(exp.Boolean(this=token.word == "TRUE"), token)

    def string(self) -> exp.Literal:
        """A string in single quotes, also N'…' and U&'…'."""
        token = self.cursor.here
        if token.kind is TokenKind.UNICODE_STRING:
            return positioned(exp.Literal.string(unicode_string(self.cursor).text), token)
        if token.kind is not TokenKind.STRING:
            self.cursor.fail_expected("a string in single quotes")
        self.cursor.advance()
        if self.cursor.here.kind is TokenKind.STRING:
            # The standard joins them if a line break is between them; a forgotten comma or quote is far more likely.
            hint = "Join strings with ||, or double a quote inside a string: 'it''s'."
            self.cursor.fail("Two strings side by side", hint=hint)
        return positioned(exp.Literal.string(token.text), token)

    def _number(self) -> exp.Literal:
        token = self.cursor.advance()
        if not _NUMBER.fullmatch(token.text):
            self.cursor.fail(f"'{token.text}' is not a number", at=token)
        behind = self.cursor.here
        # `1abc` would be 1 under the alias abc, which nobody means. A key word may follow at once: `SELECT 1FROM t`.
        named = self.cursor.at_alias() and behind.kind is TokenKind.WORD
        if behind.start == token.end and (named or behind.kind is TokenKind.NUMBER):
            self.cursor.fail(f"'{token.text}{behind.text}' is neither a number nor a name", at=token)
        return positioned(exp.Literal(this=token.text, is_string=False), token)

    def _binary(self) -> exp.HexString | None:
        """X'0AFF': a word and a string without space between them."""
        token, digits = self.cursor.here, self.cursor.peek()
        if token.end != digits.start:
            return None
        self.cursor.advance()
        if not _HEXADECIMAL.fullmatch(digits.text):
            fact = "A binary literal consists of pairs of hexadecimal digits"
            self.cursor.fail(fact, at=digits, hint="For example X'0AFF'.")
        return positioned(exp.HexString(this=self.string().name.upper()), token)

    def _time_literal(self) -> exp.Cast | None:
        """DATE '…', TIME '…' and TIMESTAMP '…' become a CAST to exactly the type that the literal has."""
        token, value = self.cursor.here, self.cursor.peek()
        if token.word == "TIMESTAMP_LTZ":
            self.cursor.fail("There are no TIMESTAMP_LTZ literals", hint="Use TO_TIMESTAMP_LTZ or a CAST.")
        if token.word not in _EXAMPLES:
            return None
        self.cursor.advance()
        literal = self.string()
        # The digits of the fraction are the precision of the type, so it cannot be left to a later cast.
        sql_type = _literal_type(token.word, literal.name)
        if sql_type is None:
            hint = f"Write {token.word} '{_EXAMPLES[token.word]}'."
            self.cursor.fail(f"'{literal.name}' is not a {token.word}", at=value, hint=hint)
        return positioned(exp.Cast(this=literal, to=positioned(data_type_node(sql_type), token)), token)

    def at_unit(self, distance: int) -> bool:
        """Whether the token at this distance is a unit of an INTERVAL."""
        return self.cursor.peek(distance).word.removesuffix("S") in (*UNITS, *_OTHER_UNITS)

    def unit_interval(self, token: Token) -> exp.Interval:
        """The unit that comes next, as an INTERVAL of one of it: `INTERVAL quantity DAY` is so many of them."""
        unit, scale = self._qualifier()
        return positioned(exp.Interval(this=exp.Literal.string(str(scale)), unit=unit), token)

    def _interval(self) -> exp.Interval | None:
        """`INTERVAL [+|-] 'value' unit [TO unit]`, or a whole number; the word alone may be the name of a column."""
        token = self.cursor.here
        signed = self.cursor.peek().word in ("-", "+")
        first = self.cursor.peek(2 if signed else 1)
        # `interval + 1` is about a column of that name.
        number = first.kind is TokenKind.NUMBER and (not signed or self.at_unit(3))
        if first.kind is not TokenKind.STRING and not number:
            return None
        self.cursor.advance()
        sign = self.cursor.advance().text if signed else ""
        value = self.cursor.here
        text = sign + (self._whole_number() if number else self.string()).name
        unit, scale = self._qualifier()
        literal = positioned(exp.Literal.string(_multiplied(text, scale)), value)
        node = positioned(exp.Interval(this=literal, unit=unit), token)
        self._check_interval(node, value)
        return node

    def _whole_number(self) -> exp.Literal:
        if not self.cursor.here.text.isdigit():
            self.cursor.fail("The value of an INTERVAL is a string or a whole number", hint=_INTERVAL_EXAMPLES)
        return self._number()

    def _check_interval(self, node: exp.Interval, value: Token) -> None:
        units = units_of(node)
        if interval_parts(node.this.name, units) is None:
            form = " TO ".join(dict.fromkeys((units[0], units[-1])))
            self.cursor.fail(f"'{value.text}' is not an INTERVAL of {form}", at=value, hint=_INTERVAL_EXAMPLES)

    def _qualifier(self) -> tuple[exp.Expr, int]:
        """The unit or units behind the value, and what the value is to be multiplied by. Units may be in the plural."""
        token = self.cursor.here
        # Each form that is no standard is brought to the standard one, so that nothing behind the parser knows of it.
        singular = token.word.removesuffix("S")
        if singular in _OTHER_UNITS:
            self.cursor.advance()
            unit, scale = _OTHER_UNITS[singular]
            return positioned(exp.Var(this=unit), token), scale
        if singular in UNITS and singular != token.word:
            self.cursor.advance()
            return positioned(exp.Var(this=singular), token), 1
        first = positioned(exp.Var(this=self.types.interval_unit(UNITS)), token)
        if not self.cursor.accept("TO"):
            return first, 1
        family = YEAR_UNITS if first.name in YEAR_UNITS else DAY_UNITS
        token = self.cursor.here
        last = positioned(exp.Var(this=self.types.interval_unit(family[family.index(first.name) + 1 :])), token)
        return positioned(exp.IntervalSpan(this=first, expression=last), token), 1


def _multiplied(text: str, scale: int) -> str:
    try:
        return str(int(text) * scale) if scale != 1 else text
    except ValueError:
        return text


def _literal_type(word: str, text: str) -> SqlType | None:
    try:
        if word == "DATE":
            dt.datetime.strptime(text, "%Y-%m-%d")
            return DATE
        return _time_type(text) if word == "TIME" else _timestamp_type(text)
    except ValueError:
        return None


def _time_type(text: str) -> SqlType | None:
    if not _TIME.fullmatch(text):
        return None
    clock, _, fraction = text.partition(".")
    dt.datetime.strptime(clock, "%H:%M:%S")
    return SqlType("TIME", precision=len(fraction))


def _timestamp_type(text: str) -> SqlType | None:
    found = _TIMESTAMP.fullmatch(text)
    if not found:
        return None
    dt.datetime.strptime(f"{found[1]} {found[2]}", "%Y-%m-%d %H:%M:%S")
    return SqlType("TIMESTAMP", precision=len(found[3] or ""))
