"""The SQL/JSON functions, whose clauses are words.

    JSON_VALUE(doc, path RETURNING INT NULL ON EMPTY DEFAULT 0 ON ERROR)
    JSON_QUERY(doc, path WITH CONDITIONAL ARRAY WRAPPER EMPTY ARRAY ON EMPTY)
    JSON_EXISTS(doc, path FALSE ON ERROR)
    JSON_OBJECT(KEY 'a' VALUE 1, 'b' VALUE 2 ABSENT ON NULL), JSON_OBJECTAGG(…)
    JSON_ARRAY(1, 2 NULL ON NULL), JSON_ARRAYAGG(…)

Each is `exp.Anonymous` with its plain arguments (keys and values of an object in turn), then one `exp.Kwarg` for each
clause: RETURNING (an `exp.DataType`), WRAPPER (an `exp.Var`: WITHOUT, CONDITIONAL or UNCONDITIONAL), ON_EMPTY,
ON_ERROR and ON_NULL (an `exp.Var`, or the expression of DEFAULT).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.sql.parser.cursor import positioned

if TYPE_CHECKING:
    from headwater.sql.parser.parser import Parser

__all__ = ["JsonFunctionParser"]

_BEHAVIOURS = {
    "JSON_VALUE": ("NULL", "ERROR"),
    "JSON_QUERY": ("NULL", "ERROR", "EMPTY ARRAY", "EMPTY OBJECT"),
    "JSON_EXISTS": ("TRUE", "FALSE", "UNKNOWN", "ERROR"),
}


class JsonFunctionParser:
    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.cursor = parser.cursor

    def rules(self) -> dict[str, Callable[[str], exp.Expr]]:
        """By the name of the function: what reads everything between its parentheses."""
        return {
            **dict.fromkeys(_BEHAVIOURS, self._path_function),
            **dict.fromkeys(("JSON_OBJECT", "JSON_OBJECTAGG"), self._object),
            **dict.fromkeys(("JSON_ARRAY", "JSON_ARRAYAGG"), self._array),
        }

    def _path_function(self, name: str) -> exp.Expr:
        """JSON_VALUE, JSON_QUERY and JSON_EXISTS."""
        arguments = [self.parser.expression()]
        self.cursor.expect(",")
        arguments.append(self.parser.expression())
        if name != "JSON_EXISTS" and self.cursor.accept("RETURNING"):
            arguments.append(_clause("RETURNING", self.parser.types.node()))
        if name == "JSON_QUERY" and self.cursor.at_any(("WITH", "WITHOUT")):
            arguments.append(_clause("WRAPPER", self._wrapper()))
        arguments.extend(self._behaviours(name))
        return exp.Anonymous(this=name, expressions=arguments)

    def _wrapper(self) -> exp.Var:
        """`WITHOUT [ARRAY] WRAPPER` or `WITH [CONDITIONAL | UNCONDITIONAL] [ARRAY] WRAPPER`."""
        kind = self.cursor.advance().word
        if kind == "WITH":
            kind = self.cursor.accept_any(("CONDITIONAL", "UNCONDITIONAL")) or "UNCONDITIONAL"
        self.cursor.accept("ARRAY")
        self.cursor.expect("WRAPPER")
        return exp.Var(this=kind)

    def _behaviours(self, name: str) -> list[exp.Kwarg]:
        """`… ON EMPTY` and `… ON ERROR`, each at most once."""
        found: list[exp.Kwarg] = []
        events = ("ERROR",) if name == "JSON_EXISTS" else ("EMPTY", "ERROR")
        while not self.cursor.at(")"):
            behaviour = self._behaviour(name)
            self.cursor.expect("ON")
            token = self.cursor.here
            event = self.cursor.expect_any(events, " or ".join(events))
            if any(clause.name == f"ON_{event}" for clause in found):
                self.cursor.fail(f"A second ON {event}", at=token)
            found.append(_clause(f"ON_{event}", behaviour))
        return found

    def _behaviour(self, name: str) -> exp.Expr:
        token = self.cursor.here
        if name == "JSON_VALUE" and self.cursor.accept("DEFAULT"):
            return self.parser.expression()
        choices = _BEHAVIOURS[name]
        for choice in choices:  # of one or two words: EMPTY ARRAY
            if self.cursor.accept(*choice.split()):
                return positioned(exp.Var(this=choice), token)
        return self.cursor.fail_expected("')' or " + ", ".join(choices))

    def _object(self, name: str) -> exp.Expr:
        """Keys and values in turn; `'a' VALUE 1`, `KEY 'a' VALUE 1` and `'a': 1` are the same."""
        arguments: list[exp.Expr] = []
        while not self.cursor.at(")") and not self._at_on_null():
            self.cursor.accept("KEY")
            arguments.append(self.parser.expression())
            if not self.cursor.accept(":"):
                self.cursor.expect("VALUE")
            arguments.append(self.parser.expression())
            if not self.cursor.accept(","):
                break
        return exp.Anonymous(this=name, expressions=[*arguments, *self._on_null()])

    def _array(self, name: str) -> exp.Expr:
        empty = self.cursor.at(")") or self._at_on_null()
        arguments = [] if empty else self.cursor.comma_separated(self.parser.expression)
        return exp.Anonymous(this=name, expressions=[*arguments, *self._on_null()])

    def _at_on_null(self) -> bool:
        # Three words ahead, because NULL alone is a value: JSON_ARRAY(NULL NULL ON NULL).
        return self.cursor.at("NULL", "ON", "NULL") or self.cursor.at("ABSENT", "ON", "NULL")

    def _on_null(self) -> list[exp.Kwarg]:
        if not self._at_on_null():
            return []
        token = self.cursor.advance()
        self.cursor.expect("ON", "NULL")
        return [_clause("ON_NULL", positioned(exp.Var(this=token.word), token))]


def _clause(name: str, value: exp.Expr) -> exp.Kwarg:
    return exp.Kwarg(this=exp.Var(this=name), expression=value).update_positions(value)
