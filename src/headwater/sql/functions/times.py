"""Dates and times: now, parts, formats, conversions. What needs a unit (EXTRACT, TIMESTAMPADD) is in `time_units`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headwater.sql.functions.cast_to_string import timestamp_string
from headwater.sql.functions.registry import Function, fn
from headwater.sql.functions.spark_sql import Refused
from headwater.sql.functions.time_arithmetic import from_millis, millis_of_day, truncated
from headwater.sql.functions.time_units import extract_sql
from headwater.sql.functions.type_rules import is_fraction
from headwater.sql.spark_text import string_literal
from headwater.sql.typed import Expr
from headwater.sql.types import SqlType, timestamp_ltz

__all__ = ["TIMES"]

# Not current_timestamp(): Spark puts a literal in its place when it plans, and a job is planned once.
_MILLIS_NOW = "CAST(java_method('java.lang.System', 'currentTimeMillis') AS BIGINT)"
_NOW = f"timestamp_millis({_MILLIS_NOW})"
_LOCAL_NOW = f"CAST({_NOW} AS TIMESTAMP_NTZ)"
_DEFAULT_FORMAT = "'yyyy-MM-dd HH:mm:ss'"
_LETTERS = frozenset("GyMLdDEFahHkKmsSQqVzOXxZ")
_ZONE_LETTERS = frozenset("VzOXxZ")
_INSTEAD = {"Y": "y (the week-based year Y is not supported)", "A": "S", "n": "S", "N": "S"}
_LONG_MIN = "CAST('-9223372036854775808' AS BIGINT)"
_PARTS = {
    "YEAR": "The year",
    "QUARTER": "The quarter, 1 to 4",
    "MONTH": "The month, 1 to 12",
    "WEEK": "The ISO week, 1 to 53",
    "DAYOFYEAR": "The day of the year, from 1",
    "DAYOFMONTH": "The day of the month, from 1",
    "DAYOFWEEK": "The day of the week, 1 (Sunday) to 7",
    "HOUR": "The hour, 0 to 23",
    "MINUTE": "The minute, 0 to 59",
    "SECOND": "The second, 0 to 59",
}
_UNIT_OF = {"DAYOFYEAR": "DOY", "DAYOFMONTH": "DAY", "DAYOFWEEK": "DOW"}


def _parts() -> tuple[Function, ...]:
    def part(name: str, meaning: str) -> Function:
        unit = _UNIT_OF.get(name, name)
        return fn(f"{name}(TEMPORAL) -> BIGINT", lambda a: extract_sql(unit, a[0]), meaning)

    return tuple(part(name, meaning) for name, meaning in _PARTS.items())


def _pattern(argument: Expr, refused: Collection[str] = ()) -> str:
    """A pattern, the second argument of a function, as Spark takes it. Java's `u` (year) is Spark's `y`; letters that
    Spark lacks are refused, and so are the `refused` ones, which stand for a time zone."""
    if not isinstance(argument.literal, str):
        return argument.sql
    inside, letters = False, []
    for character in argument.literal:
        inside ^= character == "'"
        letter = "y" if character == "u" and not inside else character
        letters.append(letter)
        if inside or not letter.isascii() or not letter.isalpha():
            continue
        if letter not in _LETTERS:
            hint = f"Write {_INSTEAD[letter]}." if letter in _INSTEAD else f"Supported: {''.join(sorted(_LETTERS))}."
            raise Refused(f"The letter '{letter}' is not supported in a date format", hint=hint, argument=1)
        if letter in refused:
            hint = "TO_TIMESTAMP_LTZ reads strings with a time zone."
            raise Refused("A TIMESTAMP has no time zone", detail=f"The format has '{letter}'.", hint=hint, argument=1)
    return string_literal("".join(letters))


def _date_format(args: Sequence[Expr]) -> str:
    value = f"TRY_CAST({args[0].sql} AS TIMESTAMP_NTZ)" if args[0].type.is_string else args[0].sql
    return f"date_format({value}, {_pattern(args[1])})"


def _to_date(args: Sequence[Expr]) -> str:
    if len(args) == 1:
        return f"TRY_CAST({args[0].sql} AS DATE)"
    return f"try_to_date({args[0].sql}, {_pattern(args[1])})"


def _to_timestamp(args: Sequence[Expr]) -> str:
    """Read as an instant in UTC, so that no zone's missing hours get in the way."""
    text = args[0].sql
    if len(args) == 1:
        plain = f"CASE WHEN {text} RLIKE '^ *[0-9]+-[0-9]+-[0-9]+( +[0-9:.]+)? *$' THEN {text} END"
        return truncated(f"TRY_CAST({plain} AS TIMESTAMP_NTZ)", 3)
    pattern = f"concat({_pattern(args[1], refused=_ZONE_LETTERS)}, ' VV')"
    return from_millis(f"unix_millis(try_to_timestamp(concat({text}, ' UTC'), {pattern}))")


def _number_to_instant(args: Sequence[Expr]) -> str:
    """`TO_TIMESTAMP_LTZ(n, p)`: n counts units of 10^-p seconds. A DECIMAL counts without its fraction."""
    digits = _instant_digits(args)
    value = f"CAST({args[0].sql} AS BIGINT)" if args[0].type.name == "DECIMAL" else args[0].sql
    factor = 10 ** abs(6 - digits)
    if is_fraction(args[0].type):
        micros = f"CAST({value} {'*' if digits <= 6 else '/'} {factor}D AS BIGINT)"
    elif digits > 6:
        micros = f"CAST(floor({value} / {factor}BD) AS BIGINT)"
    else:
        micros = f"CAST({value} AS BIGINT) * {factor}L"
    instant = f"timestamp_micros({micros})"
    return truncated(instant, 3) if is_fraction(args[0].type) and digits <= 3 else instant


