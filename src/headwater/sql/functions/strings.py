"""Strings: case, length, cutting, joining, searching."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from headwater.sql.functions.registry import Render, fn
from headwater.sql.functions.spark_sql import evaluated_once
from headwater.sql.spark_text import string_literal
from headwater.sql.typed import Expr

__all__ = ["STRINGS"]

_META = re.compile(r"[\\^$.|?*+()\[\]{}]")


def _pad(spark: str) -> Render:
    """NULL for a negative length or an empty filling, as in Flink."""

    def render(args: Sequence[Expr]) -> str:
        call = f"{spark}({args[0].sql}, {args[1].sql}, {args[2].sql})"
        length, filling = args[1].literal, args[2].literal
        if isinstance(length, int) and length >= 0 and filling:
            return call
        return f"CASE WHEN {args[1].sql} >= 0 AND {args[2].sql} <> '' THEN {call} END"

    return render


def _substring(args: Sequence[Expr]) -> str:
    """As in Flink: NULL for a negative length, and nothing for a start before the first character. Spark would count
    the length from there. Both count a negative start from the end."""
    if isinstance(args[1].literal, int) and args[1].literal >= 0:
        return _substring_from(args)
    return evaluated_once(
        args,
        lambda parts: (
            f"CASE WHEN {parts[1].sql} < -char_length({parts[0].sql}) AND {_has_length(parts)} THEN '' "
            f"ELSE {_substring_from(parts)} END"
        ),
    )


def _substring_from(args: Sequence[Expr]) -> str:
    call = f"substring({', '.join(arg.sql for arg in args)})"
    known = len(args) == 2 or (isinstance(args[2].literal, int) and args[2].literal >= 0)
    return call if known else f"CASE WHEN {_has_length(args)} THEN {call} END"


def _has_length(args: Sequence[Expr]) -> str:
    return f"{args[2].sql} >= 0" if len(args) > 2 else "true"


def _locate(args: Sequence[Expr]) -> str:
    """A start before the first character is the first character."""
    needle, text = args[0].sql, args[1].sql
    if len(args) == 2:
        return f"locate({needle}, {text})"
    if isinstance(args[2].literal, int):
        return f"locate({needle}, {text}, {max(args[2].literal, 1)})"
    start = args[2].sql
    later = f"locate({needle}, {text}, {start})"
    return f"CASE WHEN {start} >= 1 THEN {later} WHEN {start} < 1 THEN locate({needle}, {text}) END"


def _overlay(args: Sequence[Expr]) -> str:
    """A start outside the string changes nothing; a negative length drops the rest."""
    text, new, start = (a.sql for a in args[:3])
    length = args[3].sql if len(args) == 4 else f"char_length({new})"
    rest = f"CASE WHEN {length} >= 0 THEN substring({text}, {start} + {length}) ELSE '' END"
    changed = f"concat(left({text}, {start} - 1), {new}, {rest})"
    return f"CASE WHEN {start} < 1 OR {start} > char_length({text}) THEN {text} ELSE {changed} END"


def _trim(side: str) -> Render:
    def render(args: Sequence[Expr]) -> str:
        what = args[1].sql if len(args) == 2 else "' '"
        return f"trim({side} {what} FROM {args[0].sql})"

    return render


def _as_regex(separator: Expr) -> str:
    """A separator is a plain string; Spark's split takes a regular expression."""
    if isinstance(separator.literal, str):
        return string_literal(_META.sub(r"\\\g<0>", separator.literal))
    # At run time: \Q…\E quotes a separator, except for an \E inside of it, where the quoting has to be interrupted.
    start, end, inner = (string_literal(text) for text in ("\\Q", "\\E", "\\E\\\\E\\Q"))
    return f"concat({start}, replace({separator.sql}, {end}, {inner}), {end})"


def _split_index(args: Sequence[Expr]) -> str:
    """Parts count from 0; an empty separator gives NULL, and an empty string has no parts."""
    code = args[1].type.is_integer
    separator = replace(args[1], sql=f"chr({args[1].sql})", literal=None) if code else args[1]
    if separator.literal == "":
        return "CAST(NULL AS STRING)"
    part = f"get(split(nullif({args[0].sql}, ''), {_as_regex(separator)}), {args[2].sql})"
    return part if separator.literal is not None else f"CASE WHEN {separator.sql} <> '' THEN {part} END"


def _split(args: Sequence[Expr]) -> str:
    """An empty separator splits into characters; an empty string has no parts."""
    separator = _as_regex(args[1])
    if args[1].literal is None:
        separator = f"CASE WHEN {args[1].sql} = '' THEN '' ELSE {separator} END"
    parts = f"split({args[0].sql}, {separator})"
    return f"slice({parts}, 1, IF({args[0].sql} = '', 0, size({parts})))"


def _initcap(args: Sequence[Expr]) -> str:
    """A word is a run of ASCII letters and digits, as in Flink; Spark's own splits at blanks only."""
    # All runs, words and what is between them: joined again, they are the string.
    words = f"regexp_extract_all({args[0].sql}, '[A-Za-z0-9]+|[^A-Za-z0-9]+', 0)"
    changed = "concat(upper(left(`__hw_w`, 1)), lower(substring(`__hw_w`, 2)))"
    word = f"CASE WHEN `__hw_w` RLIKE '^[A-Za-z0-9]' THEN {changed} ELSE `__hw_w` END"
    return f"array_join(transform({words}, `__hw_w` -> {word}), '')"


