"""Options and hints: WITH ('key' = 'value'); `/*+ OPTIONS(…) */` behind a table; `/*+ STATE_TTL(…) */` in SELECT."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp

from headwater.sql.parser.cursor import Cursor, positioned
from headwater.sql.parser.unicode_strings import unicode_string
from headwater.sql.tokens import Token, TokenKind

__all__ = ["HintParser"]

_T = TypeVar("_T")


class HintParser:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    def options(self) -> list[tuple[Token, Token]]:
        """`('key' = 'value', …)`, each key once; both kinds of quotes are strings here."""
        pairs = self.cursor.parenthesized(self._pair)
        seen: set[str] = set()
        for key, _ in pairs:
            # A dictionary would keep the last one without a word.
            if key.text in seen:
                self.cursor.fail(f"The option '{key.text}' appears twice", at=key)
            seen.add(key.text)
        return pairs

    def of_table(self) -> list[exp.WithTableHint]:
        """The hints behind a table's name, all of which are OPTIONS."""
        hints: list[exp.WithTableHint] = []
        while self.cursor.here.kind is TokenKind.HINT_START:
            hints += self._hint(self._table_options)
        return hints

    def of_query(self) -> exp.Hint | None:
        """The hint behind SELECT: `/*+ NAME(argument, …), NAME(…) */`."""
        token = self.cursor.here
        if token.kind is not TokenKind.HINT_START:
            return None
        return positioned(exp.Hint(expressions=self._hint(self._query_hint)), token)

    def refuse_late(self) -> None:
        """Behind an alias a hint would look as if it belonged to nothing."""
        if self.cursor.here.kind is TokenKind.HINT_START:
            hint = "Write t /*+ OPTIONS(…) */ AS alias."
            self.cursor.fail("A hint stands right behind the name of its table", hint=hint)

    def _hint(self, item: Callable[[], _T]) -> list[_T]:
        """`/*+ item, item … */`."""
        self.cursor.advance()
        items = self.cursor.comma_separated(item)
        if self.cursor.here.kind is not TokenKind.HINT_END:
            self.cursor.fail_expected("'*/'")
        self.cursor.advance()
        return items

    def _table_options(self) -> exp.WithTableHint:
        token = self.cursor.here
        if not self.cursor.accept("OPTIONS"):
            fact = "An empty hint" if token.kind is TokenKind.HINT_END else f"Unknown hint '{token.text}'"
            self.cursor.fail(fact, hint="The hint of a table is /*+ OPTIONS('key' = 'value') */.")
        properties = [_property(key, value) for key, value in self.options()]
        return positioned(exp.WithTableHint(expressions=properties), token)

    def _query_hint(self) -> exp.Anonymous:
        token = self.cursor.here
        if token.kind is TokenKind.HINT_END:
            self.cursor.fail("An empty hint")
        # Any name will do: which hints exist, and on which tables, is for the planner to say.
        name = self.cursor.name("the name of a hint").name
        arguments = self.cursor.parenthesized(self._query_hint_argument) if self.cursor.at("(") else []
        return positioned(exp.Anonymous(this=name, expressions=arguments), token)

    def _query_hint_argument(self) -> exp.Expr:
        """`'key' = 'value'`, a string, or the name of a table."""
        if not self.cursor.at_string():
            return self.cursor.name("the name of a table")
        if self.cursor.peek().word == "=":
            return _property(*self._pair())
        return _string(self.cursor.advance())

    def _pair(self) -> tuple[Token, Token]:
        word = self.cursor.here
        if word.kind is TokenKind.WORD and word.text[:1].isalpha():
            self.cursor.fail_expected("an option's key in quotes", hint="Write WITH ('key' = 'value', …).")
        key = self.string("an option's key in quotes")
        self.cursor.expect("=")
        value = self.string("an option's value in quotes")
        if self.cursor.at_string():
            self.cursor.fail_expected("',' or ')'", hint="Is a ',' missing before it?")
        return key, value

    def string(self, what: str) -> Token:
        """A string in either kind of quotes, or one with Unicode escapes: `'csv.field-delimiter' = U&'\\0001'`."""
        if self.cursor.here.kind is TokenKind.UNICODE_STRING:
            return unicode_string(self.cursor)
        if not self.cursor.at_string():
            self.cursor.fail_expected(what)
        return self.cursor.advance()

    def keys(self) -> list[str]:
        """`('key', …)`."""
        return [token.text for token in self.cursor.parenthesized(lambda: self.string("an option's key in quotes"))]


def _property(key: Token, value: Token) -> exp.Property:
    return exp.Property(this=_string(key), value=_string(value))


def _string(token: Token) -> exp.Literal:
    return positioned(exp.Literal.string(token.text), token)
