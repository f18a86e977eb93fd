"""How a table's options were written. Headwater thinks in current keys; its messages are in the keys the user wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from headwater.errors import HeadwaterError
from headwater.options.problems import Problem
from headwater.options.secrets import masked

__all__ = ["Spelling", "as_written", "respelled"]

# A quoted word that is not the name of a column or a table.
_QUOTED = re.compile(r"(?<!field )(?<!olumn )(?<!able )'([a-z][a-z0-9_.*-]*)'")
_TWICE = re.compile(r"('[^']+')(?:(?: and|,| or) \1)+")


@dataclass(frozen=True)
class Spelling:
    """`written` are the options as they stand in the script, `parts` what each of them means in current keys: one
    option, several, or none. `name` is the key that a user of this spelling would write for a current one."""

    written: Mapping[str, str]
    parts: Mapping[str, Mapping[str, str]]
    name: Callable[[str], str] = field(default=lambda key: key, compare=False)
    problems: tuple[Problem, ...] = ()
    supported: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Spelling({masked(self.written)})"

    @property
    def is_current(self) -> bool:
        return all(part == {key: self.written[key]} for key, part in self.parts.items())

    @property
    def options(self) -> dict[str, str]:
        """All options in current keys."""
        return {key: value for part in self.parts.values() for key, value in part.items()}

    def said(self, text: str) -> str:
        """The text with current keys, in quotes, as they would be written here."""
        return _TWICE.sub(r"\1", _QUOTED.sub(lambda match: f"'{self.name(match[1])}'", text))

    def of(self, problem: Problem) -> Problem:
        return replace(problem, key=self.name(problem.key), text=self.said(problem.text))


def respelled(error: HeadwaterError, spellings: Mapping[str, Spelling]) -> HeadwaterError:
    """The error in the spelling of the tables, given by name, that it is about: those it names, or if it names none all
    of them. If these are written in two ways, it stays in current keys."""
    text = str(error)
    about = [spelling for table, spelling in spellings.items() if f"'{table}'" in text] or list(spellings.values())
    about = [spelling for spelling in about if len(spelling.written) > 1]  # print and the like have nothing to spell
    if about and not any(spelling.is_current for spelling in about):
        said = about[0].said
        error.fact, error.detail, error.hint = said(error.fact), said(error.detail), said(error.hint)
    return error


def as_written(options: Mapping[str, str]) -> Spelling:
    """Options that are current ones already."""
    return Spelling(dict(options), {key: {key: value} for key, value in options.items()})
