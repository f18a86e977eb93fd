"""Values for `${name}` in scripts and in headwater.toml, with those that come from outside of both.

    ${env:NAME}     an environment variable
    ${file:PATH}    the content of a file, without the line end behind it; a relative path is one beside the script

What comes from outside is taken for a secret: it is remembered, and masked wherever options and messages are shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headwater.errors import ValidationError
from headwater.options.secrets import remember_secret

__all__ = ["ScriptVariables", "expanded"]

_ENV, _FILE = "env:", "file:"
_OUTSIDE = re.compile(r"\$\{((?:env|file):[^{}\n]+)\}")


@dataclass(frozen=True)
class ScriptVariables(Mapping[str, str]):
    """`given` by name, and everything outside. `directory` is where relative paths begin."""

    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    directory: Path = field(default_factory=Path)

    def __getitem__(self, name: str) -> str:
        value = self._outside(name) if name.startswith((_ENV, _FILE)) else self.given.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        """Those that have a name of their own."""
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)

    def _outside(self, name: str) -> str | None:
        if name.startswith(_ENV):
            value = os.environ.get(name.removeprefix(_ENV).strip())
        else:
            value = _content(self.directory / Path(name.removeprefix(_FILE).strip()).expanduser())
        # Whatever comes from the environment or a file may be a secret; a variable on the command line is visible there
        # anyway.
        if value:
            remember_secret(value)
        return value


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError):
        return None


def expanded(text: str, variables: ScriptVariables, where: str) -> str:
    """The text with values from outside. `where` tells in an error whose text it is."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in variables:
            kind, _, name = found[1].partition(":")
            fact = f"The environment variable '{name}' is not set." if kind == "env" else f"'{name}' cannot be read."
            raise ValidationError(fact, detail=f"It is used in {where}.")
        return variables[found[1]]

    return _OUTSIDE.sub(value, text)
