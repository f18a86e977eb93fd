"""SIMILAR TO patterns as Java regular expressions."""

from __future__ import annotations

from headwater.sql.functions.spark_sql import Refused

__all__ = ["similar_to_regex"]

_CLASSES = {
    "[:ALPHA:]": r"\p{Alpha}",
    "[:UPPER:]": r"\p{Upper}",
    "[:LOWER:]": r"\p{Lower}",
    "[:DIGIT:]": r"\d",
    "[:ALNUM:]": r"\p{Alnum}",
    "[:SPACE:]": " ",
    "[:WHITESPACE:]": r"\s",
}


def similar_to_regex(pattern: str) -> str:
    """`%` and `_` as in LIKE; `| * + ? {n} ( ) [ ]` as in a regular expression, and so are all other characters."""
    parts, place = [], 0
    while place < len(pattern):
        character = pattern[place]
        if character == "[":
            end = _end_of_set(pattern, place)
            parts.append(_set(pattern[place:end]))
            place = end
            continue
        parts.append({"%": ".*", "_": "."}.get(character, character))
        place += 1
    return f"(?s)^(?:{''.join(parts)})$"


def _end_of_set(pattern: str, start: int) -> int:
    depth = 0
    for place in range(start, len(pattern)):
        depth += {"[": 1, "]": -1}.get(pattern[place], 0)
        if depth == 0:
            return place + 1
    raise Refused("The pattern of SIMILAR TO has a '[' without its ']'")


def _set(text: str) -> str:
    for name, regex in _CLASSES.items():
        text = text.replace(name, regex).replace(name.lower(), regex)
    return text
