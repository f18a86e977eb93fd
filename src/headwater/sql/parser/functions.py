"""Function calls: regular ones and those with a syntax of their own. What follows a call is read in `windows`.

A regular function is `exp.Anonymous(this=<name as written>, expressions=<arguments>)`, whatever sqlglot knows about
the name: its own nodes stand for what other databases mean. Only aggregates and ranks have classes of their own. TRIM,
EXTRACT, CEIL, FLOOR, CAST and TRY_CAST have sqlglot's nodes because their words are not arguments; SUBSTRING, POSITION
and OVERLAY are brought to the form with commas.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.sql.parser.cursor import RESERVED, positioned
from headwater.sql.parser.json_functions import JsonFunctionParser
from headwater.sql.tokens import Token, TokenKind

if TYPE_CHECKING:
    from headwater.sql.parser.parser import Parser

__all__ = ["FunctionParser"]

_NO_PARENTHESES = frozenset({"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
# Words that begin a join where no parenthesis follows.
_RESERVED_FUNCTIONS = frozenset({"LEFT", "RIGHT"})
_UNIT_FIRST = frozenset({"TIMESTAMPADD", "TIMESTAMPDIFF"})
_TIME_UNITS = (
    *("MILLENNIUM", "CENTURY", "DECADE", "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"),
    *("MILLISECOND", "MICROSECOND", "NANOSECOND", "EPOCH", "DOW", "DOY", "ISODOW", "ISOYEAR"),
)
_CLASSES: dict[str, type[exp.Func]] = {
    "SUM": exp.Sum,
    "AVG": exp.Avg,
    "MIN": exp.Min,
    "MAX": exp.Max,
    "ROW_NUMBER": exp.RowNumber,
    "RANK": exp.Rank,
    "DENSE_RANK": exp.DenseRank,
}


class FunctionParser:
    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.cursor = parser.cursor
        self._special: dict[str, Callable[[str], exp.Expr]] = {
            **JsonFunctionParser(parser).rules(),
            "CAST": lambda _: self._cast(exp.Cast),
            "TRY_CAST": lambda _: self._cast(exp.TryCast),
            "EXTRACT": self._extract,
            "CEIL": lambda _: self._rounded(exp.Ceil),
            "CEILING": lambda _: self._rounded(exp.Ceil),
            "FLOOR": lambda _: self._rounded(exp.Floor),
            "TRIM": self._trim,
            "POSITION": self._position,
            "SUBSTRING": lambda name: self._with_words(name, ("FROM", "FOR")),
            "SUBSTR": lambda name: self._with_words(name, ("FROM", "FOR")),
            "OVERLAY": lambda name: self._with_words(name, ("PLACING", "FROM", "FOR")),
            **dict.fromkeys(_UNIT_FIRST, self._unit_first),
        }

    def call(self) -> exp.Expr | None:
        """The function call that comes next, or None."""
        token, behind = self.cursor.here, self.cursor.peek()
        # Looked for first: a path that no parenthesis follows is the name of a column.
        if behind.word == "." and (path := self._path()) is not None:
            return path
        if behind.word != "(":
            if token.word not in _NO_PARENTHESES or behind.word == ".":
                return None
            return positioned(exp.Anonymous(this=self.cursor.advance().word), token)
        reserved = token.word in RESERVED and token.word not in _RESERVED_FUNCTIONS
        if token.kind not in (TokenKind.NAME, TokenKind.WORD) or reserved:
            return None
        self.cursor.advance()
        self.cursor.expect("(")
        # In backquotes it is the name of a function without any syntax of its own.
        special = self._special.get(token.word)
        node = positioned(special(token.word) if special is not None else self._regular(token), token)
        self.cursor.expect(")")
        return self.parser.windows.followed(node)

    def _path(self) -> exp.Expr | None:
        """`database.f(…)` or `default_catalog.database.f(…)`: a function of the user's, under its name with dots."""
        token, names = self.cursor.here, [self.cursor.here]
        while self.cursor.peek(2 * len(names) - 1).word == ".":
            names.append(self.cursor.peek(2 * len(names)))
        named = all(name.kind in (TokenKind.NAME, TokenKind.WORD) for name in names)
        if not named or self.cursor.peek(2 * len(names) - 1).word != "(":
            return None
        path = self.parser.names.table_name("the name of a function")
        self.cursor.expect("(")
        arguments = [] if self.cursor.at(")") else self.cursor.comma_separated(self._argument)
        self.cursor.expect(")")
        node = positioned(exp.Anonymous(this=path, expressions=arguments), token)
        return self.parser.windows.followed(node)

    def _regular(self, token: Token) -> exp.Expr:
        arguments = [] if self.cursor.at(")") else self.cursor.comma_separated(self._argument)
        name = token.text.upper()
        if name != "COUNT" and any(isinstance(argument, exp.Star) for argument in arguments):
            close = difflib.get_close_matches(name, ["COUNT"], n=1, cutoff=0.7)
            hint = "Did you mean COUNT(*)?" if close else f"Name the columns: {name}(column)."
            fact = f"There is no function '{token.text}'" if close else f"{name} takes no star: only COUNT does"
            self.cursor.fail(fact, at=token, hint=hint)
        if name == "COUNT":
            return self._count(token, arguments)
        if name not in _CLASSES:
            call = positioned(exp.Anonymous(this=token.text, expressions=arguments), token)
            return self.parser.windows.null_treatment(call)
        # sqlglot's classes know how many arguments they take.
        node = _CLASSES[name].from_arg_list(arguments)
        if node.error_messages(arguments):
            self.cursor.fail(f"Wrong number of arguments for {name}", at=token)
        return node

    def _count(self, token: Token, arguments: list[exp.Expr]) -> exp.Count:
        if not arguments:
            self.cursor.fail("COUNT needs an argument", at=token, hint="Count rows with COUNT(*).")
        return exp.Count(this=arguments[0], expressions=arguments[1:])

    def _argument(self) -> exp.Expr:
        """An expression, `DISTINCT a, b`, `name => value`, a query, or (for table functions) `TABLE t`."""
        token = self.cursor.here
        if self.cursor.accept("DISTINCT"):
            return positioned(exp.Distinct(expressions=self.cursor.comma_separated(self.parser.expression)), token)
        if self.cursor.peek().word == "=>":
            name = self.cursor.name("the name of an argument")
            self.cursor.advance()
            return positioned(exp.Kwarg(this=exp.Var(this=name.name), expression=self._argument()), token)
        if self.cursor.accept("TABLE"):
            return self.parser.relations.table_argument()
        if self.parser.at_query():
            self.cursor.fail("A query as an argument needs parentheses of its own")
        if self.cursor.accept("*"):
            return positioned(exp.Star(), token)
        self.cursor.accept("ALL")  # SUM(ALL x) is SUM(x)
        return self.parser.expression()

    def _time_unit(self) -> exp.Var:
        token = self.cursor.here
        singular = token.word.removesuffix("S")
        unit = singular if singular in _TIME_UNITS else token.word
        if unit not in _TIME_UNITS:
            hint = "For example YEAR, MONTH, DAY, HOUR, MINUTE or SECOND."
            self.cursor.fail_expected("a unit of time", hint=hint)
        return positioned(exp.Var(this=unit), self.cursor.advance())

    def _unit_first(self, name: str) -> exp.Expr:
        """`TIMESTAMPADD(unit, n, time)`."""
        unit = self._time_unit()
        self.cursor.expect(",")
        return exp.Anonymous(this=name, expressions=[unit, *self.cursor.comma_separated(self._argument)])

    def _cast(self, kind: type[exp.Cast]) -> exp.Expr:
        operand = self.parser.expression()
        self.cursor.expect("AS")
        return kind(this=operand, to=self.parser.types.node())

    def _extract(self, _: str) -> exp.Expr:
        unit = self._time_unit()
        self.cursor.expect("FROM")
        return exp.Extract(this=unit, expression=self.parser.expression())

    def _rounded(self, kind: type[exp.Ceil] | type[exp.Floor]) -> exp.Expr:
        operand = self.parser.expression()
        return kind(this=operand, to=self._time_unit() if self.cursor.accept("TO") else None)

    def _trim(self, _: str) -> exp.Expr:
        """`TRIM([BOTH|LEADING|TRAILING] [characters] FROM text)` or `TRIM(text)`."""
        position = self.cursor.accept_any(("BOTH", "LEADING", "TRAILING"))
        if position and self.cursor.accept("FROM"):
            return exp.Trim(this=self.parser.expression(), position=position)
        first = self.parser.expression()
        if self.cursor.accept("FROM"):
            return exp.Trim(this=self.parser.expression(), expression=first, position=position or "BOTH")
        if position:
            self.cursor.fail_expected("'FROM'")
        return exp.Trim(this=first, position="BOTH")

    def _position(self, name: str) -> exp.Expr:
        """`POSITION(part IN whole [FROM start])`, where a comma may stand for IN."""
        needle = self.parser.operand()  # an expression would take IN for the predicate
        if self.cursor.accept("IN"):
            arguments = [needle, self.parser.operand()]
        else:
            self.cursor.expect(",")
            arguments = [needle, *self.cursor.comma_separated(self.parser.expression)]
        if self.cursor.accept("FROM"):
            arguments.append(self.parser.expression())
        return exp.Anonymous(this=name, expressions=arguments)

    def _with_words(self, name: str, words: tuple[str, ...]) -> exp.Expr:
        """`NAME(a WORD b WORD c)`, where a comma may stand for each word; the last word may be left out."""
        arguments = [self.parser.expression()]
        for word in words:
            if self.cursor.accept_any((word, ",")):
                arguments.append(self.parser.expression())
            elif word != words[-1]:
                self.cursor.fail_expected(f"'{word}' or ','")
        return exp.Anonymous(this=name, expressions=arguments)
