"""Where a statement came from: what every statement carries to be shown in errors and in SHOW CREATE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from headwater.errors import Position
from headwater.sql.parser.cursor import Cursor
from headwater.sql.script import Script
from headwater.sql.tokens import Token

__all__ = ["Origin", "StatementText"]


class Origin(TypedDict):
    """The arguments of `statements.Statement`."""

    text: str
    position: Position
    script: Script
    subject: Position | None


@dataclass(frozen=True)
class StatementText:
    """The script, and how far its statement has been read."""

    cursor: Cursor
    script: Script

    def since(self, first: Token, subject: Token | None = None) -> Origin:
        """The text from `first` to the token just read; `subject` is what the statement is about."""
        text = self.script.written(first.start, self.cursor.previous.end)
        about = self.script.position(subject) if subject is not None else None
        return Origin(text=text, position=self.script.position(first), script=self.script, subject=about)
