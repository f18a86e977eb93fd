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

from sqlglot import exp
from sqlglot.tokens import TokenType

from headwater.sql.parse_cursor import place
from headwater.sql.parse_windows import WindowParser

__all__ = ["JsonParser"]

_ON_EMPTY = ("NULL", "ERROR", "EMPTY ARRAY", "EMPTY OBJECT")


class JsonParser(WindowParser):
    def _special_form(self, word: str) -> exp.Expr | None:
        rule = _JSON.get(word)
        return rule(self, word) if rule is not None else super()._special_form(word)

    def _json_path_function(self, word: str) -> exp.Expr:
        """JSON_VALUE, JSON_QUERY and JSON_EXISTS."""
        arguments = [self.expression_here()]
        self.expect(",")
        arguments.append(self.expression_here())
        if word != "JSON_EXISTS" and self.accept("RETURNING"):
            data_type = self._parse_types()
            assert data_type is not None
            arguments.append(_clause("RETURNING", data_type))
        if word == "JSON_QUERY" and (self.ahead("WITH") or self.ahead("WITHOUT")):
            arguments.append(_clause("WRAPPER", self._wrapper()))
        arguments.extend(self._behaviours(word))
        return exp.Anonymous(this=word, expressions=arguments)

    def _wrapper(self) -> exp.Expr:
        if self.accept("WITHOUT"):
            kind = "WITHOUT"
        else:
            self.expect("WITH")
            kind = "CONDITIONAL" if self.accept("CONDITIONAL") else "UNCONDITIONAL"
            self.accept("UNCONDITIONAL")
        self.accept("ARRAY")
        self.expect("WRAPPER")
        return exp.Var(this=kind)

    def _behaviours(self, word: str) -> list[exp.Expr]:
        """`… ON EMPTY` and `… ON ERROR`, each at most once, in this order."""
        found: list[exp.Expr] = []
        allowed = ("EMPTY", "ERROR") if word != "JSON_EXISTS" else ("ERROR",)
        while not self.ahead(")"):
            behaviour = self._behaviour(word)
            self.expect("ON")
            token = self.here
            event = next((e for e in allowed if self.accept(e)), "")
            if not event:
                self.fail_expected(" or ".join(allowed))
            if any(clause.name == f"ON_{event}" for clause in found):
                self.fail(f"A second ON {event}", at=token)
            found.append(_clause(f"ON_{event}", behaviour))
        return found

    def _behaviour(self, word: str) -> exp.Expr:
        token = self.here
        if word == "JSON_VALUE" and self.accept("DEFAULT"):
            return self.expression_here()
        words = {"JSON_VALUE": ("NULL", "ERROR"), "JSON_QUERY": _ON_EMPTY}.get(
            word, ("TRUE", "FALSE", "UNKNOWN", "ERROR")
        )
        for choice in words:
            if self.accept(*choice.split()):
                return place(exp.Var(this=choice), token)
        return self.fail_expected("')' or " + ", ".join(words))

    def _json_object(self, word: str) -> exp.Expr:
        """Keys and values in turn; `'a' VALUE 1`, `KEY 'a' VALUE 1` and `'a': 1` are the same."""
        arguments: list[exp.Expr] = []
        while not self.ahead(")") and not self._on_null_ahead():
            self.accept("KEY")
            arguments.append(self.expression_here())
            if not self._match(TokenType.COLON):
                self.expect("VALUE")
            arguments.append(self.expression_here())
            if not self.accept(","):
                break
        return exp.Anonymous(this=word, expressions=[*arguments, *self._on_null()])

    def _json_array(self, word: str) -> exp.Expr:
        empty = self.ahead(")") or self._on_null_ahead()
        arguments = [] if empty else self._parse_csv(self.expression_here)
        return exp.Anonymous(this=word, expressions=[*arguments, *self._on_null()])

    def _on_null_ahead(self) -> bool:
        return self.ahead("NULL", "ON", "NULL") or self.ahead("ABSENT", "ON", "NULL")

    def _on_null(self) -> list[exp.Expr]:
        if not self._on_null_ahead():
            return []
        token = self.skip()
        self.expect("ON", "NULL")
        return [_clause("ON_NULL", place(exp.Var(this=token.text.upper()), token))]


def _clause(name: str, value: exp.Expr) -> exp.Kwarg:
    return exp.Kwarg(this=exp.Var(this=name), expression=value).update_positions(value)


_JSON: dict[str, Callable[[JsonParser, str], exp.Expr]] = {
    "JSON_VALUE": JsonParser._json_path_function,
    "JSON_QUERY": JsonParser._json_path_function,
    "JSON_EXISTS": JsonParser._json_path_function,
    "JSON_OBJECT": JsonParser._json_object,
    "JSON_OBJECTAGG": JsonParser._json_object,
    "JSON_ARRAY": JsonParser._json_array,
    "JSON_ARRAYAGG": JsonParser._json_array,
}
