"""A position in the tokens of one statement: what comes next, what must come next, and faults that say where.

All parts of the parser share one cursor. None of them forgives anything: a trailing comma, a missing THEN and an empty
list are faults.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Container, Sequence
from typing import NoReturn, TypeVar

from sqlglot import exp

from headwater.sql.script import SyntaxFault
from headwater.sql.tokens import Token, TokenKind

__all__ = ["RESERVED", "Cursor", "described", "identifier", "positioned"]

_T = TypeVar("_T")
_N = TypeVar("_N", bound=exp.Expr)

# Words that end or begin a clause: taking one as a name would hide a mistake in the clause. Flink reserves many more
# (VALUE, TIMESTAMP, …); where no clause can be meant, a script need not quote them here.
RESERVED = frozenset(
    {
        *("ALL", "AND", "ANY", "AS", "BETWEEN", "CASE", "CREATE", "CROSS", "DISTINCT", "DROP", "ELSE", "END", "EXCEPT"),
        *("EXISTS", "FALSE", "FETCH", "FOR", "FROM", "FULL", "GROUP BY", "GROUPING SETS", "HAVING", "IN", "INNER"),
        *("INSERT", "INTERSECT", "INTO", "IS", "JOIN", "LATERAL", "LEFT", "LIKE", "NATURAL", "NOT", "NULL", "ON", "OR"),
        *("ORDER BY", "OUTER", "OVER", "PARTITION BY", "RIGHT", "ROWS", "SELECT", "SIMILAR TO", "SOME", "TABLE"),
        *("THEN", "TRUE", "UNION", "UNKNOWN", "UNNEST", "USING", "VALUES", "WHEN", "WHERE", "WITH"),
    }
)
# Names that may begin a clause where an alias could stand: `FROM t LIMIT 1` has no table alias.
_NEVER_ALIASES = frozenset({"LIMIT", "OFFSET", "WINDOW"})
# The first words of clauses, and how to name them.
_CLAUSES = {
    **{word: word for word in ("FROM", "WHERE", "HAVING", "UNION", "JOIN", "LIMIT", "WINDOW")},
    **{word: f"{word} BY" for word in ("GROUP", "ORDER")},
}
_STATEMENT_STARTS = frozenset({"CREATE", "DROP", "INSERT", "EXECUTE", "EXPLAIN", "DESCRIBE"})
_STRINGS = (TokenKind.STRING, TokenKind.UNICODE_STRING)


def positioned(node: _N, token: Token) -> _N:
    """Give a node that has no position yet the position of the token it began with."""
    # A rule further in has made the node, and knows better where it begins.
    if "start" not in node.meta:
        node.meta["start"] = token.start
        node.meta["end"] = token.end - 1  # inclusive, as in sqlglot's own nodes
    return node


def described(token: Token) -> str:
    """A token as a person would name it."""
    if token.kind is TokenKind.END:
        return "the end of the statement"
    if token.kind in _STRINGS:
        return f"the string '{token.text}'"
    if token.kind is TokenKind.DOUBLE_QUOTED:
        return f'"{token.text}"'
    return "the hint" if token.kind is TokenKind.HINT_START else f"'{token.text}'"


class Cursor:
    """The words given to these methods are key words and symbols in upper case; they never match anything quoted."""

    def __init__(self, tokens: Sequence[Token], sql: str) -> None:
        self.sql = sql
        self._tokens = tokens
        self._index = 0
        # What is missing is shown one character behind the last token, not behind the comments that may follow it.
        behind = tokens[-1].end if tokens else len(sql)
        self._end = Token(TokenKind.END, "", behind, behind + 1)

    @property
    def here(self) -> Token:
        """The next token; one of kind END behind the last."""
        return self.peek(0)

    @property
    def previous(self) -> Token:
        """The token just read."""
        return self.peek(-1)

    @property
    def at_end(self) -> bool:
        return self._index >= len(self._tokens)

    def peek(self, distance: int = 1) -> Token:
        index = self._index + distance
        return self._tokens[index] if 0 <= index < len(self._tokens) else self._end

    def advance(self) -> Token:
        """Read the next token, whatever it is."""
        token = self.here
        self._index += 1
        return token

    def at(self, *words: str) -> bool:
        """Whether these words come next, one after the other."""
        return all(self.peek(distance).word == word for distance, word in enumerate(words))

    def at_any(self, words: Container[str]) -> bool:
        """Whether one of these words comes next."""
        return self.here.word in words

    def at_string(self) -> bool:
        """Whether a string in either kind of quotes comes next, as options take it."""
        return self.here.kind in (TokenKind.STRING, TokenKind.DOUBLE_QUOTED)

    def accept(self, *words: str) -> bool:
        """Read these words if all of them come next."""
        found = self.at(*words)
        if found:
            self._index += len(words)
        return found

    def accept_any(self, words: Container[str]) -> str:
        """Read the one of these words that comes next; empty if none does."""
        return self.advance().word if self.at_any(words) else ""

    def expect(self, *words: str, hint: str = "") -> Token:
        """Read these words or fail; returns the last one."""
        for word in words:
            if not self.accept(word):
                self.fail_expected(f"'{word}'", hint=hint)
        return self.previous

    def expect_any(self, words: Sequence[str], what: str) -> str:
        """Read one of these words, or fail with `what` was expected."""
        return self.accept_any(words) or self.fail_expected(what)

    def expect_end(self) -> None:
        if not self.at_end:
            self._fail_misspelled()
            self.fail(f"Unexpected {described(self.here).removeprefix('the ')}", hint=_hint_for(self.here))

    def _fail_misspelled(self) -> None:
        """A key word with a typo is read as an alias, and what follows it is not expected: `SELECT a FORM t`."""
        word = self.previous
        if word.kind is not TokenKind.WORD or word.word in RESERVED:
            return
        # Only key words that begin a clause: any other word may well be a name that was meant.
        close = difflib.get_close_matches(word.word, _CLAUSES, n=1, cutoff=0.7)
        if close and self._may_follow(_CLAUSES[close[0]]):
            self.fail(f"Unexpected '{word.text}'", at=word, hint=f"Did you mean {_CLAUSES[close[0]]}?")

    def _may_follow(self, clause: str) -> bool:
        """Whether what comes next can be the rest of this clause: a table `orders` is no misspelled ORDER BY."""
        if clause.endswith(" BY"):
            return self.at("BY")
        return self.here.word == "(" or self.here.kind in (TokenKind.WORD, TokenKind.NAME, TokenKind.NUMBER, *_STRINGS)

    def comma_separated(self, item: Callable[[], _T]) -> list[_T]:
        """`item, item, …`: at least one, and none left out."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return items

    def parenthesized(self, item: Callable[[], _T]) -> list[_T]:
        """`( item, item, … )`."""
        self.expect("(")
        items = self.comma_separated(item)
        self.expect(")")
        return items

    def name(self, what: str = "a name") -> exp.Identifier:
        """A name, in backquotes or not. Key words that are not reserved may be names."""
        token = self.here
        if token.kind not in (TokenKind.NAME, TokenKind.WORD):
            self.fail_expected(what)
        if token.word in RESERVED:
            hint = f"Write `{token.text}` to use it as a name."
            self.fail(f"Expected {what}, found the key word '{token.text}'", hint=hint)
        if not token.text:
            self.fail("A name cannot be empty")
        # A word is any run of letters, digits and other signs; Flink allows $ in names: its own are EXPR$0, EXPR$1, …
        if token.word and not token.text.replace("$", "_").isidentifier():
            self.fail(f"'{token.text}' is not a name", hint="A name with other characters is written in backquotes.")
        return identifier(self.advance())

    def at_alias(self) -> bool:
        """Whether an alias without AS comes next."""
        token = self.here
        return token.kind is TokenKind.NAME or (
            token.kind is TokenKind.WORD and token.word not in RESERVED and token.word not in _NEVER_ALIASES
        )

    def whole_number(self) -> tuple[int, Token]:
        token = self.here
        if token.kind is not TokenKind.NUMBER or not token.text.isdigit():
            self.fail_expected("a whole number")
        return int(self.advance().text), token

    def fail(self, fact: str, *, at: Token | None = None, detail: str = "", hint: str = "") -> NoReturn:
        """Fail at a token, else at the next one."""
        token = at or self.here
        raise SyntaxFault(fact, token.start, token.end, detail=detail, hint=hint)

    def fail_expected(self, what: str, *, hint: str = "") -> NoReturn:
        self.fail(f"Expected {what}, found {described(self.here)}", hint=hint or self._hint_here())

    def _hint_here(self) -> str:
        """For what is often written before a token that is not expected."""
        if self.here.text == "=" == self.previous.text:
            return "Equality is written with one '='."
        if self.previous.text == "," and self.here.kind is not TokenKind.DOUBLE_QUOTED:
            return "Remove the ',' before it, or write what is missing behind the ','."
        return _hint_for(self.here)


def identifier(token: Token) -> exp.Identifier:
    return positioned(exp.Identifier(this=token.text, quoted=token.kind is TokenKind.NAME), token)


def _hint_for(token: Token) -> str:
    if token.word in _STATEMENT_STARTS:
        return "Is a ';' missing before it?"
    if token.kind is TokenKind.DOUBLE_QUOTED:
        return f"Write `{token.text}` for a name or '{token.text}' for a string; double quotes are for options only."
    return ""