def _instant_digits(args: Sequence[Expr]) -> int:
    digits = args[1].literal if len(args) == 2 else 3
    if not isinstance(digits, int) or not 0 <= digits <= 9:
        raise Refused("The precision must be between 0 and 9", hint="0 reads seconds, 3 milliseconds.", argument=1)
    return digits


def _instant_type(args: Sequence[Expr]) -> SqlType:
    return timestamp_ltz(max(3, _instant_digits(args)))


def _string_to_instant(args: Sequence[Expr]) -> str:
    """In UTC unless a third argument names another zone."""
    zone = args[2].sql if len(args) == 3 else "'UTC'"
    if len(args) == 1:
        return truncated(f"CAST(concat(trim({args[0].sql}), ' UTC') AS TIMESTAMP)", 3)
    pattern = _pattern(args[1])
    if any(letter in _ZONE_LETTERS for letter in str(args[1].literal or "")):
        return truncated(f"to_timestamp({args[0].sql}, {pattern})", 3)
    return truncated(f"to_timestamp(concat({args[0].sql}, ' ', {zone}), concat({pattern}, ' VV'))", 3)


def _convert_tz(args: Sequence[Expr]) -> str:
    timestamp = f"TRY_CAST({args[0].sql} AS TIMESTAMP_NTZ)"
    return timestamp_string(f"convert_timezone({args[1].sql}, {args[2].sql}, {timestamp})", 0)


def _unix_timestamp(args: Sequence[Expr]) -> str:
    """The smallest BIGINT for a string that cannot be read, as in Flink."""
    text = args[0].sql
    timestamp = f"TRY_CAST({text} AS TIMESTAMP)" if len(args) == 1 else f"try_to_timestamp({text}, {_pattern(args[1])})"
    return f"CASE WHEN {text} IS NOT NULL THEN coalesce(unix_seconds({timestamp}), {_LONG_MIN}) END"


def _from_unixtime(args: Sequence[Expr]) -> str:
    return f"from_unixtime({args[0].sql}, {_pattern(args[1]) if len(args) == 2 else _DEFAULT_FORMAT})"


def _now(signature: str, sql: str, meaning: str) -> Function:
    return fn(signature, sql, meaning, deterministic=False)


_TIME_NOW = f"transform(array({_LOCAL_NOW}), t -> {millis_of_day('t', 0)})[0]"  # the clock is read once
TIMES = (
    _now("CURRENT_TIMESTAMP() -> TIMESTAMP_LTZ(3)!", _NOW, "The time now"),
    _now("NOW() -> TIMESTAMP_LTZ(3)!", _NOW, "The time now"),
    _now("CURRENT_ROW_TIMESTAMP() -> TIMESTAMP_LTZ(3)!", _NOW, "The time now"),
    _now("PROCTIME() -> TIMESTAMP_LTZ(3)!", _NOW, "The time of the batch"),
    _now(
        "LOCALTIMESTAMP() -> TIMESTAMP(3)!",
        _LOCAL_NOW,
        "The time now, on the local clock",
    ),
    _now("CURRENT_DATE() -> DATE!", f"CAST({_NOW} AS DATE)", "The local date"),
    _now("CURRENT_TIME() -> TIME(0)!", _TIME_NOW, "The time of day on the local clock"),
    _now("LOCALTIME() -> TIME(0)!", _TIME_NOW, "The time of day on the local clock"),
    _now("UNIX_TIMESTAMP() -> BIGINT!", f"({_MILLIS_NOW} DIV 1000)", "The seconds since 1970"),
    fn(
        "UNIX_TIMESTAMP(STRING [, STRING]) -> BIGINT",
        _unix_timestamp,
        "The seconds from 1970 to a local time, given in a format",
    ),
    *_parts(),
    fn(
        "DATE_FORMAT(ANY_TIMESTAMP, STRING) -> STRING", _date_format, "The time in a format of Java's DateTimeFormatter"
    ),
    fn("DATE_FORMAT(STRING, STRING) -> STRING?", _date_format, "The same of a string 'yyyy-MM-dd HH:mm:ss'"),
    fn("FROM_UNIXTIME(BIGINT [, STRING]) -> STRING", _from_unixtime, "The local time that many seconds after 1970"),
    fn("TO_DATE(STRING [, STRING]) -> DATE?", _to_date, "The date in a string; NULL if it has another format"),
    fn(
        "TO_TIMESTAMP(STRING [, STRING]) -> TIMESTAMP(3)?",
        _to_timestamp,
        "The time in a string; NULL if it has another format",
    ),
    fn(
        "TO_TIMESTAMP_LTZ(NUMERIC [, INT']) -> TIMESTAMP_LTZ(3)",
        _number_to_instant,
        "The instant that many milliseconds after 1970; precision 0: seconds, 6: microseconds",
        result=_instant_type,
    ),
    fn(
        "TO_TIMESTAMP_LTZ(STRING [, STRING [, STRING]]) -> TIMESTAMP_LTZ(3)",
        _string_to_instant,
        "The instant in a string, with a format and a time zone (UTC by default)",
    ),
    fn(
        "CONVERT_TZ(STRING, STRING, STRING) -> STRING?",
        _convert_tz,
        "'yyyy-MM-dd HH:mm:ss' in one time zone as the clock shows it in another",
    ),
)
