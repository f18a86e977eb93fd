"""CREATE FUNCTION and DROP FUNCTION."""

from __future__ import annotations

from headwater.sql.parser.origin import StatementText
from headwater.sql.parser.parser import Parser
from headwater.sql.statements import CreateFunction, DropFunction
from headwater.sql.tokens import Token

__all__ = ["UserFunctionParser"]

_PORT = (
    "No Java is loaded. Write the function in Python and create it with AS 'module.function' LANGUAGE PYTHON: see "
    "'headwater docs functions-python'. SHOW FUNCTIONS lists what is built in."
)
_LANGUAGES = ("PYTHON", "JAVA", "SCALA")


class UserFunctionParser:
    def __init__(self, parser: Parser, text: StatementText) -> None:
        self.parser = parser
        self.cursor = parser.cursor
        self.text = text

    def at_function(self) -> bool:
        return self.cursor.at("FUNCTION") or self.cursor.at("SYSTEM", "FUNCTION")

    def create(self, first: Token, *, temporary: bool) -> CreateFunction:
        """`[SYSTEM] FUNCTION [IF NOT EXISTS] name AS 'module.function' LANGUAGE PYTHON`."""
        system = self._system(temporary=temporary)
        if_not_exists = self.cursor.accept("IF")
        if if_not_exists:
            self.cursor.expect("NOT", "EXISTS")
        name = self.parser.names.table_name("the name of the function")
        self.cursor.expect("AS")
        path = self.parser.hints.string("the function in quotes: 'module.function'")
        language = self._language(path)
        if language != "PYTHON":
            self.cursor.fail(f"A function in {language.capitalize()} cannot be used", at=path, hint=_PORT)
        if self.cursor.at("USING") or self.cursor.at("WITH"):
            hint = "Modules are found beside the script, installed, or by SET 'python.files'."
            self.cursor.fail(f"{self.cursor.here.word} is not supported for a function in Python", hint=hint)
        return CreateFunction(
            name=name,
            path=path.text,
            temporary=temporary,
            system=system,
            if_not_exists=if_not_exists,
            **self.text.since(first, path),
        )

    def drop(self, first: Token, *, temporary: bool) -> DropFunction:
        system = self._system(temporary=temporary)
        if_exists = self.cursor.accept("IF")
        if if_exists:
            self.cursor.expect("EXISTS")
        name = self.parser.names.table_name("the name of the function")
        origin = self.text.since(first, self.cursor.previous)
        return DropFunction(name=name, system=system, if_exists=if_exists, **origin)

    def _system(self, *, temporary: bool) -> bool:
        token = self.cursor.here
        system = self.cursor.accept("SYSTEM")
        if system and not temporary:
            self.cursor.fail("A SYSTEM FUNCTION must be TEMPORARY", at=token, hint="Write TEMPORARY SYSTEM FUNCTION.")
        self.cursor.expect("FUNCTION")
        return system

    def _language(self, path: Token) -> str:
        """JAVA where none is named, as in Flink."""
        if self.cursor.at_end:
            hint = f"Add LANGUAGE PYTHON. {_PORT}"
            self.cursor.fail("A function without LANGUAGE is one in Java", at=path, hint=hint)
        return self.cursor.expect_any(_LANGUAGES, "PYTHON") if self.cursor.accept("LANGUAGE") else "JAVA"
