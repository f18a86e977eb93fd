"""A script: text with variables, cut into statements at `;`, each parsed into a value of `statements`.

`parse_script` is the way in. It raises a SqlError for the first thing that is wrong, with its place in the text as
written. Variables (`${name}`) are replaced before anything is read, in names, options and texts alike, but not in
comments, so that a script can be commented out; `$${` stands for a plain `${`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from sqlglot.tokens import Token, TokenType

from headwater.sql.dialect import parsed, tokenize
from headwater.sql.parse import read_statement
from headwater.sql.parse_source import Script, position_of
from headwater.sql.parse_statement import Reading
from headwater.sql.parse_tokens import SyntaxProblem
from headwater.sql.statements import Statement

__all__ = ["Script", "parse_script", "parse_with_tokens", "position_of"]

_SET_STARTS = frozenset({"EXECUTE", "EXPLAIN", "BEGIN"})


def parse_script(text: str, name: str = "", variables: Mapping[str, str] | None = None) -> list[Statement]:
    """The statements of a script, in order. `name` is what errors call the script, usually its file name."""
    return [statement for statement, _ in parse_with_tokens(Script(text, name, variables))]


def parse_with_tokens(script: Script) -> list[tuple[Statement, list[Token]]]:
    """Each statement with its tokens, whose offsets are those of `script.sql`."""
    return [
        (parsed(script, tokens, lambda parser: read_statement(Reading(parser, script))), tokens)
        for tokens in _statements(script, tokenize(script))
    ]


def _statements(script: Script, tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement, without the `;` behind it. A statement set contains `;` and ends with END."""
    chunk: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON or _inside_set(chunk):
            chunk.append(token)
        elif chunk:
            yield chunk
            chunk = []
    if not chunk:
        return
    if _inside_set(chunk):
        fact = "The statement set is not ended"
        hint = "Every INSERT in it ends with ';', and the set with END;"
        raise script.error(SyntaxProblem(fact, chunk[0].start, chunk[0].end + 1, hint=hint))
    yield chunk


def _inside_set(chunk: list[Token]) -> bool:
    """Whether this is a statement set whose END has not come: an END right behind `;` or BEGIN."""
    words = [t.text.upper() if t.token_type != TokenType.STRING else "" for t in chunk[:8]]
    if not words or words[0] not in _SET_STARTS or ("STATEMENT", "SET") not in pairwise(words):
        return False
    last_two = [t.text.upper() for t in chunk[-2:]]
    return last_two not in ([";", "END"], ["BEGIN", "END"])
