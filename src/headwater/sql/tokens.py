"""Flink's lexical rules: SQL text as tokens.

A word is a key word or a name; which of the two, the parser decides by where it stands. Two words that mean something
only together (GROUP BY) are one token. Comments are not among the tokens; a hint is HINT_START, the tokens inside it,
HINT_END. Whether everything quoted is closed has been checked before, by `script.Script`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

__all__ = ["COMMENT", "DOUBLE_QUOTED", "NAME", "STRING", "Token", "TokenKind", "tokenize"]

# Patterns of what hides other text; `/*+` begins a hint, whose text is not hidden.
# `//` behind a colon is part of an address: `SET execution.checkpointing.dir = s3://bucket/path` needs no quotes.
COMMENT = r"--[^\n\r]*|(?<!:)//[^\n\r]*|/\*(?!\+).*?\*/"
STRING = r"'(?:[^']|'')*'"
DOUBLE_QUOTED = r'"[^"]*"'
NAME = r"`(?:[^`]|``)*`"


class TokenKind(Enum):
    WORD = "a key word or a name without quotes"
    NAME = "a name in backquotes"
    STRING = "'…' or N'…'"
    UNICODE_STRING = "U&'…', its escapes not yet decoded"
    DOUBLE_QUOTED = '"…", which only options and SET accept'
    NUMBER = "digits, perhaps with a fraction and an exponent"
    SYMBOL = "punctuation or an operator"
    HINT_START = "/*+"
    HINT_END = "*/"
    END = "behind the last token"


@dataclass(frozen=True)
class Token:
    """`text` is without quotes. `start` and `end` are offsets into the SQL text, `end` exclusive.

    `word` is the text in upper case if it can be a key word or a symbol, else empty: what is quoted never is one.
    """

    kind: TokenKind
    text: str
    start: int
    end: int
    word: str = ""


_TOKEN = re.compile(
    rf"""
    (?P<blank>          \s+ | {COMMENT} )
  | (?P<HINT_START>     /\*\+ )
  | (?P<HINT_END>       \*/ )
  | (?P<UNICODE_STRING> [uU]&{STRING} )
  | (?P<STRING>         [nN]?{STRING} )
  | (?P<NAME>           {NAME} )
  | (?P<DOUBLE_QUOTED>  {DOUBLE_QUOTED} )
  | (?P<NUMBER>         [0-9]+ (?:\.[0-9]*)? (?:[eE](?:[+-]?[0-9]+)?)? )
  | (?P<pair>           (?i: (?:GROUP|ORDER|PARTITION)\s+BY | GROUPING\s+SETS | SIMILAR\s+TO )
                        (?= [\s()\[\]{{}}&^:,.\-=><%!|+;/\\*~?@\#'`"] | \Z ) )
  | (?P<SYMBOL>         \|\| | >= | <= | <> | != | => | [()\[\]{{}}&^:,.\-=><%!|+;/\\*~?@\#'`"] )
  | (?P<WORD>           [^\s()\[\]{{}}&^:,.\-=><%!|+;/\\*~?@\#'`"]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTES = {TokenKind.NAME: "`", TokenKind.STRING: "'", TokenKind.UNICODE_STRING: "'", TokenKind.DOUBLE_QUOTED: '"'}


def tokenize(sql: str) -> list[Token]:
    """All tokens of the text. There is no text that has none: what is no token in Flink becomes a WORD or a SYMBOL."""
    tokens: list[Token] = []
    in_hint = False
    for found in _TOKEN.finditer(sql):
        group = found.lastgroup or ""
        if group == "blank":
            continue
        # Outside of a hint it is a product and a quotient without an operand between them.
        if group == "HINT_END" and not in_hint:
            tokens += [_token(TokenKind.SYMBOL, sign, found.start() + at) for at, sign in enumerate("*/")]
            continue
        if group == "pair":
            tokens.append(_pair(found))
            continue
        in_hint = group == "HINT_START" or (in_hint and group != "HINT_END")
        tokens.append(_token(TokenKind[group], found[0], found.start()))
    return tokens


def _token(kind: TokenKind, written: str, start: int) -> Token:
    quote = _QUOTES.get(kind)
    if quote is None:
        word = written.upper() if kind in (TokenKind.WORD, TokenKind.SYMBOL) else ""
        return Token(kind, written, start, start + len(written), word)
    text = written[written.index(quote) + 1 : -1].replace(quote * 2, quote)
    return Token(kind, text, start, start + len(written))


def _pair(found: re.Match[str]) -> Token:
    """Two key words as one, with one space between them whatever was written."""
    word = " ".join(found[0].upper().split())
    return Token(TokenKind.WORD, word, *found.span(), word)
