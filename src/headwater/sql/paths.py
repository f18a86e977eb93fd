"""Names of tables with the database they are in, as one string: `t`, `db.t`.

A part that has a dot or a backquote of its own is written in backquotes, so that a name has one meaning only. There is
one catalog; its name in front is checked by the parser and dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from headwater.sql.flink_text import flink_name

__all__ = ["DEFAULT_CATALOG", "DEFAULT_DATABASE", "joined", "split"]

DEFAULT_CATALOG = "default_catalog"
DEFAULT_DATABASE = "default_database"

_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def joined(parts: Sequence[str]) -> str:
    return ".".join(_quoted(part) for part in parts)


def split(path: str) -> tuple[str, ...]:
    """The parts of what `joined` made."""
    return tuple(found[1].replace("``", "`") if found[2] is None else found[2] for found in _PART.finditer(path))


def _quoted(part: str) -> str:
    return flink_name(part) if "." in part or "`" in part else part
