"""INSERT, statement sets, queries, SET and the like, and the table that finds the rule for a statement by its first
word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import NoReturn

from headwater.sql.parser.alter import AlterationParser
from headwater.sql.parser.origin import StatementText
from headwater.sql.parser.parser import Parser
from headwater.sql.parser.show import InquiryParser
from headwater.sql.parser.tables import TableParser
from headwater.sql.parser.unsupported import REFUSED_WORDS, SUPPORTED, refuse
from headwater.sql.script import Script
from headwater.sql.statements import Insert, NoEffect, Query, Quit, Reset, SetOption, Statement, StatementSet, StopJob
from headwater.sql.tokens import Token, TokenKind
from headwater.sql.trees import table_options, table_path

__all__ = ["StatementParser"]

_NO_JARS = (
    "no Java is loaded. The connectors and formats are built in, and functions are written in Python "
    "('headwater docs functions-python'). A jar for Spark itself is given with --conf spark.jars=…"
)
_CONFLICTS = ("NOTHING", "ERROR", "DEDUPLICATE")
# With spaces inside, only what cannot be the next statement for want of a ';'.
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.,:;/%+\- ]+|[^\s'\"`]+")
_OPTION_KEY = re.compile(r"[A-Za-z0-9_.\-]+")


class StatementParser:
    def __init__(self, parser: Parser, script: Script) -> None:
        self.parser = parser
        self.cursor = parser.cursor
        self.text = StatementText(parser.cursor, script)
        tables = TableParser(parser, self.text)
        inquiries = InquiryParser(parser, self.text, self._insert, self._statement_set)
        alterations = AlterationParser(parser, self.text)
        self._rules: dict[str, Callable[[], Statement]] = {
            "CREATE": tables.create,
            "DROP": tables.drop,
            "INSERT": self._insert,
            "EXECUTE": self._execute,
            "BEGIN": self._begin,
            "SELECT": self._query,
            "VALUES": self._query,
            "TABLE": self._query,
            "WITH": self._query,
            "(": self._query,
            "EXPLAIN": inquiries.explain,
            "SHOW": inquiries.show,
            "DESCRIBE": inquiries.describe,
            "DESC": inquiries.describe,
            "ALTER": alterations.alter,
            "USE": alterations.use,
            "SET": self._set,
            "RESET": self._reset,
            "ADD": self._jar,
            "REMOVE": self._jar,
            "STOP": self._stop,
            "QUIT": self._quit,
            "EXIT": self._quit,
        }

    def statement(self) -> Statement:
        rule = self._rules.get(self.cursor.here.word) or self._unknown
        return rule()

    def _unknown(self) -> NoReturn:
        token = self.cursor.here
        word = token.text.upper()
        if word in REFUSED_WORDS:
            refuse(self.cursor)
        close = difflib.get_close_matches(word, self._rules, n=1)
        self.cursor.fail(f"Unknown statement '{token.text}'", hint=f"Did you mean {close[0]}?" if close else SUPPORTED)

    def _query(self) -> Query:
        first = self.cursor.here
        query = self.parser.query()
        return Query(query=query, **self.text.since(first))

    def _insert(self) -> Insert:
        """`INSERT INTO table [(column, …)] query [ON CONFLICT DO …]`."""
        first = self.cursor.expect("INSERT")
        if self.cursor.at("OVERWRITE"):
            hint = "A topic is only ever appended to: use INSERT INTO."
            self.cursor.fail("INSERT OVERWRITE is not supported", hint=hint)
        self.cursor.expect("INTO")
        if self.cursor.at("TABLE"):
            self.cursor.fail("INSERT INTO TABLE is not supported", hint="Leave TABLE out.")
        target = self.cursor.here
        table = self.parser.names.table()
        columns = self._insert_columns()
        if not self.parser.at_query() and not (self.cursor.at("(") and self._at_query_in_parentheses()):
            self._missing_query(target)
        query = self.parser.query()
        conflict = self._on_conflict()
        return Insert(
            target=table_path(table),
            target_position=self.text.script.position(target),
            query=query,
            columns=columns,
            options=table_options(table),
            on_conflict=conflict,
            **self.text.since(first),
        )

    def _insert_columns(self) -> tuple[str, ...]:
        """`(a, b)`, which differs from a query in parentheses by its first word."""
        if self.cursor.at("PARTITION", "("):
            hint = "Write the partition's columns in the query."
            self.cursor.fail("INSERT INTO … PARTITION is not supported", hint=hint)
        # Values without VALUES are more likely than columns of such names.
        behind = self.cursor.peek()
        value = behind.kind in (TokenKind.NUMBER, TokenKind.STRING) or behind.word in ("NULL", "TRUE", "FALSE", "-")
        if not self.cursor.at("(") or value or self._at_query_in_parentheses():
            return ()
        return tuple(token.text for token in self.parser.names.columns())

    def _at_query_in_parentheses(self) -> bool:
        return self.cursor.peek().word in ("(", "SELECT", "WITH", "VALUES")

    def _missing_query(self, target: Token) -> NoReturn:
        """`INSERT INTO tSELECT a` is a forgotten space far more often than a table of that name."""
        for word in ("SELECT", "VALUES", "WITH"):
            name = target.text[: -len(word)]
            if name and target.text.upper().endswith(word):
                hint = f"Did you mean '{name} {target.text[len(name) :]}'? There is no space before {word}."
                self.cursor.fail(f"Expected a query after '{target.text}'", at=target, hint=hint)
        self.cursor.fail_expected("a query (SELECT, VALUES or WITH)")

    def _on_conflict(self) -> str:
        if not self.cursor.accept("ON", "CONFLICT"):
            return ""
        self.cursor.expect("DO")
        return self.cursor.expect_any(_CONFLICTS, "NOTHING, ERROR or DEDUPLICATE")

    def _execute(self) -> Statement:
        if self.cursor.at("EXECUTE", "PLAN"):
            refuse(self.cursor)
        first = self.cursor.expect("EXECUTE")
        if self.cursor.at("INSERT"):
            return self._insert()
        if self.parser.at_query():
            return self._query()
        return self._statement_set(first)

    def _begin(self) -> StatementSet:
        """The legacy spelling: BEGIN STATEMENT SET; …; END"""
        first = self.cursor.expect("BEGIN")
        hint = "Transactions do not exist; BEGIN opens a STATEMENT SET."
        self.cursor.expect("STATEMENT", "SET", ";", hint=hint)
        return self._inserts(first)

    def _statement_set(self, first: Token) -> StatementSet:
        self.cursor.expect("STATEMENT", "SET", "BEGIN")
        return self._inserts(first)

    def _inserts(self, first: Token) -> StatementSet:
        inserts: list[Insert] = []
        while not self.cursor.accept("END"):
            if not self.cursor.at("INSERT"):
                hint = "A statement set contains INSERT INTO statements only."
                self.cursor.fail_expected("'INSERT' or 'END'", hint=hint)
            inserts.append(self._insert())
            self.cursor.expect(";", hint="Every INSERT of a statement set ends with ';'.")
        if not inserts:
            self.cursor.fail("A statement set needs at least one INSERT", at=first)
        return StatementSet(inserts=tuple(inserts), **self.text.since(first))

    def _jar(self) -> NoEffect:
        """`ADD JAR 'path'`, `REMOVE JAR 'path'`."""
        first = self.cursor.advance()
        self.cursor.expect("JAR", hint=SUPPORTED)
        path = self.parser.hints.string("the path of the jar in quotes").text
        note = f"{first.word} JAR '{path}' has no effect: {_NO_JARS}"
        return NoEffect(note=note, **self.text.since(first))

    def _stop(self) -> StopJob:
        """`STOP JOB 'name' [WITH SAVEPOINT]`."""
        first = self.cursor.advance()
        self.cursor.expect("JOB", hint="Write STOP JOB 'name'; SHOW JOBS lists them.")
        name = self.parser.hints.string("the name of the job in quotes").text
        savepoint = self.cursor.accept("WITH", "SAVEPOINT")
        if self.cursor.at("WITH", "DRAIN"):
            hint = "A bounded source ('scan.bounded.mode') ends a job when it has been read."
            self.cursor.fail("WITH DRAIN is not supported", hint=hint)
        return StopJob(name=name, with_savepoint=savepoint, **self.text.since(first))

    def _quit(self) -> Quit:
        first = self.cursor.advance()
        return Quit(**self.text.since(first))

    def _set(self) -> SetOption:
        """`SET`, `SET 'key' = 'value'`, or `SET key = value` with the rest of the statement as the value."""
        first = self.cursor.expect("SET")
        if self.cursor.at_end:
            return SetOption(**self.text.since(first))
        start = self.cursor.here
        key = self._option_key(until="=")
        before = self.text.script.span(start.start, self.cursor.previous.end)
        self.cursor.expect("=", hint="Write SET 'key' = 'value'.")
        if self.cursor.at_end:
            self.cursor.fail_expected("a value", hint=f"Write SET '{key}' = 'value', or RESET '{key}'.")
        start = self.cursor.here
        if self.cursor.at_string() or start.kind is TokenKind.UNICODE_STRING:
            value = self.parser.hints.string("a value").text
        elif not _PLAIN_VALUE.fullmatch(value := self._raw_text()):
            self.cursor.fail("This value needs quotes", at=start, hint=f"Write SET '{key}' = '…'.")
        behind = self.text.script.span(start.start, self.cursor.previous.end)
        return SetOption(key=key, value=value, key_position=before, value_position=behind, **self.text.since(first))

    def _option_key(self, until: str = "") -> str:
        if self.cursor.at_string():
            return self.cursor.advance().text
        start = self.cursor.here
        key = self._raw_text(until)
        if not _OPTION_KEY.fullmatch(key):
            hint = "Write the key in quotes: 'execution.runtime-mode'."
            self.cursor.fail("Not the key of an option", at=start, hint=hint)
        return key

    def _raw_text(self, until: str = "") -> str:
        """The text up to a word, else to the end, exactly as it is in the script, spaces included."""
        # From the text, not from the tokens: `SET pipeline.name = my job` keeps its space, `a.b-c` has none.
        start = end = self.cursor.here.start
        while not self.cursor.at_end and self.cursor.here.text != until:
            end = self.cursor.advance().end
        return self.cursor.sql[start:end]

    def _reset(self) -> Reset:
        first = self.cursor.expect("RESET")
        if self.cursor.at_end:
            return Reset(**self.text.since(first))
        start = self.cursor.here
        key = self._option_key()
        origin = self.text.since(first)
        origin["subject"] = self.text.script.span(start.start, self.cursor.previous.end)
        return Reset(key=key, **origin)
