"""Literals: numbers, texts in all their spellings, binary, DATE/TIME/TIMESTAMP and INTERVAL, each checked when read."""

from __future__ import annotations

import datetime as dt
import re

from sqlglot import exp
from sqlglot.tokens import TokenType

from headwater.sql.parse_cursor import place
from headwater.sql.parse_types import TypeParser, data_type_node
from headwater.sql.types import DATE, SqlType

__all__ = ["INTERVAL_UNITS", "LiteralParser", "interval_amount"]

_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?")
_HEXADECIMAL = re.compile(r"([0-9a-fA-F]{2})*")
_TIME = re.compile(r"\d{1,2}:\d{1,2}:\d{1,2}(\.\d{1,9})?")
_TIMESTAMP = re.compile(r"(\d{4}-\d{1,2}-\d{1,2}) (\d{1,2}:\d{1,2}:\d{1,2})(?:\.(\d{1,9}))?")
_UNICODE_ESCAPE = r"([0-9a-fA-F]{4}|\+[0-9a-fA-F]{6})"

INTERVAL_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_MORE_UNITS = {"QUARTER": ("MONTH", 3), "WEEK": ("DAY", 7)}
_MICROS = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}
_MONTHS = {"YEAR": 12, "MONTH": 1}
# How the part for a unit is joined to the part before it: '1-2' YEAR TO MONTH, '1 10:20:30.5' DAY TO SECOND.
_SEPARATOR = {"MONTH": "-", "HOUR": " ", "MINUTE": ":", "SECOND": ":"}
_INTERVAL_FORM = "INTERVAL '1' DAY, INTERVAL '1:30' MINUTE TO SECOND, INTERVAL '1-2' YEAR TO MONTH"


def interval_amount(node: exp.Interval) -> tuple[str, int]:
    """What an INTERVAL literal is worth: ('months', n) or ('micros', n). The literal was checked when it was parsed."""
    units = _units_of(node)
    text = node.this.name.strip()
    sign = -1 if text.startswith("-") else 1
    parts = _parts(text.lstrip("+-").strip(), units) or []
    if units[0] in _MONTHS:
        return "months", sign * sum(int(p) * _MONTHS[u] for u, p in zip(units, parts, strict=True))
    return "micros", sign * sum(_micros(u, p) for u, p in zip(units, parts, strict=True))


def _micros(unit: str, text: str) -> int:
    whole, _, fraction = text.partition(".")
    return int(whole or 0) * _MICROS[unit] + int(fraction.ljust(6, "0")[:6] or 0)


def _units_of(node: exp.Interval) -> tuple[str, ...]:
    unit = node.args["unit"]
    if isinstance(unit, exp.IntervalSpan):
        first, last = INTERVAL_UNITS.index(unit.this.name), INTERVAL_UNITS.index(unit.expression.name)
        return INTERVAL_UNITS[first : last + 1]
    return (unit.name,)


def _parts(text: str, units: tuple[str, ...]) -> list[str] | None:
    """The text cut at its units, or None if it does not have that form."""
    pattern = "".join(
        (re.escape(_SEPARATOR[u]) if i else "") + (r"(\d+(?:\.\d{0,9})?)" if u == "SECOND" else r"(\d+)")
        for i, u in enumerate(units)
    )
    found = re.fullmatch(pattern, text)
    return list(found.groups()) if found else None


