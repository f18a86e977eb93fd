"""Reading statements: what the rules in `parse` and `ddl` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from sqlglot import exp
from sqlglot.tokens import Token

from headwater.errors import Position
from headwater.sql.dialect import FlinkParser
from headwater.sql.parse_source import Script

__all__ = ["Origin", "Reading", "tree"]


class Origin(TypedDict):
    """What every statement says about where it came from."""

    text: str
    position: Position
    script: Script


@dataclass(frozen=True)
class Reading:
    """A parser on its way through one statement of a script."""

    parser: FlinkParser
    script: Script

    def origin(self, first: Token) -> Origin:
        """The text from `first` to the token just read."""
        last = self.parser.before
        text = self.script.written(first.start, last.end + 1)
        return Origin(text=text, position=self.script.position(first), script=self.script)

    def place(self, token: Token) -> Position:
        return self.script.position(token)


def tree(node: exp.Expr) -> exp.Expression:
    """sqlglot's parser promises its root type; what it builds is always an Expression."""
    assert isinstance(node, exp.Expression)
    return node
