"""What is typed, as far as the shell has to understand it: whether it is complete, and its colours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer

from headwater.errors import SqlError
from headwater.sql.parser import ends_statement
from headwater.sql.parser.cursor import RESERVED
from headwater.sql.script import Script
from headwater.sql.tokens import COMMENT, DOUBLE_QUOTED, NAME, STRING

__all__ = ["KEYWORDS", "SqlLexer", "is_complete"]

_PLAIN = ("exit", "help", "quit")

KEYWORDS = frozenset(
    {
        *(word for pair in RESERVED for word in pair.split()),
        *("ADD", "ALTER", "ARRAY", "ASC", "BATCH", "BEGIN", "BIGINT", "BOOLEAN", "BY", "BYTES", "CAST", "COLUMNS"),
        *("COMMENT", "CONSTRAINTS", "CURRENT_TIMESTAMP", "DATABASE", "DATABASES", "DATE", "DECIMAL", "DESC"),
        *("DESCRIBE", "DOUBLE", "ENFORCED", "EXECUTE", "EXPLAIN", "FILTER", "FIRST", "FLOAT", "FUNCTIONS", "GROUP"),
        *("IF", "INCLUDING", "EXCLUDING", "INT", "INTERVAL", "JOB", "JOBS", "KEY", "LAST", "LIMIT", "MAP", "METADATA"),
        *("NULLS", "OFFSET", "OPTIONS", "ORDER", "PARTITION", "PRECISION", "PRIMARY", "RENAME", "REPLACE", "RESET"),
        *("ROW", "SET", "SHOW", "SMALLINT", "STATEMENT", "STOP", "STRING", "TABLES", "TEMPORARY", "TIME", "TIMESTAMP"),
        *("TIMESTAMP_LTZ", "TINYINT", "USE", "VARCHAR", "VIEW", "VIEWS", "VIRTUAL", "WATERMARK"),
    }
)

_PARTS = re.compile(
    rf"""
    (?P<comment> {COMMENT} | /\*(?!\+).*\Z )
  | (?P<string>  {STRING} | {DOUBLE_QUOTED} | ['"].*\Z )
  | (?P<name>    {NAME} )
  | (?P<number>  \b[0-9]+(?:\.[0-9]+)?\b )
  | (?P<word>    [^\W\d]\w* )
    """,
    re.VERBOSE | re.DOTALL,
)
_STYLES = {"comment": "class:comment", "string": "class:string", "name": "class:name", "number": "class:number"}


class _AnyVariable(Mapping[str, str]):
    """Whether a statement is complete does not depend on the values of its variables."""

    def __getitem__(self, key: str) -> str:
        return "v"

    def __contains__(self, key: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def is_complete(text: str) -> bool:
    """Whether Enter runs it: a command of the shell, nothing at all, or statements that end with ';'."""
    stripped = text.strip()
    if not stripped or stripped.startswith("\\") or stripped.lower() in _PLAIN:
        return True
    try:
        return ends_statement(Script(text, variables=_AnyVariable()).sql)
    except SqlError:
        return False  # a quote or a comment is not closed


class SqlLexer(Lexer):
    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = list(_lines(document.text))
        return lambda number: lines[number] if number < len(lines) else []


def _lines(text: str) -> Iterator[StyleAndTextTuples]:
    line: StyleAndTextTuples = []
    for style, piece in _pieces(text):
        first, *others = piece.split("\n")
        line.append((style, first))
        for other in others:
            yield line
            line = [(style, other)]
    yield line


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """The whole text in order, each part with its style."""
    done = 0
    for found in _PARTS.finditer(text):
        yield "", text[done : found.start()]
        done = found.end()
        if found.lastgroup == "word":
            yield "class:keyword" if found[0].upper() in KEYWORDS else "", found[0]
        else:
            yield _STYLES[found.lastgroup or ""], found[0]
    yield "", text[done:]
