"""Statements that ask: SHOW, DESCRIBE and EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headwater.sql.parser.origin import StatementText
from headwater.sql.parser.parser import Parser
from headwater.sql.paths import DEFAULT_CATALOG
from headwater.sql.statements import Describe, Explain, Insert, LikePattern, Show, StatementSet
from headwater.sql.tokens import Token

__all__ = ["SHOWN", "InquiryParser"]

# The words behind SHOW, and whether a name follows: of a table, of a database or catalog behind FROM or IN, or none.
_SHOWN: dict[tuple[str, ...], str] = {
    ("TABLES",): "database",
    ("VIEWS",): "database",
    ("DATABASES",): "catalog",
    ("CATALOGS",): "",
    ("CURRENT", "CATALOG"): "",
    ("CURRENT", "DATABASE"): "",
    ("FUNCTIONS",): "",
    ("USER", "FUNCTIONS"): "",
    ("MODULES",): "",
    ("FULL", "MODULES"): "",
    ("JARS",): "",
    ("JOBS",): "",
    ("COLUMNS",): "table",
    ("CREATE", "TABLE"): "name",
    ("CREATE", "VIEW"): "name",
}
_DETAILS = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")
_NOT_DESCRIBED = {
    "CATALOG": "There is one catalog, default_catalog: SHOW CATALOGS.",
    "DATABASE": "A database is a name in front of names: SHOW TABLES FROM it.",
    "FUNCTION": "'headwater docs functions' describes the built-in functions; SHOW USER FUNCTIONS lists others.",
    "JOB": "SHOW JOBS lists the jobs of this session.",
    "MODEL": "Models are not supported; see 'headwater docs limits'.",
}
_LIKE = ("LIKE", "ILIKE")
SHOWN = tuple(" ".join(words) for words in _SHOWN)
"""What can stand behind SHOW."""
_SUPPORTED = ", ".join(f"SHOW {words}" for words in SHOWN)


class InquiryParser:
    """`insert` and `statement_set` read those statements, for EXPLAIN; the latter begins at its word STATEMENT."""

    def __init__(
        self,
        parser: Parser,
        text: StatementText,
        insert: Callable[[], Insert],
        statement_set: Callable[[Token], StatementSet],
    ) -> None:
        self.parser = parser
        self.cursor = parser.cursor
        self.text = text
        self.insert = insert
        self.statement_set = statement_set

    def show(self) -> Show:
        """`SHOW words [FROM name] [[NOT] LIKE | ILIKE 'pattern']`."""
        first = self.cursor.expect("SHOW")
        words = next((words for words in _SHOWN if self.cursor.accept(*words)), None)
        if words is None:
            asked = self.cursor.here.text.upper()
            asked += f" {self.cursor.peek().text.upper()}" if asked in ("CREATE", "CURRENT", "FULL", "USER") else ""
            what = "SHOW what?" if self.cursor.at_end else f"SHOW {asked.strip()} is not supported"
            self.cursor.fail(what, hint=f"Supported: {_SUPPORTED}.")
        name = self._name(_SHOWN[words])
        subject = self.cursor.previous if name else None
        like = not_like = None
        if self.cursor.accept("NOT"):
            not_like = self._pattern()
        elif self.cursor.at_any(_LIKE):
            like = self._pattern()
        return Show(kind=" ".join(words), name=name, like=like, unlike=not_like, **self.text.since(first, subject))

    def _name(self, what: str) -> str:
        if what == "name":
            return self.parser.names.table_name()
        if what == "table":
            self.cursor.expect_any(("FROM", "IN"), "FROM or IN")
            return self.parser.names.table_name()
        if what == "catalog" and self.cursor.accept_any(("FROM", "IN")):
            return self._catalog()
        if what == "database" and self.cursor.accept_any(("FROM", "IN")):
            return self.parser.names.database()
        return ""

    def _catalog(self) -> str:
        token = self.cursor.here
        name = str(self.cursor.name("the name of a catalog").name)
        if name != DEFAULT_CATALOG:
            self.cursor.fail(f"Unknown catalog '{name}'", at=token, hint=f"There is one catalog, {DEFAULT_CATALOG}.")
        return name

    def _pattern(self) -> LikePattern:
        word = self.cursor.expect_any(_LIKE, "LIKE or ILIKE")
        return LikePattern(self.parser.literals.string().name, ignore_case=word == "ILIKE")

    def describe(self) -> Describe:
        first = self.cursor.advance()
        what = self.cursor.here.word
        if what in _NOT_DESCRIBED and self.cursor.peek().text not in ("", "."):
            self.cursor.fail(f"DESCRIBE {what} is not supported", hint=_NOT_DESCRIBED[what])
        # The word alone is the name of a table.
        extended = self.cursor.peek().text not in ("", ".") and self.cursor.accept("EXTENDED")
        name = self.parser.names.table_name()
        return Describe(name=name, extended=extended, **self.text.since(first, self.cursor.previous))

    def explain(self) -> Explain:
        """`EXPLAIN [PLAN FOR] [details] query | INSERT … | STATEMENT SET …`."""
        first = self.cursor.expect("EXPLAIN")
        if self.cursor.accept("PLAN"):
            self.cursor.expect("FOR")
        details: list[str] = []
        if self.cursor.at_any(_DETAILS):
            listed = ", ".join(_DETAILS)
            details = self.cursor.comma_separated(lambda: self.cursor.expect_any(_DETAILS, listed))
        target = self._explained()
        return Explain(target=target, details=tuple(details), **self.text.since(first))

    def _explained(self) -> Insert | StatementSet | exp.Expr:
        start = self.cursor.here
        if self.cursor.at("INSERT"):
            return self.insert()
        if self.cursor.at("STATEMENT") or self.cursor.at("EXECUTE", "STATEMENT"):
            self.cursor.accept("EXECUTE")
            return self.statement_set(start)
        return self.parser.query()
