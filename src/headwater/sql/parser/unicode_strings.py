"""`U&'\\0001' [UESCAPE 'c']`: a string with escapes for characters that are hard to write."""

from __future__ import annotations

import re
from dataclasses import replace

from headwater.sql.parser.cursor import Cursor
from headwater.sql.tokens import Token, TokenKind

__all__ = ["unicode_string"]

_ESCAPE = r"([0-9a-fA-F]{4}|\+[0-9a-fA-F]{6})"


def unicode_string(cursor: Cursor) -> Token:
    """The string that comes next, decoded, as if it had been written without escapes."""
    token = cursor.advance()
    escape = _escape_character(cursor) if cursor.accept("UESCAPE") else "\\"
    # Doubled, the character stands for itself. If one is left when all escapes are removed, it begins a wrong one.
    mark = re.escape(escape)
    escapes = re.compile(f"{mark}{mark}|{mark}{_ESCAPE}")
    if escape in escapes.sub("", token.text):
        fact = f"Wrong Unicode escape: expected {escape}XXXX or {escape}+XXXXXX (hexadecimal)"
        cursor.fail(fact, at=token)
    try:
        text = escapes.sub(lambda m: chr(int(m[1].lstrip("+"), 16)) if m[1] else escape, token.text)
    except ValueError:
        cursor.fail("A Unicode escape is beyond the last code point, 10FFFF", at=token)
    return replace(token, kind=TokenKind.STRING, text=text)


def _escape_character(cursor: Cursor) -> str:
    token = cursor.here
    if token.kind is not TokenKind.STRING:
        cursor.fail_expected("a string in single quotes")
    cursor.advance()
    if len(token.text) != 1 or token.text.isalnum() or token.text in "+'\" ":
        cursor.fail("UESCAPE takes one character that is not a letter, digit, quote or '+'", at=token)
    return token.text