STRINGS = (
    fn("UPPER(STRING) -> STRING", "upper({0})", "The string in upper case"),
    fn("LOWER(STRING) -> STRING", "lower({0})", "The string in lower case"),
    fn("INITCAP(STRING) -> STRING", _initcap, "Each word with a capital first letter"),
    fn("CHAR_LENGTH(STRING) -> INT", "char_length({0})", "The number of characters"),
    fn("CHARACTER_LENGTH(STRING) -> INT", "char_length({0})", "The number of characters"),
    fn("CONCAT(STRING…) -> STRING", "concat({*})", "The strings joined; NULL if one of them is"),
    fn(
        "CONCAT_WS(STRING [, STRING…]) -> STRING=",
        "concat_ws({*})",
        "The strings after the first, joined by the first; skips NULLs",
        result=lambda a: a[0].type,
    ),
    fn(
        "SUBSTRING(STRING, INT [, INT]) -> STRING?",
        _substring,
        "From a position (1 is the first, -1 the last), at most that many characters",
    ),
    fn("SUBSTR(STRING, INT [, INT]) -> STRING?", _substring, "The same as SUBSTRING"),
    fn("LEFT(STRING, INT) -> STRING", "left({0}, {1})", "The first n characters"),
    fn("RIGHT(STRING, INT) -> STRING", "right({0}, {1})", "The last n characters"),
    fn("LPAD(STRING, INT, STRING) -> STRING?", _pad("lpad"), "Filled on the left, or cut, to a length"),
    fn("RPAD(STRING, INT, STRING) -> STRING?", _pad("rpad"), "Filled on the right, or cut, to a length"),
    fn(
        "TRIM(STRING [, STRING]) -> STRING",
        _trim("BOTH"),
        "Without blanks (or those characters) on both sides; also TRIM(LEADING 'x' FROM s)",
    ),
    fn("BTRIM(STRING [, STRING]) -> STRING", _trim("BOTH"), "Without blanks (or those characters) on both sides"),
    fn("LTRIM(STRING [, STRING]) -> STRING", _trim("LEADING"), "Without blanks (or those characters) on the left"),
    fn("RTRIM(STRING [, STRING]) -> STRING", _trim("TRAILING"), "Without blanks (or those characters) on the right"),
    fn("REPEAT(STRING, INT) -> STRING", "repeat({0}, {1})", "The string n times"),
    fn(
        "REPLACE(STRING, STRING, STRING) -> STRING",
        "replace({0}, {1}, {2})",
        "Every occurrence of the second string replaced by the third",
    ),
    fn(
        "TRANSLATE(STRING, STRING, STRING) -> STRING",
        "translate({0}, {1}, {2})",
        "Characters of the second string replaced by those of the third",
    ),
    fn("REVERSE(STRING) -> STRING", "reverse({0})", "The characters in reverse order"),
    fn(
        "OVERLAY(STRING, STRING, INT [, INT]) -> STRING",
        _overlay,
        "A part replaced: OVERLAY(s PLACING 'new' FROM 2 FOR 3)",
    ),
    fn(
        "POSITION(STRING, STRING [, INT]) -> INT",
        _locate,
        "Where the first string begins in the second, from 1; 0 if nowhere: POSITION('x' IN s)",
    ),
    fn(
        "LOCATE(STRING, STRING [, INT]) -> INT",
        _locate,
        "Where the first string begins in the second, at or after a position; 0 if nowhere",
    ),
    fn(
        "INSTR(STRING, STRING) -> INT",
        "instr({0}, {1})",
        "Where the second string begins in the first, from 1; 0 if nowhere",
    ),
    fn(
        "STARTSWITH(STRING, STRING) -> BOOLEAN",
        "startswith({0}, {1})",
        "Whether the first string begins with the second",
    ),
    fn("STARTSWITH(BYTES, BYTES) -> BOOLEAN", "startswith({0}, {1})", "Whether the first value begins with the second"),
    fn("ENDSWITH(STRING, STRING) -> BOOLEAN", "endswith({0}, {1})", "Whether the first string ends with the second"),
    fn("ENDSWITH(BYTES, BYTES) -> BOOLEAN", "endswith({0}, {1})", "Whether the first value ends with the second"),
    fn(
        "SPLIT_INDEX(STRING, STRING, INT) -> STRING?",
        _split_index,
        "The part at an index (from 0) of the string split at a separator",
    ),
    fn("SPLIT_INDEX(STRING, INT, INT) -> STRING?", _split_index, "The same with the separator's character code"),
    fn("SPLIT(STRING, STRING) -> ARRAY<STRING>", _split, "The parts of the string between separators"),
    fn("ASCII(STRING) -> INT", "ascii({0})", "The code of the first character; 0 for an empty string"),
    fn("CHR(BIGINT) -> STRING", "chr({0})", "The character with that code (modulo 256)"),
    fn(
        "ELT(INT, STRING…) -> STRING?",
        lambda a: f"get(array({', '.join(x.sql for x in a[1:])}), {a[0].sql} - 1)",
        "The n-th of the strings",
    ),
    fn("PRINTF(STRING [, ANY…]) -> STRING", "format_string({*})", "The values in a pattern of Java's Formatter"),
)
