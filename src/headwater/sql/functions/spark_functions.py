"""Functions that Spark has and Flink has not, under Spark's names and with Spark's meaning."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.sql.functions.registry import Function, fn
from headwater.sql.typed import Expr
from headwater.sql.types import SqlType

__all__ = ["SPARK_MORE"]


def _first_element(args: Sequence[Expr]) -> SqlType:
    inner = args[0].type.element
    assert inner is not None
    return inner


_STRINGS = (
    fn("LENGTH(STRING) -> INT", "char_length({0})", "The number of characters"),
    fn("LENGTH(BYTES) -> INT", "length({0})", "The number of bytes"),
    fn("OCTET_LENGTH(STRING) -> INT", "octet_length({0})", "The number of bytes in UTF-8"),
    fn("OCTET_LENGTH(BYTES) -> INT", "octet_length({0})", "The number of bytes"),
    fn("UCASE(STRING) -> STRING", "upper({0})", "The same as UPPER"),
    fn("LCASE(STRING) -> STRING", "lower({0})", "The same as LOWER"),
    fn("CONTAINS(STRING, STRING) -> BOOLEAN", "contains({0}, {1})", "Whether the first string contains the second"),
    fn(
        "SPLIT_PART(STRING, STRING, INT) -> STRING",
        "split_part({0}, {1}, {2})",
        "The n-th part (from 1, or from the end)",
    ),
    fn(
        "SUBSTRING_INDEX(STRING, STRING, INT) -> STRING",
        "substring_index({0}, {1}, {2})",
        "What is before the n-th separator",
    ),
    fn("LEVENSHTEIN(STRING, STRING) -> INT", "levenshtein({0}, {1})", "How many edits lie between two strings"),
    fn("SOUNDEX(STRING) -> STRING", "soundex({0})", "The Soundex code"),
    fn("MASK(STRING) -> STRING", "mask({0})", "Letters as X or x, digits as n"),
    fn("LUHN_CHECK(STRING) -> BOOLEAN", "luhn_check({0})", "Whether the check digit is right"),
    fn(
        "REGEXP_LIKE(STRING, STRING) -> BOOLEAN",
        "regexp_like({0}, {1})",
        "Whether a part of the string matches the expression",
    ),
    fn("CRC32(STRING) -> BIGINT", "crc32(CAST({0} AS BINARY))", "The CRC-32 checksum"),
    fn("CRC32(BYTES) -> BIGINT", "crc32({0})", "The CRC-32 checksum"),
    fn("XXHASH64(ANY…) -> BIGINT!", "xxhash64({*})", "A 64-bit hash of the values"),
    fn("CONV(STRING, INT, INT) -> STRING?", "conv({0}, {1}, {2})", "A number written in one base, in another"),
)
_NUMBERS = (
    fn("EXPM1(DOUBLE) -> DOUBLE", "expm1({0})", "The number e to that power, minus 1"),
    fn("LOG1P(DOUBLE) -> DOUBLE?", "log1p({0})", "The natural logarithm of 1 plus the number"),
    fn("HYPOT(DOUBLE, DOUBLE) -> DOUBLE", "hypot({0}, {1})", "The length of the vector"),
    fn("RINT(DOUBLE) -> DOUBLE", "rint({0})", "The nearest whole number"),
    fn("FACTORIAL(INT) -> BIGINT?", "factorial({0})", "1 · 2 · … · n for n up to 20"),
    fn("PMOD(BIGINT, BIGINT) -> BIGINT", "pmod({0}, {1})", "The remainder that is never negative"),
    fn("SHIFTLEFT(BIGINT, INT) -> BIGINT", "shiftleft({0}, {1})", "Bits shifted to the left"),
    fn("SHIFTRIGHT(BIGINT, INT) -> BIGINT", "shiftright({0}, {1})", "Bits shifted to the right"),
    fn("BIT_COUNT(BIGINT) -> INT", "bit_count({0})", "The number of bits that are set"),
    fn("BITAND(BIGINT, BIGINT) -> BIGINT", "({0} & {1})", "Bits set in both numbers"),
    fn("BITOR(BIGINT, BIGINT) -> BIGINT", "({0} | {1})", "Bits set in either number"),
    fn("BITXOR(BIGINT, BIGINT) -> BIGINT", "({0} ^ {1})", "Bits set in one number only"),
    fn(
        "WIDTH_BUCKET(DOUBLE, DOUBLE, DOUBLE, BIGINT) -> BIGINT?",
        "width_bucket({0}, {1}, {2}, {3})",
        "The bucket of a histogram that holds the value",
    ),
    fn("NANVL(DOUBLE, DOUBLE) -> DOUBLE", "nanvl({0}, {1})", "The first number, or the second if that is NaN"),
    fn("ISNAN(DOUBLE) -> BOOLEAN!", "isnan({0})", "Whether the number is NaN"),
)
_TIMES = (
    fn("LAST_DAY(DATE) -> DATE", "last_day({0})", "The last day of the month"),
    fn("ADD_MONTHS(DATE, INT) -> DATE", "add_months({0}, {1})", "The date so many months later"),
    fn("DATE_ADD(DATE, INT) -> DATE", "date_add({0}, {1})", "The date so many days later"),
    fn("DATE_SUB(DATE, INT) -> DATE", "date_sub({0}, {1})", "The date so many days earlier"),
    fn("DATEDIFF(DATE, DATE) -> INT", "datediff({0}, {1})", "The days from the second date to the first"),
    fn("NEXT_DAY(DATE, STRING') -> DATE", "next_day({0}, {1})", "The next such day of the week: 'MON', 'TUE', …"),
    fn("WEEKDAY(DATE) -> INT", "weekday({0})", "The day of the week, 0 (Monday) to 6"),
    fn("DAYNAME(DATE) -> STRING", "dayname({0})", "The day of the week as 'Mon', 'Tue', …"),
    fn("MONTHNAME(DATE) -> STRING", "monthname({0})", "The month as 'Jan', 'Feb', …"),
    fn("MAKE_DATE(INT, INT, INT) -> DATE", "make_date({0}, {1}, {2})", "The date of a year, a month and a day"),
    fn("UNIX_SECONDS(TIMESTAMP_LTZ) -> BIGINT", "unix_seconds({0})", "The seconds since 1970"),
    fn("UNIX_MILLIS(TIMESTAMP_LTZ) -> BIGINT", "unix_millis({0})", "The milliseconds since 1970"),
    fn("UNIX_MICROS(TIMESTAMP_LTZ) -> BIGINT", "unix_micros({0})", "The microseconds since 1970"),
)
_COLLECTIONS = (
    fn("SIZE(ARRAY) -> INT", "size({0})", "The number of elements"),
    fn("SIZE(MAP) -> INT", "size({0})", "The number of entries"),
    fn("ARRAY_COMPACT(ARRAY<T>) -> ARRAY<T>", "array_compact({0})", "The array without NULLs"),
    fn(
        "ARRAYS_OVERLAP(ARRAY<T>, ARRAY<T>) -> BOOLEAN?", "arrays_overlap({0}, {1})", "Whether the arrays share a value"
    ),
    fn("ARRAY_REPEAT(T, INT) -> ARRAY<T>", "array_repeat({0}, {1})", "The value n times"),
    fn("FLATTEN(ARRAY) -> ARRAY", "flatten({0})", "An array of arrays as one array", result=_first_element),
    fn("SHUFFLE(ARRAY<T>) -> ARRAY<T>", "shuffle({0})", "The elements in random order", deterministic=False),
    fn("MAP_CONTAINS_KEY(MAP<K, V>, K) -> BOOLEAN", "map_contains_key({0}, {1})", "Whether the map has that key"),
    fn("IS_VALID_UTF8(BYTES) -> BOOLEAN", "is_valid_utf8(CAST({0} AS STRING))", "Whether the bytes are valid UTF-8"),
    fn(
        "MAKE_VALID_UTF8(BYTES) -> STRING",
        "make_valid_utf8(CAST({0} AS STRING))",
        "The bytes as a string, with � for what is none",
    ),
)

SPARK_MORE: tuple[Function, ...] = (*_STRINGS, *_NUMBERS, *_TIMES, *_COLLECTIONS)
