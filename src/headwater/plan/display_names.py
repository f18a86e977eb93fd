"""Names that the planner gives to columns of its own are shown as what they stand for: never `__g0`, but `UPPER(a)`."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["is_internal", "shown_text"]

_INTERNAL = re.compile(r"__(?:g|agg|j)\d+\b")


def is_internal(name: str) -> bool:
    return _INTERNAL.fullmatch(name) is not None


def shown_text(text: str, names: Mapping[str, str]) -> str:
    return _INTERNAL.sub(lambda found: names.get(found[0], found[0]), text)
