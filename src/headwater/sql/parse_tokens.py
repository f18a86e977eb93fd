"""Flink's lexical rules as a sqlglot tokenizer, and the problem that every parsing step raises.

What a plain sqlglot tokenizer would do and this one does not: treat a backslash as an escape, drop a hint or a Jinja
comment, read the rest of an EXPLAIN or SHOW as one string, and turn the key words of other databases into syntax.
A word that is not in `_WORDS` is an ordinary name.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, Tokenizer, TokenType

__all__ = ["DOUBLE_QUOTED", "HINT_END", "HINT_START", "FlinkTokenizer", "SyntaxProblem"]

DOUBLE_QUOTED = TokenType.RAW_STRING
HINT_START = TokenType.HINT
HINT_END = TokenType.BLOCK_END
_HINT_BODY = TokenType.NATIONAL_RAW_STRING

_WORDS = (
    *("||", ">=", "<=", "<>", "!=", "=>"),
    *("ALL", "AND", "ANY", "AS", "ASC", "BETWEEN", "CASE", "CREATE", "CROSS", "CUBE", "DESC", "DISTINCT", "DROP"),
    *("ELSE", "END", "ESCAPE", "EXCEPT", "EXISTS", "FALSE", "FETCH", "FILTER", "FIRST", "FOR", "FROM", "FULL"),
    *("GROUP BY", "GROUPING SETS", "HAVING", "IN", "INNER", "INSERT", "INTERSECT", "INTO", "IS", "JOIN"),
    *("LATERAL", "LEFT", "LIKE", "LIMIT", "NATURAL", "NEXT", "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER BY"),
    *("ORDINALITY", "OUTER", "OVER", "PARTITION BY", "RANGE", "RIGHT", "ROLLUP", "ROW", "ROWS", "SELECT"),
    *("SIMILAR TO", "SOME", "TABLE", "THEN", "TRUE", "UNION", "UNKNOWN", "UNNEST", "USING", "VALUES", "WHEN"),
    *("WHERE", "WINDOW", "WITH"),
)


class SyntaxProblem(ParseError):
    """What is wrong at `start`..`end` (offsets into the text, `end` exclusive). `Script.error` makes a SqlError."""

    def __init__(self, fact: str, start: int, end: int, *, detail: str = "", hint: str = "") -> None:
        super().__init__(fact)
        self.fact = fact
        self.start = start
        self.end = end
        self.detail = detail
        self.hint = hint


class FlinkTokenizer(Tokenizer):
    """Double-quoted text becomes DOUBLE_QUOTED, which only options and SET accept; a hint becomes HINT_START, the
    tokens inside it, HINT_END. Comments are gone from the tokens."""

    IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`"]
    QUOTES: ClassVar[list[tuple[str, str] | str]] = ["'"]
    STRING_ESCAPES: ClassVar[list[str]] = ["'"]
    UNICODE_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("u&'", "'"), ("U&'", "'")]
    RAW_STRINGS: ClassVar[list[str | tuple[str, str]]] = ['"']
    NATIONAL_RAW_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("/*+", "*/")]
    NESTED_COMMENTS = False
    KEYWORDS: ClassVar[dict[str, TokenType]] = {word: Tokenizer.KEYWORDS[word] for word in _WORDS}
    COMMANDS: ClassVar[set[TokenType]] = set()

    def tokenize(self, sql: str) -> list[Token]:
        tokens: list[Token] = []
        for token in super().tokenize(sql):
            token.comments = []
            if token.token_type == _HINT_BODY:
                tokens.extend(self._hint(token))
            else:
                tokens.append(token)
        return tokens

    def _hint(self, token: Token) -> list[Token]:
        """The hint as tokens of its own, with offsets into the whole text."""
        first = token.start + len("/*+")
        try:
            inner = type(self)(self.dialect).tokenize(token.text)
        except TokenError:
            raise SyntaxProblem("A text inside the hint is not closed", token.start, token.end + 1) from None
        for t in inner:
            t.start += first
            t.end += first
        opening = Token(HINT_START, "/*+", start=token.start, end=first - 1)
        closing = Token(HINT_END, "*/", start=token.end - 1, end=token.end)
        return [opening, *inner, closing]


# sqlglot adds Jinja comments to every tokenizer; Flink has none, and a dropped one would be a silent loss.
FlinkTokenizer._COMMENTS.pop("{#", None)
