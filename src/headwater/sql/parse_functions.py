"""Function calls: ordinary ones, those with a syntax of their own, and what follows them (FILTER, OVER).

An ordinary function is `exp.Anonymous(this=<name as written>, expressions=<arguments>)`, whatever sqlglot knows about
the name: its own nodes stand for what other databases mean. Only `FUNCTIONS` (aggregates and ranking) keep their
classes. TRIM, EXTRACT, CEIL, FLOOR, CAST and TRY_CAST keep sqlglot's nodes because their words are not arguments;
SUBSTRING, POSITION and OVERLAY are brought to the form with commas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokens import Token, TokenType

from headwater.sql.parse_cursor import place
from headwater.sql.parse_expressions import ExpressionParser

__all__ = ["FunctionParser"]

_NO_PARENTHESES = frozenset({"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
_CALLABLE = frozenset({TokenType.VAR, TokenType.IDENTIFIER, TokenType.LEFT, TokenType.RIGHT})
_UNIT_FIRST = frozenset({"TIMESTAMPADD", "TIMESTAMPDIFF"})
_TIME_UNITS = (
    *("MILLENNIUM", "CENTURY", "DECADE", "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"),
    *("MILLISECOND", "MICROSECOND", "NANOSECOND", "EPOCH", "DOW", "DOY", "ISODOW", "ISOYEAR"),
)


class FunctionParser(ExpressionParser):
    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: Parser.FUNCTIONS[name]
        for name in ("COUNT", "SUM", "AVG", "MIN", "MAX", "ROW_NUMBER", "RANK", "DENSE_RANK")
    }

    def _parse_function_call(
        self,
        functions: dict[str, Callable[..., Any]] | None = None,
        anonymous: bool = False,
        optional_parens: bool = True,
        any_token: bool = False,
    ) -> exp.Expr | None:
        token = self.here
        word = token.text.upper()
        if token.token_type not in _CALLABLE:
            return None
        if self._next.token_type != TokenType.L_PAREN:
            if token.token_type == TokenType.VAR and word in _NO_PARENTHESES and self._next.token_type != TokenType.DOT:
                self.skip()
                return place(exp.Anonymous(this=word), token)
            return None
        self._advance(2)
        special = self._special_form(word) if token.token_type != TokenType.IDENTIFIER else None
        node = place(special or self._ordinary(token), token)
        self.expect(")")
        return self._parse_window(node)

    def _special_form(self, word: str) -> exp.Expr | None:
        """The function of that name if it has a syntax of its own, read up to its closing parenthesis."""
        rule = _SPECIAL.get(word)
        return rule(self) if rule is not None else None

    def _ordinary(self, token: Token) -> exp.Expr:
        word = token.text.upper()
        if word in _UNIT_FIRST:
            unit = self._time_unit()
            self.expect(",")
            return exp.Anonymous(this=token.text, expressions=[unit, *self._parse_csv(self._argument)])
        arguments = [] if self.ahead(")") else self._parse_csv(self._argument)
        if word != "COUNT" and any(isinstance(a, exp.Star) for a in arguments):
            self.fail("Only COUNT takes a star", at=token)
        build = self.FUNCTIONS.get(word)
        if build is None:
            return exp.Anonymous(this=token.text, expressions=arguments)
        if word == "COUNT" and not arguments:
            self.fail("COUNT needs an argument", at=token, hint="Count rows with COUNT(*).")
        node: exp.Expr = build(arguments)
        problems = node.error_messages(arguments)
        if problems:
            self.fail(f"Wrong number of arguments for {word}", at=token)
        return node

    def _argument(self) -> exp.Expr:
        """An expression, `DISTINCT a, b`, `name => value`, a query, or (for table functions) `TABLE t`."""
        token = self.here
        if self._match(TokenType.DISTINCT):
            return place(exp.Distinct(expressions=self._parse_csv(self.expression_here)), token)
        if self._next.token_type == TokenType.FARROW:
            name = self.name("the name of an argument")
            self.skip()
            return place(exp.Kwarg(this=exp.var(name.name), expression=self._argument()), token)
        if self._match(TokenType.TABLE):
            return self._table_argument()
        if self.query_ahead():
            self.fail("A query as an argument needs parentheses of its own", at=token)
        if self._match(TokenType.STAR):
            return place(exp.Star(), token)
        self._match(TokenType.ALL)
        return self.expression_here()

    def _table_argument(self) -> exp.Expr:
        """The `t`, `t PARTITION BY a` or `t PARTITION BY (a, b)` of a table function."""
        table = self._parse_table_parts()
        assert table is not None
        token = self.here
        if self._match(TokenType.PARTITION_BY):
            several = self.ahead("(")
            keys = self.comma_separated(self.expression_here) if several else [self.expression_here()]
            table.set("partition", place(exp.Partition(expressions=keys), token))
        return table

    def _time_unit(self) -> exp.Var:
        token = self.here
        word = token.text.upper()
        word = word[:-1] if word.endswith("S") and word[:-1] in _TIME_UNITS else word
        if word not in _TIME_UNITS or token.token_type != TokenType.VAR:
            self.fail_expected("a unit of time", hint="For example YEAR, MONTH, DAY, HOUR, MINUTE or SECOND.")
        self.skip()
        return place(exp.Var(this=word), token)

    def _cast(self, node_type: type[exp.Cast]) -> exp.Expr:
        operand = self.expression_here()
        self.expect("AS")
        return node_type(this=operand, to=self._parse_types())

    def _extract(self) -> exp.Expr:
        unit = self._time_unit()
        self.expect("FROM")
        return exp.Extract(this=unit, expression=self.expression_here())

    def _round_to(self, node_type: type[exp.Ceil] | type[exp.Floor]) -> exp.Expr:
        operand = self.expression_here()
        return node_type(this=operand, to=self._time_unit() if self.accept("TO") else None)

    def _trim(self) -> exp.Expr:
        """`TRIM([BOTH|LEADING|TRAILING] [characters] FROM text)` or `TRIM(text)`."""
        position = next((w for w in ("BOTH", "LEADING", "TRAILING") if self.accept(w)), None)
        if position and self.accept("FROM"):
            return exp.Trim(this=self.expression_here(), position=position)
        first = self.expression_here()
        if self.accept("FROM"):
            return exp.Trim(this=self.expression_here(), expression=first, position=position or "BOTH")
        if position:
            self.fail_expected("'FROM'")
        return exp.Trim(this=first, position="BOTH")

    def _position(self) -> exp.Expr:
        needle = self.operand_here()
        if self.accept("IN"):
            arguments = [needle, self.operand_here()]
        else:
            self.expect(",")
            arguments = [needle, *self._parse_csv(self.expression_here)]
        if self.accept("FROM"):
            arguments.append(self.expression_here())
        return exp.Anonymous(this="POSITION", expressions=arguments)

    def _with_words(self, name: str, words: tuple[str, ...]) -> exp.Expr:
        """`NAME(a WORD b WORD c)`, where a comma may stand for each word; the last word may be left out."""
        arguments = [self.expression_here()]
        for i, word in enumerate(words):
            if self.accept(word) or self.accept(","):
                arguments.append(self.expression_here())
            elif i == len(words) - 1:
                break
            else:
                self.fail_expected(f"'{word}' or ','")
        return exp.Anonymous(this=name, expressions=arguments)


_SPECIAL: dict[str, Callable[[FunctionParser], exp.Expr]] = {
    "CAST": lambda p: p._cast(exp.Cast),
    "TRY_CAST": lambda p: p._cast(exp.TryCast),
    "EXTRACT": FunctionParser._extract,
    "CEIL": lambda p: p._round_to(exp.Ceil),
    "CEILING": lambda p: p._round_to(exp.Ceil),
    "FLOOR": lambda p: p._round_to(exp.Floor),
    "TRIM": FunctionParser._trim,
    "POSITION": FunctionParser._position,
    "SUBSTRING": lambda p: p._with_words("SUBSTRING", ("FROM", "FOR")),
    "SUBSTR": lambda p: p._with_words("SUBSTR", ("FROM", "FOR")),
    "OVERLAY": lambda p: p._with_words("OVERLAY", ("PLACING", "FROM", "FOR")),
}
