"""Time arithmetic as Spark SQL text, each rule for each of Flink's types.

A TIMESTAMP has no time zone, and Spark converts it through the session's zone in many functions, which moves the hours
that daylight saving skips. Everything here stays clear of that: a TIMESTAMP is taken apart by its own fields and by its
distance from 1970, an instant (TIMESTAMP_LTZ) by its microseconds. A TIME is an INT, the milliseconds of the day.
"""

from __future__ import annotations

__all__ = [
    "EPOCH",
    "MILLIS_OF",
    "as_utc",
    "at_utc",
    "ceil_to",
    "day_of",
    "floor_to",
    "from_millis",
    "micros_of",
    "millis_of_day",
    "seconds_of",
    "seconds_since_epoch",
    "truncated",
]

EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
MILLIS_OF = {
    "MILLISECOND": 1,
    "SECOND": 1000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
    "WEEK": 604_800_000,
}
_CLOCK = {
    "HOUR": "make_dt_interval(0, hour({0}), 0, 0)",
    "MINUTE": "make_dt_interval(0, hour({0}), minute({0}), 0)",
    "SECOND": "make_dt_interval(0, hour({0}), minute({0}), CAST(second({0}) AS DECIMAL(18,6)))",
}
_STEPS = {
    "YEAR": "make_ym_interval(1, 0)",
    "QUARTER": "make_ym_interval(0, 3)",
    "MONTH": "make_ym_interval(0, 1)",
    "WEEK": "make_dt_interval(7, 0, 0, 0)",
    "DAY": "make_dt_interval(1, 0, 0, 0)",
    "HOUR": "make_dt_interval(0, 1, 0, 0)",
    "MINUTE": "make_dt_interval(0, 0, 1, 0)",
    "SECOND": "make_dt_interval(0, 0, 0, 1)",
    "MILLISECOND": "make_dt_interval(0, 0, 0, 0.001BD)",
}
_FRACTION_DIGITS = 6  # all that Spark keeps


def seconds_of(interval: str) -> str:
    """A day-time interval as DECIMAL(18, 6) seconds."""
    return f"CAST(CAST({interval} AS INTERVAL SECOND) AS DECIMAL(18,6))"


def micros_of(interval: str) -> str:
    return f"CAST({seconds_of(interval)} * 1000000 AS BIGINT)"


def seconds_since_epoch(timestamp: str) -> str:
    """A TIMESTAMP's distance from 1970 as DECIMAL(18, 6) seconds."""
    return seconds_of(f"{timestamp} - {EPOCH}")


def from_millis(millis: str) -> str:
    """The TIMESTAMP that many milliseconds after 1970."""
    return f"({EPOCH} + make_dt_interval(0, 0, 0, CAST({millis} AS DECIMAL(18,0)) * 0.001BD))"


def as_utc(instant: str) -> str:
    """An instant as the TIMESTAMP that a clock in UTC shows."""
    return f"({EPOCH} + make_dt_interval(0, 0, 0, CAST(unix_micros({instant}) AS DECIMAL(20,0)) * 0.000001BD))"


def at_utc(timestamp: str) -> str:
    """The instant at which a clock in UTC shows this TIMESTAMP."""
    return f"timestamp_micros({micros_of(f'{timestamp} - {EPOCH}')})"


def day_of(timestamp: str) -> str:
    """The TIMESTAMP's midnight."""
    return f"CAST(CAST({timestamp} AS DATE) AS TIMESTAMP_NTZ)"


def millis_of_day(timestamp: str, precision: int) -> str:
    """The TIME(precision) of a TIMESTAMP."""
    seconds = seconds_of(f"{timestamp} - {day_of(timestamp)}")
    digits = min(precision, 3)
    return f"CAST(floor({seconds} * {10**digits}) * {10 ** (3 - digits)} AS INT)"


def truncated(value: str, precision: int) -> str:
    """A TIMESTAMP or an instant without what is finer than `precision` digits of a second."""
    if precision >= _FRACTION_DIGITS:
        return value
    # As a DECIMAL: the remainder of a DOUBLE by 0.1 is rarely exact.
    step = f"CAST({10.0**-precision:.{precision}f}BD AS DECIMAL(8,6))"
    # Subtracted, because no function of Spark truncates to tenths or hundredths of a second.
    return f"({value} - make_dt_interval(0, 0, 0, extract(SECOND FROM {value}) % {step}))"


def floor_to(value: str, kind: str, unit: str) -> str:
    """The start of the unit that holds the value. A week starts on Sunday, as in Flink."""
    if kind == "TIME":
        millis = MILLIS_OF.get(unit, MILLIS_OF["DAY"])
        return f"({value} - {value} % {millis})"
    if kind == "DATE":
        return value if unit in MILLIS_OF and unit != "WEEK" else _floor_date(value, unit)
    # date_trunc knows the session's time zone, and so the days with 23 and 25 hours; its weeks begin on Monday.
    if kind == "TIMESTAMP_LTZ" and unit != "WEEK":
        return f"date_trunc('{unit}', {value})"
    if unit in _CLOCK:
        return f"({day_of(value)} + {_CLOCK[unit].format(value)})"
    if unit == "MILLISECOND":
        return truncated(value, 3)
    spark_type = "TIMESTAMP" if kind == "TIMESTAMP_LTZ" else "TIMESTAMP_NTZ"
    return f"CAST({_floor_date(f'CAST({value} AS DATE)', unit)} AS {spark_type})"


def _floor_date(date: str, unit: str) -> str:
    if unit == "DAY":
        return date
    if unit == "WEEK":
        return f"date_sub({date}, dayofweek({date}) - 1)"
    return f"trunc({date}, '{unit}')"


def ceil_to(value: str, kind: str, unit: str) -> str:
    """The value itself if it is the start of a unit, else the start of the next one."""
    floor = floor_to(value, kind, unit)
    if kind == "TIME":
        millis = MILLIS_OF.get(unit, MILLIS_OF["DAY"])
        # pmod: the remainder of a negative number is negative in Spark.
        return f"({value} + pmod(-{value}, {millis}))"
    if floor == value:
        return value
    following = f"{floor} + {_STEPS[unit]}"
    if kind == "DATE":
        following = f"CAST(CAST({floor} AS TIMESTAMP_NTZ) + {_STEPS[unit]} AS DATE)"
    return f"CASE WHEN {floor} = {value} THEN {value} ELSE {following} END"
