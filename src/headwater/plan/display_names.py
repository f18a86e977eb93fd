"""Names that the planner gives to columns are shown as what they stand for: never `__hw_g0`, but `UPPER(a)`; in an
error never `id0`, but `b.id`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from headwater.errors import HeadwaterError, SqlError, ValidationError
from headwater.sql.statements import Statement

__all__ = ["is_internal", "located", "shown_text"]

_INTERNAL = re.compile(r"__hw_(?:(?:g|agg|j)\d+|w_(?:start|end|time))\b")
_WORDS = re.compile(r"\w+")


def is_internal(name: str) -> bool:
    return _INTERNAL.fullmatch(name) is not None


def shown_text(text: str, names: Mapping[str, str]) -> str:
    return _INTERNAL.sub(lambda found: names.get(found[0], found[0]), text)


@contextmanager
def located(statement: Statement | None, renamed: Mapping[str, str]) -> Iterator[None]:
    """Errors about a statement's query name the script, and columns as they are written there; `renamed` are those that
    have other names in the plan."""
    try:
        yield
    except (SqlError, ValidationError) as error:
        if isinstance(error, SqlError) and statement is not None and statement.script is not None:
            error.script = error.script or statement.script.name
        _write_names(error, renamed, statement.text if statement is not None else "")
        raise


def _write_names(error: HeadwaterError, renamed: Mapping[str, str], script: str) -> None:
    """A word that the script has itself is left alone: it is not the planner's."""
    names = {name: written for name, written in renamed.items() if name not in _WORDS.findall(script)}
    for part in ("fact", "detail", "hint"):
        setattr(error, part, _WORDS.sub(lambda found: names.get(found[0], found[0]), getattr(error, part)))
