"""LIKE and SIMILAR TO: their patterns as Spark takes them."""

from __future__ import annotations

from headwater.sql.functions.spark_sql import Refused
from headwater.sql.spark_text import string_literal
from headwater.sql.typed import Expr

__all__ = ["like_sql", "similar_sql"]

_CLASSES = {
    "[:ALPHA:]": r"\p{Alpha}",
    "[:UPPER:]": r"\p{Upper}",
    "[:LOWER:]": r"\p{Lower}",
    "[:DIGIT:]": r"\d",
    "[:ALNUM:]": r"\p{Alnum}",
    "[:SPACE:]": " ",
    "[:WHITESPACE:]": r"\s",
}


def like_sql(pattern: Expr, escape: str) -> str:
    """Flink has no escape character unless one is named; Spark's is then a backslash, which is doubled."""
    if escape:
        _check_escapes(pattern.literal, escape)
        return f"LIKE {pattern.sql} ESCAPE {string_literal(escape)}"
    if isinstance(pattern.literal, str):
        return f"LIKE {string_literal(pattern.literal.replace(chr(92), chr(92) * 2))}"
    return f"LIKE replace({pattern.sql}, {string_literal(chr(92))}, {string_literal(chr(92) * 2)})"


def _check_escapes(pattern: str | int | None, escape: str) -> None:
    """Behind the escape character only `%`, `_` and itself may stand."""
    place = 0
    while isinstance(pattern, str) and (place := pattern.find(escape, place)) >= 0:
        if pattern[place + 1 : place + 2] not in ("%", "_", escape):
            raise Refused(f"In a LIKE pattern '{escape}' must stand before %, _ or '{escape}'")
        place += 2


def similar_sql(pattern: Expr, escape: str) -> str:
    if escape:
        raise Refused("SIMILAR TO … ESCAPE is not supported")
    if not isinstance(pattern.literal, str):
        raise Refused(
            "The pattern of SIMILAR TO must be a literal", hint="REGEXP(string, expression) takes any pattern."
        )
    return f"RLIKE {string_literal(_similar_regex(pattern.literal))}"


def _similar_regex(pattern: str) -> str:
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
    # The whole string has to match, line breaks included: '$' would match before one at the end.
    return rf"(?s)^(?:{''.join(parts)})\z"


def _end_of_set(pattern: str, start: int) -> int:
    depth = 0
    for place in range(start, len(pattern)):
        # A set may contain classes, [[:ALPHA:]_], whose brackets are nested.
        depth += {"[": 1, "]": -1}.get(pattern[place], 0)
        if depth == 0:
            return place + 1
    raise Refused("The pattern of SIMILAR TO has a '[' without its ']'")


def _set(text: str) -> str:
    for name, regex in _CLASSES.items():
        text = text.replace(name, regex).replace(name.lower(), regex)
    return text
