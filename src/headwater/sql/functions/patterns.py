"""Regular expressions (Java's) and other patterns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headwater.sql.functions.registry import fn
from headwater.sql.spark_text import string_literal
from headwater.sql.typed import Expr

__all__ = ["PATTERNS"]


def _regexp(args: Sequence[Expr]) -> str:
    """An empty expression matches nothing in Flink, but NULL stays NULL."""
    return f"(({args[1].sql} <> '' OR {args[0].sql} IS NULL) AND {args[0].sql} RLIKE {args[1].sql})"


def _replace(args: Sequence[Expr]) -> str:
    """The replacement is a plain string in Flink: `$1` and backslashes mean themselves."""
    literal = args[2].literal
    # Escaped while planning where that is possible; of other strings Spark does it for every row.
    if isinstance(literal, str):
        plain = string_literal(literal.replace("\\", "\\\\").replace("$", "\\$"))
    else:
        backslash, dollar = string_literal("\\"), "'$'"
        doubled, escaped = string_literal("\\\\"), string_literal("\\$")
        plain = f"replace(replace({args[2].sql}, {backslash}, {doubled}), {dollar}, {escaped})"
    return f"regexp_replace({args[0].sql}, {args[1].sql}, {plain})"


def _groups(pattern: str | int | None) -> int | None:
    """How many groups a literal expression has, if Python reads it too."""
    try:
        return re.compile(pattern).groups if isinstance(pattern, str) else None
    except re.error:
        return None


def _extract(args: Sequence[Expr]) -> str:
    """NULL where nothing matches, and for a group that the expression does not have."""
    text, pattern = args[0].sql, args[1].sql
    index = args[2].sql if len(args) == 3 else "0"
    number = args[2].literal if len(args) == 3 else 0
    groups = _groups(args[1].literal)
    if groups is not None and isinstance(number, int) and not 0 <= number <= groups:
        return "CAST(NULL AS STRING)"
    # regexp_extract answers an empty string both for no match and for an empty one; Flink answers NULL for the first.
    return f"CASE WHEN {text} RLIKE {pattern} THEN regexp_extract({text}, {pattern}, {index}) END"


def _extract_all(args: Sequence[Expr]) -> str:
    index = args[2].sql if len(args) == 3 else "1"
    number = args[2].literal if len(args) == 3 else 1
    groups = _groups(args[1].literal)
    if groups is not None and isinstance(number, int) and not 0 <= number <= groups:
        return "CAST(NULL AS ARRAY<STRING>)"
    return f"regexp_extract_all({args[0].sql}, {args[1].sql}, {index})"


def _string_to_map(args: Sequence[Expr]) -> str:
    entries = args[1].sql if len(args) > 1 else "','"
    values = args[2].sql if len(args) > 2 else "'='"
    return f"str_to_map({args[0].sql}, {entries}, {values})"


PATTERNS = (
    fn("REGEXP(STRING, STRING) -> BOOLEAN", _regexp, "Whether a part of the string matches the expression"),
    fn("REGEXP_REPLACE(STRING, STRING, STRING) -> STRING", _replace, "Every match replaced by a plain string"),
    fn(
        "REGEXP_EXTRACT(STRING, STRING [, INT]) -> STRING?",
        _extract,
        "The first match, or a group of it (0 is the whole match); NULL if there is none",
    ),
    fn(
        "REGEXP_EXTRACT_ALL(STRING, STRING [, INT]) -> ARRAY<STRING>?",
        _extract_all,
        "That group (by default 1) of all matches",
    ),
    fn("REGEXP_COUNT(STRING, STRING) -> INT", "regexp_count({0}, {1})", "The number of matches"),
    fn(
        "REGEXP_INSTR(STRING, STRING) -> INT",
        "regexp_instr({0}, {1})",
        "Where the first match begins, from 1; 0 if nowhere",
    ),
    fn("REGEXP_SUBSTR(STRING, STRING) -> STRING?", "regexp_substr({0}, {1})", "The first match; NULL if there is none"),
    fn(
        "STR_TO_MAP(STRING [, STRING [, STRING]]) -> MAP<STRING, STRING>",
        _string_to_map,
        "'a=1,b=2' as a map; the separators of entries and of key and value are regular expressions",
    ),
    fn(
        "IS_ALPHA(STRING) -> BOOLEAN!",
        "coalesce({0} RLIKE '^\\\\p{L}+\\\\z', false)",
        "Whether the string consists of letters",
    ),
    fn(
        "IS_DIGIT(STRING) -> BOOLEAN!",
        "coalesce({0} RLIKE '^\\\\p{Nd}+\\\\z', false)",
        "Whether the string consists of digits",
    ),
    fn(
        "IS_DECIMAL(STRING) -> BOOLEAN!",
        "coalesce({0} RLIKE '^[+-]?(\\\\d+\\\\.?\\\\d*|\\\\.\\\\d+)([eE][+-]?\\\\d+)?\\\\z', false)",
        "Whether the string is a number",
    ),
)
