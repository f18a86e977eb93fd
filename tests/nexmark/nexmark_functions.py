"""The function of query 14."""

from __future__ import annotations


def count_char(text: str | None, character: str) -> int:
    return (text or "").count(character)
