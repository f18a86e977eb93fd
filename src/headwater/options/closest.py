"""The word somebody may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["close_to", "closest", "did_you_mean"]

_NEAR, _ALMOST = 0.65, 0.9  # less than that has little in common but a prefix


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like `word`, without regard to case, `_` and `-`; None if nothing is near."""
    # '_' for '-' and a wrong case are the most frequent mistakes, and no difference at all here.
    by_plain = {_plain(candidate): candidate for candidate in candidates}
    found = difflib.get_close_matches(_plain(word), by_plain, n=1, cutoff=_NEAR)
    return by_plain[found[0]] if found else None


def close_to(word: str, candidates: Iterable[str]) -> bool:
    """Whether `word` is one of them but for a typo."""
    return bool(difflib.get_close_matches(_plain(word), map(_plain, candidates), n=1, cutoff=_ALMOST))


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """A sentence, or nothing if nothing is near."""
    near = closest(word, candidates)
    return f"Did you mean '{near}'?" if near is not None and near != word else ""


def _plain(word: str) -> str:
    return word.lower().replace("_", "-")
