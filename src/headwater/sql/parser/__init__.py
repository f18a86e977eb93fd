"""Flink SQL to statements: a recursive descent parser over `sql.tokens` that builds sqlglot's public trees.

Of sqlglot only the classes of its trees are used, none of its parser. How the trees look is said in `sql.trees`; which
part reads what, in `parser.parser`. Every function here raises a SqlError for the first thing that is wrong, with its
position in the text as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import TypeVar

from sqlglot import exp

from headwater.errors import SqlError
from headwater.sql.parser.parser import Parser
from headwater.sql.parser.statements import StatementParser
from headwater.sql.paths import joined
from headwater.sql.script import Script, SyntaxFault
from headwater.sql.statements import Quit, Statement
from headwater.sql.tokens import Token, TokenKind, tokenize
from headwater.sql.types import SqlType

__all__ = [
    "FaultyStatement",
    "ends_statement",
    "parse_all",
    "parse_expression",
    "parse_query",
    "parse_script",
    "parse_type",
    "parse_with_tokens",
]

_T = TypeVar("_T")
_SET_STARTS = frozenset({"EXECUTE", "EXPLAIN", "BEGIN"})


def parse_script(text: str, name: str = "", variables: Mapping[str, str] | None = None) -> list[Statement]:
    """The statements of a script, in order, up to QUIT. `name` is what errors call it, usually its file name."""
    return [statement for statement, _ in parse_with_tokens(Script(text, name, variables))]


def parse_all(script: Script) -> Iterator[Statement | FaultyStatement]:
    """The statements of a script up to QUIT, and in their places those that cannot be parsed."""
    for tokens in _statements(script):
        try:
            statement = _statement(script, tokens)
        except SqlError as error:
            yield FaultyStatement(error, _created_name(tokens))
            continue
        if isinstance(statement, Quit):
            return
        yield statement


@dataclass(frozen=True)
class FaultyStatement:
    """`creates` is the name of the table, view or function that it would have created, or empty."""

    error: SqlError
    creates: str


def _created_name(tokens: list[Token]) -> str:
    """The name behind CREATE … TABLE, VIEW or FUNCTION [IF NOT EXISTS]."""
    words = [token.word for token in tokens]
    at = next((i for i, word in enumerate(words[:6]) if word in ("TABLE", "VIEW", "FUNCTION")), None)
    if words[:1] != ["CREATE"] or at is None:
        return ""
    at += 4 if words[at + 1 : at + 4] == ["IF", "NOT", "EXISTS"] else 1
    parts: list[str] = []
    while at < len(tokens) and tokens[at].kind in (TokenKind.WORD, TokenKind.NAME):
        parts.append(tokens[at].text)
        at += 2
        if words[at - 1 : at] != ["."]:
            break
    return joined(parts)


def parse_with_tokens(script: Script) -> list[tuple[Statement, list[Token]]]:
    """Each statement with its tokens, whose offsets are those of `script.sql`. What is behind QUIT is not read."""
    found = ((_statement(script, tokens), tokens) for tokens in _statements(script))
    return list(takewhile(lambda pair: not isinstance(pair[0], Quit), found))


def _statement(script: Script, tokens: list[Token]) -> Statement:
    return _parsed(script, tokens, lambda parser: StatementParser(parser, script).statement())


def parse_expression(text: str, name: str = "") -> exp.Expr:
    """One expression."""
    script = Script(text, name)
    return _parsed(script, tokenize(script.sql), Parser.expression)


def parse_query(text: str, name: str = "") -> exp.Expr:
    """One query without a `;`."""
    script = Script(text, name)
    return _parsed(script, tokenize(script.sql), Parser.query)


def parse_type(text: str, name: str = "") -> SqlType:
    """One type, as in a column's definition."""
    script = Script(text, name)
    return _parsed(script, tokenize(script.sql), Parser.data_type)


def _parsed(script: Script, tokens: list[Token], rule: Callable[[Parser], _T]) -> _T:
    """What `rule` makes of all these tokens."""
    parser = Parser(tokens, script.sql)
    try:
        result = rule(parser)
        parser.cursor.expect_end()
        return result
    except SyntaxFault as fault:
        raise script.error(fault) from None
    except RecursionError:  # a part calls itself for every level of nesting
        deep = SyntaxFault("The statement is nested too deeply", tokens[0].start, tokens[0].end)
        raise script.error(deep) from None


def ends_statement(sql: str) -> bool:
    """Whether every statement of the text is ended: with ';', a statement set with END."""
    return not _split(tokenize(sql))[1]


def _statements(script: Script) -> Iterator[list[Token]]:
    """The tokens of each statement, without the `;` behind it. A statement set contains `;` and ends with END."""
    ended, rest = _split(tokenize(script.sql))
    yield from ended
    if not rest:
        return
    if _inside_set(rest):
        hint = "Every INSERT in it ends with ';', and the set with END;"
        raise script.error(SyntaxFault("The statement set is not ended", rest[0].start, rest[0].end, hint=hint))
    yield rest


def _split(tokens: list[Token]) -> tuple[list[list[Token]], list[Token]]:
    """Statements that are ended, and the tokens behind the last of them."""
    ended: list[list[Token]] = []
    chunk: list[Token] = []
    for token in tokens:
        if token.word != ";" or _inside_set(chunk):
            chunk.append(token)
        elif chunk:
            ended.append(chunk)
            chunk = []
    return ended, chunk


def _inside_set(chunk: list[Token]) -> bool:
    """Whether this is a statement set whose END has not come: an END right behind `;` or BEGIN."""
    # EXPLAIN may have PLAN FOR and four details in front of STATEMENT SET: ten tokens at most.
    words = [token.word for token in chunk[:12]]
    if not words or words[0] not in _SET_STARTS or ("STATEMENT", "SET") not in pairwise(words):
        return False
    return [token.word for token in chunk[-2:]] not in ([";", "END"], ["BEGIN", "END"])