class LiteralParser(TypeParser):
    def _literal(self) -> exp.Expr | None:
        """The literal that begins here, or None."""
        token = self.here
        kind = token.token_type
        if kind == TokenType.NUMBER:
            return self._number()
        if kind in (TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.UNICODE_STRING):
            return self.text()
        if kind in (TokenType.TRUE, TokenType.FALSE):
            self.skip()
            return place(exp.Boolean(this=kind == TokenType.TRUE), token)
        if kind in (TokenType.NULL, TokenType.UNKNOWN):
            self.skip()
            return place(exp.Null(), token)
        if kind == TokenType.VAR and self._next.token_type == TokenType.STRING:
            return self._typed_literal()
        return self._interval() if self.ahead("INTERVAL") else None

    def _number(self) -> exp.Literal:
        token = self.skip()
        if not _NUMBER.fullmatch(token.text):
            self.fail(f"'{token.text}' is not a number", at=token)
        if self.here.token_type in (TokenType.VAR, TokenType.NUMBER) and self._is_connected():
            self.fail(f"'{token.text}{self.here.text}' is neither a number nor a name", at=token)
        return place(exp.Literal(this=token.text, is_string=False), token)

    def text(self) -> exp.Literal:
        """A text in single quotes, also N'…' and U&'…'."""
        token = self.here
        if token.token_type == TokenType.UNICODE_STRING:
            return self._unicode()
        if token.token_type not in (TokenType.STRING, TokenType.NATIONAL_STRING):
            self.fail_expected("a text in single quotes")
        self.skip()
        if self.here.token_type == TokenType.STRING:
            self.fail("Two texts side by side", hint="Join texts with ||, or double a quote inside a text: 'it''s'.")
        return place(exp.Literal.string(token.text), token)

    def _unicode(self) -> exp.Literal:
        token = self.skip()
        escape = self.text().name if self.accept("UESCAPE") else "\\"
        if len(escape) != 1 or escape.isalnum() or escape in "+'\" ":
            self.fail("UESCAPE takes one character that is no letter, digit, quote or '+'", at=self.before)
        mark = re.escape(escape)
        rest = re.sub(f"{mark}{mark}|{mark}{_UNICODE_ESCAPE}", "", token.text)
        if escape in rest:
            self.fail(f"Wrong Unicode escape: expected {escape}XXXX or {escape}+XXXXXX (hexadecimal)", at=token)

        def character(found: re.Match[str]) -> str:
            return chr(int(found[1].lstrip("+"), 16)) if found[1] else escape

        try:
            decoded = re.sub(f"{mark}{mark}|{mark}{_UNICODE_ESCAPE}", character, token.text)
        except ValueError:
            self.fail("A Unicode escape is beyond the last code point, 10FFFF", at=token)
        return place(exp.Literal.string(decoded), token)

    def _binary(self) -> exp.HexString:
        """X'0AFF', which the tokenizer reads as a word and a text without space between them."""
        token = self.skip()
        digits = self.here
        if not _HEXADECIMAL.fullmatch(digits.text):
            self.fail(
                "A binary literal consists of pairs of hexadecimal digits", at=digits, hint="For example X'0AFF'."
            )
        return place(exp.HexString(this=self.text().name.upper()), token)

    def _typed_literal(self) -> exp.Expr | None:
        """DATE '…', TIME '…' and TIMESTAMP '…' become a CAST to exactly the type the literal has."""
        word = self.here.text.upper()
        if word == "X" and self.here.end + 1 == self._next.start:
            return self._binary()
        if word == "INTERVAL":
            return self._interval()
        if word not in {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"}:
            return None
        token = self.skip()
        value = self.here
        literal = self.text()
        if word == "TIMESTAMP_LTZ":
            self.fail("There are no TIMESTAMP_LTZ literals", at=token, hint="Use TO_TIMESTAMP_LTZ or a CAST.")
        sql_type = _literal_type(word, literal.name)
        if sql_type is None:
            form = {"DATE": "2024-01-31", "TIME": "12:30:00", "TIMESTAMP": "2024-01-31 12:30:00"}[word]
            self.fail(f"'{literal.name}' is not a {word}", at=value, hint=f"Write {word} '{form}'.")
        return place(exp.Cast(this=literal, to=place(data_type_node(sql_type), token)), token)

    def _interval(self) -> exp.Interval | None:
        token = self.here
        if self._next.token_type == TokenType.NUMBER:
            self.fail("The value of an INTERVAL is a text", at=self._next, hint=f"For example {_INTERVAL_FORM}.")
        signed = self._next.token_type in (TokenType.DASH, TokenType.PLUS)
        after = self._tokens[self._index + 2] if signed and self._index + 2 < self._tokens_size else self._next
        if after.token_type != TokenType.STRING:
            return None
        self.skip()
        sign = self.skip().text if signed else ""
        value = self.here
        literal = place(exp.Literal.string(sign + self.text().name), value)
        unit, scale = self._interval_qualifier()
        if scale != 1:
            literal = place(exp.Literal.string(_scaled(literal.name, scale)), value)
        node = place(exp.Interval(this=literal, unit=unit), token)
        units = _units_of(node)
        if not _parts(literal.name.strip().lstrip("+-").strip(), units):
            form = " TO ".join(dict.fromkeys((units[0], units[-1])))
            self.fail(f"'{value.text}' is not an INTERVAL of {form}", at=value, hint=f"For example {_INTERVAL_FORM}.")
        return node

    def _interval_qualifier(self) -> tuple[exp.Expr, int]:
        token = self.here
        word = token.text.upper()
        singular = word[:-1] if word.endswith("S") else word
        if singular in _MORE_UNITS:
            self.skip()
            unit, scale = _MORE_UNITS[singular]
            return place(exp.Var(this=unit), token), scale
        if singular in INTERVAL_UNITS and singular != word:
            self.skip()
            return place(exp.Var(this=singular), token), 1
        first = place(exp.Var(this=self._interval_unit(INTERVAL_UNITS)), token)
        if not self.accept("TO"):
            return first, 1
        token = self.here
        family = INTERVAL_UNITS[:2] if first.name in INTERVAL_UNITS[:2] else INTERVAL_UNITS[2:]
        last = place(exp.Var(this=self._interval_unit(family[family.index(first.name) + 1 :])), token)
        return place(exp.IntervalSpan(this=first, expression=last), token), 1


def _scaled(text: str, scale: int) -> str:
    try:
        return str(int(text) * scale)
    except ValueError:
        return text


def _literal_type(word: str, text: str) -> SqlType | None:
    try:
        if word == "DATE":
            dt.datetime.strptime(text, "%Y-%m-%d")
            return DATE
        if word == "TIME":
            return _time_type(text)
        found = _TIMESTAMP.fullmatch(text)
        if not found:
            return None
        dt.datetime.strptime(f"{found[1]} {found[2]}", "%Y-%m-%d %H:%M:%S")
        return SqlType("TIMESTAMP", precision=len(found[3] or ""))
    except ValueError:
        return None


def _time_type(text: str) -> SqlType | None:
    if not _TIME.fullmatch(text):
        return None
    clock, _, fraction = text.partition(".")
    dt.datetime.strptime(clock, "%H:%M:%S")
    return SqlType("TIME", precision=len(fraction))
