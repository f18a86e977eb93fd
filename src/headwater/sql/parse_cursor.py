"""The parser's ground floor: a place in the tokens, strict lists, and problems that say what was expected where.

sqlglot's parser forgives much (a trailing comma, a missing THEN, an empty list); each such place is closed here or in
the layers above: `parse_expressions`, `parse_tables`, then `dialect.FlinkParser`, which is what everyone uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from sqlglot import exp
from sqlglot.parser import SENTINEL_NONE, Parser
from sqlglot.tokens import Token, TokenType

from headwater.sql.parse_tokens import DOUBLE_QUOTED, HINT_START, SyntaxProblem

__all__ = ["Cursor", "described", "place"]

_T = TypeVar("_T")
_N = TypeVar("_N", bound="exp.Expr | None")

_TEXTS = frozenset({TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.UNICODE_STRING})
_QUOTED = _TEXTS | {TokenType.IDENTIFIER, TokenType.NUMBER, DOUBLE_QUOTED}
_STATEMENT_STARTS = frozenset({"CREATE", "DROP", "INSERT", "EXECUTE", "EXPLAIN", "DESCRIBE"})
_PUNCTUATION = frozenset("()[],.;=*+-/<>%|&^:{}?@#!~\\")


def place(node: _N, token: Token) -> _N:
    """Give a node that has no place yet the place of the token it began with."""
    if node is not None and "start" not in node.meta:
        node.update_positions(token)
    return node


def described(token: Token) -> str:
    """A token as a person would name it."""
    if not token:
        return "the end of the statement"
    if token.token_type in _TEXTS:
        return f"the text '{token.text}'"
    if token.token_type == DOUBLE_QUOTED:
        return f'"{token.text}"'
    if token.token_type == HINT_START:
        return "the hint"
    return f"'{token.text}'"


class Cursor(Parser):
    """Reads one list of tokens. The words given to these methods are upper-case key words, never quoted names."""

    def load(self, tokens: Sequence[Token], sql: str) -> None:
        self.reset()
        self.sql = sql
        self._tokens = list(tokens)
        self._tokens_size = len(self._tokens)
        self._advance(0)

    @property
    def here(self) -> Token:
        """The next token; falsy at the end."""
        return self._curr

    @property
    def before(self) -> Token:
        """The token just read."""
        return self._prev

    def skip(self) -> Token:
        self._advance()
        return self._prev

    def ahead(self, *words: str) -> bool:
        """Whether these words come next."""
        return bool(self._match_text_seq(*words, advance=False))

    def ahead_type(self, *types: TokenType) -> bool:
        """Whether tokens of these types come next."""
        window = self._tokens[self._index : self._index + len(types)]
        return tuple(t.token_type for t in window) == types

    def accept(self, *words: str) -> bool:
        return bool(self._match_text_seq(*words))

    def expect(self, *words: str, hint: str = "") -> Token:
        """Read these words, or say that they were expected; returns the last one."""
        for word in words:
            if not self._match_text_seq(word):
                self.fail_expected(f"'{word}'", hint=hint)
        return self._prev

    def expect_end(self) -> None:
        if self._curr:
            self.fail(f"Unexpected {described(self._curr).removeprefix('the ')}", hint=_hint_for(self._curr))

    def comma_separated(self, item: Callable[[], _T]) -> list[_T]:
        """`( item, item, … )` with at least one item."""
        self.expect("(")
        items = [item()]
        while self.accept(","):
            items.append(item())
        self.expect(")")
        return items

    def fail(self, fact: str, *, at: Token | None = None, detail: str = "", hint: str = "") -> NoReturn:
        token = at or self._curr
        if token:
            raise SyntaxProblem(fact, token.start, token.end + 1, detail=detail, hint=hint)
        end = self._tokens[-1].end + 1 if self._tokens else len(self.sql)
        raise SyntaxProblem(fact, end, end + 1, detail=detail, hint=hint)

    def fail_expected(self, what: str, *, hint: str = "") -> NoReturn:
        self.fail(f"Expected {what}, found {described(self._curr)}", hint=hint or _hint_for(self._curr))

    def raise_error(self, message: str, token: Token = SENTINEL_NONE) -> None:
        """sqlglot's own complaints, in our words."""
        if message.startswith("Required"):
            self.fail_expected("an expression")
        if message.startswith(("Expecting ", "Expected ")):
            self.fail_expected(message.split(" ", 1)[1])
        if message.startswith("Invalid expression"):
            self.expect_end()
        self.fail(message, at=token or None)

    def _parse_csv(self, parse_method: Callable[[], _T | None], sep: TokenType = TokenType.COMMA) -> list[_T]:
        """A list without holes: `a,, b` and `a, b,` are problems. Only a list that may be empty at all may be empty."""
        items: list[_T] = []
        item = parse_method()
        while item is not None:
            items.append(item)
            if not self._match(sep):
                return items
            item = parse_method()
        if items or self._match(sep, advance=False):
            self.fail_expected("an expression")
        return items

    def name(self, what: str = "a name") -> exp.Identifier:
        """A name, backquoted or not. Key words that are no syntax of their own may be names."""
        token = self._curr
        quoted = token.token_type == TokenType.IDENTIFIER
        if not token or (not quoted and (token.token_type in _QUOTED or token.text[:1] in _PUNCTUATION)):
            self.fail_expected(what, hint="")
        if not quoted and token.token_type in self.RESERVED_NAMES:
            self.fail(
                f"Expected {what}, found the key word '{token.text}'", hint=f"Write `{token.text}` to use it as a name."
            )
        if not token.text:
            self.fail("A name cannot be empty")
        if not quoted and not token.text.replace("$", "_").isidentifier():
            self.fail(f"'{token.text}' is not a name", hint="A name with other characters is written in backquotes.")
        self._advance()
        return self._identifier_expression(token, quoted=quoted)

    # Words that end or begin a clause: taking one as a name would hide a mistake in the clause.
    RESERVED_NAMES = frozenset(
        {
            *(TokenType.ALIAS, TokenType.AND, TokenType.BETWEEN, TokenType.CASE, TokenType.CREATE, TokenType.CROSS),
            *(TokenType.DISTINCT, TokenType.DROP, TokenType.ELSE, TokenType.EXCEPT, TokenType.EXISTS, TokenType.FETCH),
            *(TokenType.FOR, TokenType.FROM, TokenType.FULL, TokenType.GROUP_BY, TokenType.HAVING, TokenType.IN),
            *(TokenType.INNER, TokenType.INSERT, TokenType.INTERSECT, TokenType.INTO, TokenType.IS, TokenType.JOIN),
            *(TokenType.LATERAL, TokenType.LEFT, TokenType.LIKE, TokenType.NATURAL, TokenType.NOT, TokenType.NULL),
            *(TokenType.ON, TokenType.OR, TokenType.ORDER_BY, TokenType.OUTER, TokenType.OVER, TokenType.PARTITION_BY),
            *(TokenType.RIGHT, TokenType.SELECT, TokenType.TABLE, TokenType.THEN, TokenType.UNION, TokenType.UNNEST),
            *(TokenType.USING, TokenType.VALUES, TokenType.WHEN, TokenType.WHERE, TokenType.WITH, TokenType.TRUE),
            *(TokenType.FALSE, TokenType.GROUPING_SETS, TokenType.SIMILAR_TO, TokenType.HINT, TokenType.BLOCK_END),
            *(TokenType.END, TokenType.ROWS, TokenType.SOME, TokenType.ANY, TokenType.ALL, TokenType.UNKNOWN),
        }
    )


def _hint_for(token: Token) -> str:
    if token and token.text.upper() in _STATEMENT_STARTS:
        return "Is a ';' missing before it?"
    if token and token.token_type == DOUBLE_QUOTED:
        return f"Write `{token.text}` for a name or '{token.text}' for a text; double quotes are for options only."
    return ""
